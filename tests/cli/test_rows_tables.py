"""Tables come back from files as they were written, and identifiers stay what they are."""

import io
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from metricwise.data.tables.reading import open_file
from metricwise.data.tables.writing import check_target, write_table
from profiles import examples

ENDINGS = (".csv", ".tsv", ".parquet", ".pq", ".feather", ".arrow")
# No surrogates, which UTF-8 does not have, and no line ends, which readers of CSV differ about.
TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\u2028\u2029\x85"), max_size=8)
NAMES = st.lists(TEXT.filter(lambda name: name.strip() != ""), min_size=2, max_size=5, unique=True)
ROWS = examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
@ROWS
@given(names=NAMES, data=st.data())
def test_names_texts_and_numbers_come_back(tmp_path, ending, names, data):
    n_rows = data.draw(st.integers(1, 4))
    texts = data.draw(st.lists(TEXT.filter(bool), min_size=n_rows, max_size=n_rows))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    numbers = [data.draw(st.lists(finite, min_size=n_rows, max_size=n_rows)) for _ in names[1:]]
    path = str(tmp_path / f"rows{ending}")
    columns = {name: np.array(own) for name, own in zip(names[1:], numbers, strict=True)}
    write_table(path, {names[0]: np.array(texts, dtype=object), **columns})
    table = open_file(path)
    assert table.names == tuple(names)
    assert table.read(names[:1]).column(0).to_pylist() == texts
    found = table.numbers(names[1:])
    for own, column in zip(numbers, found.columns, strict=True):
        np.testing.assert_array_equal(np.asarray(column), np.array(own))


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending(tmp_path, ending):
    path = str(tmp_path / f"rows{ending}")
    write_table(path, {"id": np.array(["007", "a,\t\"b'"]), "p": np.array([0.1, 1 / 3])})
    table = open_file(path)
    assert table.read(["id"]).column(0).to_pylist() == ["007", "a,\t\"b'"]
    assert np.asarray(table.numbers(["p"]).column(0)).tolist() == [0.1, 1 / 3]


def test_csv_of_others(tmp_path):
    frame = pd.DataFrame({"id": ["007", "008"], "p": [0.1, 0.2], "y": [1.0, np.nan]})
    for name, options in (("plain.csv", {}), ("packed.csv.gz", {}), ("mark.csv", {"encoding": "utf-8-sig"})):
        frame.to_csv(tmp_path / name, index=False, **options)
        table = open_file(str(tmp_path / name))
        assert table.names == ("id", "p", "y")
        assert table.labels("y").to_pylist() == [1, None]
    frame.to_csv(tmp_path / "semi.csv", index=False, sep=";")
    assert open_file(str(tmp_path / "semi.csv"), separator=";").numbers(["p"]).num_rows == 2
    (tmp_path / "windows.csv").write_bytes(b'p,"line\r\nend"\r\n0.5,x\r\n')
    assert open_file(str(tmp_path / "windows.csv")).names == ("p", "line\r\nend")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["1", "2", ""], [1, 2, None]),
        (["1.0", "2.0", ""], [1, 2, None]),
        (["0.5", "2", ""], [0.5, 2.0, None]),
        (["True", "False", ""], [True, False, None]),
        (["NA", "b", ""], ["NA", "b", None]),
        (["01", "2", ""], ["01", "2", None]),
        (["2024-01-01", "b", ""], ["2024-01-01", "b", None]),
    ],
)
def test_labels_of_csv(tmp_path, cells, labels):
    (tmp_path / "rows.csv").write_text("y,p\n" + "".join(f"{cell},0.5\n" for cell in cells))
    found = open_file(str(tmp_path / "rows.csv")).labels("y").to_pylist()
    assert found == labels
    assert list(map(type, found)) == list(map(type, labels))


def test_many_rows_come_in_batches_and_tell(tmp_path):
    n_rows, ticks = 200_000, []
    write_table(str(tmp_path / "rows.csv"), {"p": np.arange(n_rows) / n_rows, "y": np.arange(n_rows) % 3})
    table = open_file(str(tmp_path / "rows.csv"), tick=lambda: ticks.append(1))
    np.testing.assert_array_equal(np.asarray(table.numbers(["p"]).column(0)), np.arange(n_rows) / n_rows)
    assert len(ticks) > 1
    assert table.labels("y").to_pylist()[:4] == [0, 1, 2, 0]


def test_times(tmp_path):
    path = str(tmp_path / "rows.csv")
    for cells, kind in ((["1", "2.5"], "f"), (["2024-01-31", "2024-02-01"], "M"), (["2024-01-31T10:00:00Z"], "M")):
        (tmp_path / "rows.csv").write_text("t,p\n" + "".join(f"{cell},0.5\n" for cell in cells))
        assert np.asarray(open_file(path).moments("t")).dtype.kind == kind
    (tmp_path / "rows.csv").write_text("t,p\nyesterday,0.5\n")
    with pytest.raises(ValueError, match="must hold numbers or dates such as 2024-01-31"):
        open_file(path).moments("t")


def test_labels_of_several_kinds_and_arrays(tmp_path):
    mixed = np.array(["a", 1, 2.5], dtype=object)
    write_table(str(tmp_path / "rows.parquet"), {"y": mixed})
    assert open_file(str(tmp_path / "rows.parquet")).read(["y"]).column(0).to_pylist() == ["a", "1", "2.5"]
    with pytest.raises(ValueError, match="labels of several kinds, or missing ones"):
        write_table(str(tmp_path / "rows.npy"), {"y": mixed})
    write_table(str(tmp_path / "rows.npz"), {"file": np.array([1, 2]), "y": np.array(["a", "b"], dtype=object)})
    found = open_file(str(tmp_path / "rows.npz"))
    assert found.names == ("file", "y")
    assert found.get("y").tolist() == ["a", "b"]
    write_table(str(tmp_path / "two.npy"), {"a": np.array([1, 2]), "b": np.array([3, 4])})
    assert np.load(tmp_path / "two.npy").tolist() == [[1, 3], [2, 4]]


def test_categories_and_small_floats_of_parquet_stay_what_they_are(tmp_path):
    frame = pd.DataFrame({"p": np.array([0.25, 0.5], dtype=np.float32), "y": pd.Categorical(["a", "b"], ordered=True)})
    frame.to_parquet(tmp_path / "rows.parquet")
    table = open_file(str(tmp_path / "rows.parquet"))
    assert table.numbers(["p"]).schema.types == [pa.float32()]
    assert table.labels("y").type.ordered


def test_standard_streams(monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"p,y\n0.5,1\n")))
    table = open_file("-")
    assert table.title == "standard input"
    assert table.numbers(["p"]).column(0).to_pylist() == [0.5]
    assert table.labels("y").to_pylist() == [1]  # it can be read again
    write_table("-", {"y": np.array([1, 2])})
    assert capsysbinary.readouterr().out == b"y\n1\n2\n"


def test_where_files_may_go(tmp_path):
    (tmp_path / "old.csv").write_text("old")
    with pytest.raises(FileExistsError, match="the file exists; choose another name, or use force=True"):
        check_target(str(tmp_path / "old.csv"))
    check_target(str(tmp_path / "old.csv"), force=True)
    check_target("-")
    check_target("/dev/null")
    with pytest.raises(ValueError, match="there is no folder"):
        check_target(str(tmp_path / "nowhere" / "new.csv"))
    with pytest.raises(ValueError, match="this is a folder"):
        check_target(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
