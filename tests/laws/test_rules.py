"""Laws that every rule obeys: each kind and variant of `rule_records.py`."""

import copy
import html
import json
import pickle
import re
import sqlite3
from dataclasses import replace
from html.parser import HTMLParser

import dask.array as da
import dask.dataframe as dd
import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

import metricwise as mw
from golden.containers import Tensor
from laws.new_kind import RECORD
from laws.rule_records import EXPORTS, RECORDS, array_of, distribution_by_definition
from metricwise import report
from metricwise.rules import GroupedRule, MixtureRule, SegmentedRule, load_rule
from metricwise.rules.load import KINDS
from metricwise.rules.mixture import uniforms

ALL = RECORDS | {"a kind that the library does not know": RECORD}


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(KINDS, RECORD.rule.kind, type(RECORD.rule))


def for_rules(applies):
    return pytest.mark.parametrize("name", [name for name, record in ALL.items() if applies(record)])


every_rule = for_rules(lambda record: True)
certain_rules = for_rules(lambda record: not record.drawn)
drawn_rules = for_rules(lambda record: record.drawn)


def written_by(export):
    return for_rules(lambda record: export not in record.refused)


def refused_by(what):
    return for_rules(lambda record: what in record.refused)


# ------------------------------------------------------------------------------------------------------ how to decide


def padded(rule, rows):
    """Those of several outputs as one array (N, M, K), and others as they are."""
    if not rule.schema.multioutput or rows.single:
        return array_of(rule, rows)
    width = rule.schema.width
    return np.stack([np.pad(eta, ((0, 0), (0, width - eta.shape[1]))) for eta in rows.columns], axis=1)


def predict(rule, rows, start=0, drawn=False):
    """What a rule decides about rows that begin at a position."""
    at = {"start": start} if drawn else {}
    return rule.predict(array_of(rule, rows), **rows.needs, **at)


def decided(record):
    return predict(record.rule, record.rows)


def distribution(rule, rows):
    """The distribution as (N, M, D)."""
    shares = rule.distribution(array_of(rule, rows), **rows.needs)
    return shares if rule.schema.multioutput else shares[:, None]


def codes_of(rule, labels):
    """Positions (N, M) of labels among the decisions, abstentions in the last column of a distribution."""
    labels = np.asarray(labels, dtype=object).reshape(len(labels), -1)
    codes = np.empty(labels.shape, dtype=int)
    for m, decisions in enumerate(rule.schema.decisions):
        place = {label: j for j, label in enumerate(decisions.tolist())}
        codes[:, m] = [place[label] for label in labels[:, m]]
    if rule.abstain_label is not None:
        codes[codes == rule.schema.n_decisions - 1] = rule.schema.decision_width - 1
    return codes


def alike(left, right):
    return np.asarray(left, dtype=object).tolist() == np.asarray(right, dtype=object).tolist()


def with_seed(rule, seed):
    if isinstance(rule, GroupedRule):
        return replace(rule, rules=tuple(with_seed(part, seed) for part in rule.rules))
    if isinstance(rule, SegmentedRule):
        return replace(rule, common=with_seed(rule.common, seed))
    return replace(rule, seed=seed) if isinstance(rule, MixtureRule) else rule


def test_the_registry_has_every_kind_of_rule():
    assert {record.rule.to_dict()["kind"] for record in ALL.values()} == set(KINDS)


# --------------------------------------------------------------------------------------------------- what is decided


@every_rule
def test_the_distribution_is_that_of_the_definition(name):
    record = ALL[name]
    np.testing.assert_array_equal(distribution(record.rule, record.rows), distribution_by_definition(record))


@certain_rules
def test_a_rule_that_draws_nothing_is_certain_of_its_decision(name):
    record = ALL[name]
    codes = codes_of(record.rule, decided(record))
    expected = np.eye(record.rule.schema.decision_width)[codes]
    np.testing.assert_array_equal(distribution(record.rule, record.rows), expected)


@drawn_rules
def test_draws_are_as_frequent_over_seeds_as_the_distribution_says(name):
    record, n_seeds = ALL[name], 400
    exact, counts = distribution(record.rule, record.rows), 0
    for seed in range(n_seeds):
        codes = codes_of(record.rule, predict(with_seed(record.rule, seed), record.rows))
        counts = counts + np.eye(exact.shape[2])[codes]
    assert ((exact > 0) & (exact < 1)).any()
    # Five standard deviations of a binomial; what is certain happens always.
    assert (np.abs(counts - n_seeds * exact) <= 5 * np.sqrt(n_seeds * exact * (1 - exact)) + 1e-9).all()


@drawn_rules
def test_draws_are_as_frequent_over_rows_as_the_distribution_says(name):
    record, n_copies = ALL[name], 500
    exact, rows = distribution(record.rule, record.rows), record.rows.take(np.repeat(np.arange(40), n_copies))
    codes = codes_of(record.rule, predict(record.rule, rows))
    counts = np.eye(exact.shape[2])[codes].reshape(40, n_copies, *exact.shape[1:]).sum(axis=1)
    assert (np.abs(counts - n_copies * exact) <= 5 * np.sqrt(n_copies * exact * (1 - exact)) + 1e-9).all()


@every_rule
def test_predictions_are_labels_of_the_rule(name):
    record = ALL[name]
    labels = decided(record)
    assert labels.shape == ((40, len(record.rows.eta)) if record.rule.schema.multioutput else (40,))
    for m, column in enumerate(labels.reshape(40, -1).T):
        allowed = [*record.rule.schema.classes[m].tolist(), record.rule.abstain_label]
        assert {(type(label), label) for label in column.tolist()} <= {(type(label), label) for label in allowed}


# ---------------------------------------------------------------------------------------------------- row by row


@every_rule
def test_a_row_is_decided_alone_as_among_others(name):
    record = ALL[name]
    whole = decided(record)
    for places in (slice(0, 1), slice(7, 8), slice(3, 20), slice(39, 40)):
        part = predict(record.rule, record.rows.take(places), places.start, record.drawn)
        assert alike(part, whole[places])


@every_rule
def test_rows_in_another_order_are_decided_in_that_order(name):
    """Of rules that draw, which go by the position of a row, the distribution is."""
    record = ALL[name]
    order = np.random.default_rng(0).permutation(40)
    shuffled = record.rows.take(order)
    np.testing.assert_array_equal(distribution(record.rule, shuffled), distribution(record.rule, record.rows)[order])
    if not record.drawn:
        assert alike(predict(record.rule, shuffled), decided(record)[order])


NEEDS = {
    "sensitive_features": "the rule has a loss for each group, so it needs sensitive_features",
    "segments": "the rule has a calibration for each segment, so it needs segments, the segment of every row",
    "cost": "cost must give the costs of decisions about each of the 40 rows, got None",
}


@every_rule
def test_what_a_rule_needs_besides_probabilities_is_asked_for(name):
    record = ALL[name]
    proba, needs = array_of(record.rule, record.rows), record.rows.needs
    if not needs:
        assert alike(record.rule.predict(proba), decided(record))
    for need, values in needs.items():
        for call in (record.rule.predict, record.rule.distribution):
            with pytest.raises(ValueError, match=NEEDS[need]):
                call(proba)
            with pytest.raises(ValueError, match=r"(for each of the 40 rows|cost must have shape \(40, ).*got .*\(39,"):
                call(proba, **{need: values[:39]})


# -------------------------------------------------------------------------------------------------------- containers


def in_float32(rule, rows):
    proba = array_of(rule, rows)
    proba = [eta.astype(np.float32) for eta in proba] if isinstance(proba, list) else proba.astype(np.float32)
    return rule.predict(proba, **rows.needs)


def in_lists(rule, rows):
    return rule.predict(padded(rule, rows).tolist(), **{key: values.tolist() for key, values in rows.needs.items()})


def in_one_array(rule, rows):
    return rule.predict(np.asfortranarray(padded(rule, rows)), **rows.needs)


def in_strides(rule, rows):
    proba = array_of(rule, rows)
    both = [np.repeat(eta, 2, axis=0)[::2] for eta in (proba if isinstance(proba, list) else [proba])]
    return rule.predict(both if isinstance(proba, list) else both[0], **rows.needs)


def frames_of(rule, rows, make):
    """Frames whose columns are named and in another order than the classes, or the outputs, are."""
    names, schema = rule.schema.output_names, rule.schema
    if rows.single:
        if not schema.multioutput:
            return make({"p": rows.columns[0][:, 0]})["p"]
        named = dict(zip(names, np.hstack(rows.columns).T, strict=True))
        return make(dict(reversed(named.items())))
    each = [
        make(dict(reversed(list(zip(labels.tolist(), eta.T, strict=True)))))
        for labels, eta in zip(schema.classes, rows.columns, strict=True)
    ]
    return each if schema.multioutput else each[0]


def framed_needs(rule, rows, make):
    if rows.group is None:
        return rows.needs
    names = [name if isinstance(name, tuple) else (name,) for name in rows.group]
    columns = dict(zip(rule.features, map(list, zip(*names, strict=True)), strict=True))
    return {rows.parameter: make({"unused": np.zeros(rows.n_rows), **dict(reversed(columns.items()))})}


def in_pandas(rule, rows):
    return rule.predict(frames_of(rule, rows, pd.DataFrame), **framed_needs(rule, rows, pd.DataFrame))


def in_polars(rule, rows):
    def make(columns):
        return pl.DataFrame({str(name): values for name, values in columns.items()})

    return rule.predict(frames_of(rule, rows, make), **framed_needs(rule, rows, make))


def in_tensors(rule, rows):
    return rule.predict(Tensor(padded(rule, rows)), **rows.needs)


def on_a_device(rule, rows):
    return rule.predict(Tensor(padded(rule, rows), device=True), **rows.needs)


IN_MEMORY = [in_float32, in_lists, in_one_array, in_strides, in_pandas, in_polars, in_tensors, on_a_device]


@every_rule
@pytest.mark.parametrize("predict_in", IN_MEMORY, ids=lambda function: function.__name__)
def test_every_container_in_memory_is_decided_alike(name, predict_in):
    record = ALL[name]
    assert alike(predict_in(record.rule, record.rows), decided(record))


def in_dask(rule, rows):
    proba = array_of(rule, rows)
    whole = proba if isinstance(proba, list) else [proba]
    lazy = [da.from_array(eta, chunks=(7, *eta.shape[1:])) for eta in whole]
    return rule.predict(lazy if isinstance(proba, list) else lazy[0], **rows.needs)


def in_dask_frames(rule, rows):
    frames = frames_of(rule, rows, pd.DataFrame)
    if isinstance(frames, list):
        return rule.predict([dd.from_pandas(frame, npartitions=3) for frame in frames], **rows.needs)
    return rule.predict(dd.from_pandas(frames, npartitions=3), **rows.needs)


@written_by("dask")
def test_dask_arrays_are_decided_alike_and_lazily(name):
    record = ALL[name]
    lazy = in_dask(record.rule, record.rows)
    assert isinstance(lazy, da.Array)
    assert alike(lazy.compute(scheduler="sync"), decided(record))


@written_by("dask_frame")
def test_dask_frames_are_decided_alike_and_lazily(name):
    record = ALL[name]
    lazy = in_dask_frames(record.rule, record.rows)
    labels = lazy.compute(scheduler="sync")
    assert isinstance(labels, pd.Series | pd.DataFrame)
    assert alike(labels.to_numpy(), decided(record))


@refused_by("dask")
def test_dask_arrays_are_refused_where_they_cannot_be_read(name):
    record = ALL[name]
    with pytest.raises(TypeError, match=record.refused["dask"]):
        in_dask(record.rule, record.rows)


@refused_by("dask_frame")
def test_dask_frames_are_refused_where_they_cannot_be_read(name):
    record = ALL[name]
    with pytest.raises(TypeError, match=record.refused["dask_frame"]):
        in_dask_frames(record.rule, record.rows)


def table_of(rule, rows):
    """A table whose columns are named as `optimize` and `predict_table` know them."""
    names = rule.schema.output_names or [f"decision_{m}" for m in range(len(rows.eta))]
    columns = {}
    for m, (labels, eta) in enumerate(zip(rule.schema.classes, rows.columns, strict=True)):
        if rows.single:
            labels = labels[1:2]
        head = f"{names[m]}=" if rule.schema.multioutput else ""
        columns |= {f"{head}{label}": eta[:, c] for c, label in enumerate(labels.tolist())}
    return pa.table(columns)


@written_by("table")
def test_tables_are_decided_alike(name, tmp_path):
    record, path = ALL[name], tmp_path / "decisions.feather"
    table = table_of(record.rule, record.rows)
    one_score = table.column_names[0] if record.rule.schema.input.graded else None
    assert mw.predict_table(record.rule, mw.Table(table, proba=one_score), path) == 40
    columns = [column.to_pylist() for column in pa.feather.read_table(path).columns]
    for column, labels in zip(columns, decided(record).reshape(40, -1).T.tolist(), strict=True):
        of_one_type = len({type(label) for label in labels}) == 1
        assert column == (labels if of_one_type else [str(label) for label in labels])  # a column has one type


@refused_by("table")
def test_tables_are_refused_where_they_cannot_be_read(name, tmp_path):
    record = ALL[name]
    with pytest.raises(ValueError, match=record.refused["table"]):
        mw.predict_table(record.rule, pa.table({"p": [0.5]}), tmp_path / "decisions.csv")


# -------------------------------------------------------------------------------------------------------------- files


def pickled(rule):
    return pickle.loads(pickle.dumps(rule))  # noqa: S301


@every_rule
def test_json_gives_the_same_rule(name):
    record = ALL[name]
    rule, text = record.rule, record.rule.to_json()
    for again in (load_rule(text), type(rule).from_json(text), type(rule).from_dict(rule.to_dict())):
        assert type(again) is type(rule)
        assert again == rule
        assert again.metadata.to_dict() == rule.metadata.to_dict()
        assert again.to_json() == text
        assert alike(predict(again, record.rows), decided(record))
        assert again.describe() == rule.describe()


@every_rule
@pytest.mark.parametrize("copied", [pickled, copy.deepcopy])
def test_copies_are_the_same_rule(name, copied):
    record = ALL[name]
    again = copied(record.rule)
    assert again == record.rule
    assert again.to_json() == record.rule.to_json()
    assert alike(predict(again, record.rows), decided(record))


@every_rule
def test_facts_survive_and_decide_nothing(name):
    record = ALL[name]
    facts = {"date": "2026-11-17", "by": ["a", {"deep": [1, 2.5, None, True]}]}
    rule = record.rule.with_metadata(**facts)
    assert rule.metadata.to_dict() == {**record.rule.metadata.to_dict(), **facts}
    for again in (rule, load_rule(rule.to_json()), pickled(rule)):
        assert again.metadata.to_dict() == rule.metadata.to_dict()
        assert again == record.rule
        assert alike(predict(again, record.rows), decided(record))
    assert rule.with_metadata(date="later").metadata.to_dict() == {**rule.metadata.to_dict(), "date": "later"}


SENTENCE = re.compile(r"[A-Za-z_.]+: .*\bmust\b.*(, got |; ).*\.", re.DOTALL)
OPTIONAL = {"abstain_label", "other", "input", "labels_per_row", "factor", "form", "label_weight"}


def refusal(document):
    """What is said of a document that is no rule; None where it is one."""
    try:
        load_rule(json.dumps(document))
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def places_in(document, path=()):
    """Every place in a document but what is within facts and rows of numbers, each as a path of keys."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document[:1]):
        yield (*path, key)
        nested = isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict | list))
        if nested and key != "facts":
            yield from places_in(value, (*path, key))


def changed(document, path, value):
    """A copy with another value in a place; `...` takes it out."""
    document = copy.deepcopy(document)
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    if value is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return document


@every_rule
def test_a_document_of_another_kind_or_version_is_refused(name):
    document = ALL[name].rule.to_dict()
    *first, last = map(repr, KINDS)
    for path, value, said in (
        (("kind",), "forest", f"kind must be {', '.join(first)} or {last}, got 'forest'"),
        (("kind",), 3, "kind must be"),
        (("version",), 2, "version must be at most 1, got 2"),
        (("version",), None, "version must be an integer from 1 to 1, got None"),
        (("format",), "other", "format must be 'metricwise-rule', got 'other'"),
        (("surplus",), 1, "the rule must have only the fields .*, got also 'surplus'"),
    ):
        assert re.search(said, refusal(changed(document, path, value)))
    others = [kind for kind in KINDS if kind != document["kind"]]
    assert all(SENTENCE.fullmatch(refusal({**document, "kind": kind})) for kind in others)


@every_rule
def test_a_document_without_a_field_is_refused(name):
    document = ALL[name].rule.to_dict()
    for path in places_in(document):
        said = refusal(changed(document, path, ...))
        optional = path[-1] in OPTIONAL or isinstance(path[-1], int)
        assert (said is None and optional) or SENTENCE.fullmatch(said), (path, said)


@every_rule
@pytest.mark.parametrize("value", [None, True, "text", [], {}, -3], ids=repr)
def test_a_document_with_another_value_in_a_place_is_a_rule_or_refused_by_a_sentence(name, value):
    document = ALL[name].rule.to_dict()
    for path in places_in(document):
        said = refusal(changed(document, path, value))
        assert said is None or SENTENCE.fullmatch(said), (path, said)


# ------------------------------------------------------------------------------------------------------------ exports


def rows_for_python(rule, rows):
    columns = [eta.tolist() for eta in rows.columns]
    if rows.single:
        columns = [[p for (p,) in column] for column in columns]
    return [list(row) for row in zip(*columns, strict=True)] if rule.schema.multioutput else columns[0]


@written_by("python")
def test_python_source_decides_alike(name):
    record = ALL[name]
    names = {}
    exec(compile(mw.export.to_python(record.rule), "rule.py", "exec"), names)  # noqa: S102
    groups = [] if record.rows.group is None else [record.rows.group]
    labels = names["decide_all"](rows_for_python(record.rule, record.rows), *groups)
    assert labels == decided(record).tolist()


def sql_of(record, dialect):
    """An expression, and a table of the columns that it is of."""
    rule, rows = record.rule, record.rows
    names = [[f"p{m}_{j}" for j in range(eta.shape[1])] for m, eta in enumerate(rows.columns)]
    columns = {name: eta[:, j] for heads, eta in zip(names, rows.columns, strict=True) for j, name in enumerate(heads)}
    options = {}
    if record.drawn:
        parts = getattr(rule, "parts", [rule])
        (seed,) = {part.seed for part in parts if isinstance(part, MixtureRule)}
        draws = uniforms(seed, 0, rows.n_rows, len(rows.eta))
        options["draw"] = [f"u{m}" for m in range(len(rows.eta))]
        columns |= dict(zip(options["draw"], draws.T, strict=True))
    if rows.group is not None:
        each = [name if isinstance(name, tuple) else (name,) for name in rows.group]
        columns |= dict(zip(rule.features, map(list, zip(*each, strict=True)), strict=True))
    return mw.export.to_sql(rule, names if rule.multioutput else names[0], dialect, **options), columns


def run_duckdb(expression, columns):
    with duckdb.connect() as connection:
        connection.register("t", pa.table(columns))
        return connection.execute(f"SELECT {expression} FROM t").fetchall()


def run_sqlite(expression, columns):
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t ({', '.join(columns)})")
    values = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' for _ in columns)})", values)
    rows = connection.execute(f"SELECT {expression} FROM t").fetchall()
    connection.close()
    return rows


@written_by("sql")
@pytest.mark.parametrize(("dialect", "run"), [("duckdb", run_duckdb), ("sqlite", run_sqlite)])
def test_sql_decides_alike(name, dialect, run):
    record = ALL[name]
    answer = run(*sql_of(record, dialect))
    expected = decided(record).tolist()
    assert [list(row) for row in answer] == (expected if record.rule.multioutput else [[label] for label in expected])


@written_by("onnx")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx_decides_alike(name, dtype):
    record = ALL[name]
    rule, rows = record.rule, record.rows
    model = mw.export.to_onnx(rule, dtype=dtype, positive=rows.single)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    proba = padded(rule, rows).astype(dtype)
    feeds = {session.get_inputs()[0].name: proba[:, None] if proba.ndim == 1 else proba}
    if record.drawn:
        feeds["keys"] = np.arange(rows.n_rows)
    tensors = session.run(None, feeds)
    labels = tensors[0] if len(tensors) == 1 else np.stack([tensor.astype(object) for tensor in tensors], axis=1)
    assert alike(labels, decided(record))


@pytest.mark.parametrize("export", EXPORTS)
def test_exports_refuse_what_they_cannot_write(export):
    refused = {name: record for name, record in ALL.items() if export in record.refused}
    assert refused
    for record in refused.values():
        for rule in (record.rule, record.rule.to_json(), record.rule.to_dict()):
            with pytest.raises((TypeError, ValueError), match=record.refused[export]) as caught:
                EXPORTS[export](rule)
            assert str(caught.value).startswith(f"to_{export}: ")


# ---------------------------------------------------------------------------------------------- words, cards, reports


class Page(HTMLParser):
    """The names of elements, and the text outside of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.stack = set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attrs):
        self.elements.add(name)
        self.stack.append(name)

    def handle_endtag(self, name):
        while self.stack and self.stack.pop() != name:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.stack):
            self.texts.append(data)


def labels_to_show(record):
    """The labels that people must be able to read: those of all classes, and that of abstentions."""
    rule = record.rule
    each = {label for labels in rule.schema.classes for label in labels.tolist()} - set(record.hidden)
    return each if rule.abstain_label is None else {*each, rule.abstain_label}


def assert_shown(record, source):
    """Every label is in the text of a page, and none of them is markup."""
    text = "".join(Page(source).texts)
    for label in map(str, labels_to_show(record)):
        assert label in text
        assert html.escape(label, quote=False) == label or label not in source


@every_rule
def test_words_name_every_label(name):
    record = ALL[name]
    text = record.rule.describe()
    assert all(repr(label) in text for label in labels_to_show(record))
    assert all(line.strip() for line in text.splitlines())
    assert type(record.rule).__name__ in str(record.rule)


@every_rule
def test_the_card_names_every_label_and_does_nothing(name):
    record = ALL[name]
    text = record.rule._repr_html_()
    page = Page(text)
    assert not page.elements & {"script", "img", "iframe", "link"}
    assert not page.stack
    assert_shown(record, text)


def reported(record):
    """A report on labels that are drawn, by a metric that every target has."""
    rng, rule = np.random.default_rng(0), record.rule
    columns = [labels[rng.integers(0, len(labels), 40)].astype(object) for labels in rule.schema.classes]
    y = np.stack(columns, axis=1) if rule.schema.multioutput else columns[0]
    options = {"average": "macro"} if rule.schema.multioutput else {}
    return report.render(report.summarize(rule, array_of(rule, record.rows), y, "hamming_accuracy", **options))


@written_by("report")
def test_the_report_names_every_label_and_runs_nothing_of_them(name):
    record = ALL[name]
    source = reported(record)
    assert_shown(record, source)
    assert record.rule.describe().splitlines()[-1].strip() in "".join(Page(source).texts)


@refused_by("report")
def test_reports_on_rows_are_refused_where_a_rule_needs_more(name):
    record = ALL[name]
    with pytest.raises(ValueError, match=record.refused["report"]):
        reported(record)
