"""Files that are damaged, and labels of types that few tables have: a sentence, or the answer of arrays."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import metricwise as mw
import worlds
from metricwise.data.tables import formats

STRATEGY = mw.Strategy(confusion="labels", recalibrate=False)
DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")


def rows_of_days(n=80):
    eta, y = worlds.multiclass(n, [0.4, 0.7, 1.0], sharpen=2, seed=0)
    return eta, pa.table({**{f"p_{day}": eta[:, k] for k, day in enumerate(DAYS)}, "day": DAYS[y]})


def fit(data):
    return mw.optimize(mw.Table(data, proba_prefix="p_"), "day", "accuracy", strategy=STRATEGY)


def test_a_line_of_too_few_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("p_a,p_b,day\n0.1,0.9,b\n0.8,0.2,a\n0.3,0.7")
    with pytest.raises(mw.InvalidParameter, match=r"a\.csv: .*Expected 3 columns, got 2"):
        fit(path)


@pytest.mark.parametrize("encoded", [False, True])
def test_labels_that_python_cannot_hold(encoded):
    late = pa.array([1_476_395_079, 0] * 10, pa.int32()).view(pa.date32())
    column = late.dictionary_encode() if encoded else late
    table = pa.table({"p_a": np.full(20, 0.25), "p_b": np.full(20, 0.75), "day": column})
    with pytest.raises(
        mw.InvalidParameter, match=r"the column 'day' must hold labels, got a value that cannot be read"
    ):
        fit(table)


def test_places_beyond_the_dictionary(tmp_path):
    indices, names = pa.array([0, 1, 7, 1], pa.int8()), pa.array(["a", "b"])
    column = pa.DictionaryArray.from_arrays(indices, names, safe=False)
    table = pa.table({"p_a": np.full(4, 0.25), "p_b": np.full(4, 0.75), "day": column})
    pa.feather.write_feather(table, str(tmp_path / "a.feather"), compression="uncompressed")
    with pytest.raises(mw.InvalidParameter, match=r"a\.feather: this is not a complete Feather file: .*out of bounds"):
        fit(tmp_path / "a.feather")


def test_numbers_of_dictionaries_that_there_are_not(tmp_path):
    path = tmp_path / "a.feather"
    days = pa.array(["a", "b"] * 10).dictionary_encode()
    table = pa.table({"p_a": np.full(20, 0.25), "p_b": np.full(20, 0.75), "site": days, "day": days})
    pa.feather.write_feather(table, str(path), compression="uncompressed")
    whole = path.read_bytes()
    n_lost = 0
    for place in range(0, len(whole) - 8, 8):  # the second dictionary has the number 1
        if whole[place : place + 8] != (1).to_bytes(8, "little"):
            continue
        path.write_bytes(whole[:place] + (77).to_bytes(8, "little") + whole[place + 8 :])
        try:
            pa.feather.read_table(str(path), columns=["day"], memory_map=False)
        except pa.ArrowKeyError:
            n_lost += 1
            with pytest.raises(
                mw.InvalidParameter, match=r"a\.feather: this is not a complete Feather file: .*dictionary"
            ):
                fit(path)
        except (pa.ArrowException, OSError):
            pass
    assert n_lost


def test_names_of_columns_that_are_no_text(tmp_path):
    path = tmp_path / "a.feather"
    pa.feather.write_feather(rows_of_days()[1].append_column("héight", pa.array(np.zeros(80))), str(path))
    path.write_bytes(path.read_bytes().replace("héight".encode(), b"h\xda\xdaight"))
    with pytest.raises(mw.InvalidParameter, match=r"a\.feather: this is not a complete Feather file: .*can't decode"):
        fit(path)


def test_a_file_that_asks_for_all_memory(tmp_path, monkeypatch):
    path = tmp_path / "a.feather"
    pa.feather.write_feather(rows_of_days()[1], str(path))

    def allocate(*_):
        raise pa.ArrowMemoryError("malloc of size 78437159010304 failed")

    monkeypatch.setattr(formats.Feather, "schema", allocate)
    with pytest.raises(
        mw.InvalidParameter, match=r"the file is damaged, or there is too little memory to read it: mal"
    ):
        fit(path)


def test_dates_from_table_to_table(tmp_path):
    eta, table = rows_of_days()
    pq.write_table(table, tmp_path / "a.parquet")
    rule = fit(tmp_path / "a.parquet").rule
    again = mw.Table(tmp_path / "a.parquet", proba_prefix="p_")
    mw.predict_table(rule, again, tmp_path / "decided.feather", column="decision")
    decided = pa.feather.read_table(tmp_path / "decided.feather")["decision"].to_numpy()
    np.testing.assert_array_equal(decided, rule.predict(eta))


def test_feather_files_with_bytes_lost(tmp_path):
    """Scans of datasets ended the process here in one of twenty tries, while other threads read ahead."""
    table = rows_of_days()[1]
    coded = pa.table(
        {
            name: column.combine_chunks().dictionary_encode()
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )
    path = tmp_path / "a.arrow"
    pa.feather.write_feather(coded, str(path), compression="uncompressed")
    content, rng, n_refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(200):
        begin = int(rng.integers(8, len(content) - 700))
        path.write_bytes(content[:begin] + content[begin + int(rng.integers(1, 300)) :])
        try:
            fit(path)
        except mw.InvalidParameter:
            n_refused += 1
    assert n_refused > 100
