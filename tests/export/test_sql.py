"""SQL: numbers to the bit, quoting, rows without a decision, and what is refused."""

import math
import sqlite3
import sys
from contextlib import closing

import duckdb
import numpy as np
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.export.dialects import DIALECTS
from metricwise.rules import MixtureRule, TemperatureScaling, WeightedRule
from metricwise.rules.mixture import uniforms
from profiles import examples

NASTY = ["it's", 'a "b"', "back\\slash", "%s; DROP TABLE t; --", "new\nline", "ü 🎲", "$1 {x}", ""]


def run(expression, rows, names=("p",), kinds=None):
    """Evaluate an expression in DuckDB."""
    with duckdb.connect() as connection:
        kinds = kinds or ["DOUBLE"] * len(names)
        columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(names, kinds, strict=True))
        connection.execute(f"CREATE TABLE t ({columns})")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' for _ in names)})", rows)
        return [
            row[0] if len(row) == 1 else row for row in connection.execute(f"SELECT {expression} FROM t").fetchall()
        ]


def yes_no(threshold=0.3):
    return WeightedRule.from_thresholds(threshold, classes=["no", "yes"], pos_label="yes")


# ---------------------------------------------------------------------------------------------------------- numbers


numbers = st.floats(0, 1e15, allow_subnormal=False) | st.floats(0, 1) | st.floats(0, 1e-200, allow_subnormal=False)


@examples(30)
@given(st.lists(numbers, min_size=20, max_size=20))
def test_literals_are_the_doubles_that_they_stand_for(values):
    duck, lite = duckdb.connect(), sqlite3.connect(":memory:")
    texts = {name: ", ".join(f"1.0 * {dialect.number(x)}" if name == "sqlite" else dialect.number(x) for x in values)
             for name, dialect in DIALECTS.items()}  # fmt: skip
    assert list(duck.execute(f"SELECT {texts['duckdb']}").fetchall()[0]) == values
    assert duck.execute(f"SELECT {', '.join(f'typeof({one})' for one in texts['duckdb'].split(', '))}").fetchall() == [
        ("DOUBLE",) * len(values)
    ]
    assert list(lite.execute(f"SELECT {texts['sqlite']}").fetchone()) == values
    for name in ("postgres", "bigquery", "snowflake", "spark"):
        assert [float(text) for text in texts[name].split(", ")] == values
    duck.close()
    lite.close()


def test_sqlite_reads_long_decimals_wrongly_and_quotients_right():
    """Why SQLite has quotients: some versions miss a decimal of 17 digits by a bit."""
    dialect = DIALECTS["sqlite"]
    assert dialect.number(0.37) == "0.37"
    assert dialect.number(1 / 3) == "(6004799503160661 / 4503599627370496.0 / 4.0)"
    rng = np.random.default_rng(0)
    values = rng.random(3000).tolist()
    lite = sqlite3.connect(":memory:")
    for start in range(0, 3000, 500):
        some = values[start : start + 500]
        assert list(lite.execute(f"SELECT {', '.join(map(dialect.number, some))}").fetchone()) == some
    lite.close()


def test_a_threshold_reads_as_one():
    text = mw.export.to_sql(yes_no(0.37), ["p"], "postgres")
    assert " ".join(text.split()) == (
        """CASE WHEN "p" >= 0 AND "p" <= 0.37 THEN 'no' WHEN "p" > 0.37 AND "p" <= 1 THEN 'yes' END"""
    )
    assert "0.37e0" in mw.export.to_sql(yes_no(0.37), ["p"], "duckdb")


def test_float_columns_are_compared_in_double_precision():
    at = float(np.float32(0.37))  # a bit more than 0.37 in double precision, and equal to it in single
    assert run(mw.export.to_sql(yes_no(0.37), ["p"]), [(at,)], kinds=["FLOAT"]) == ["yes"]
    assert yes_no(0.37).predict(np.array([0.37], dtype=np.float32)) == ["yes"]


# ------------------------------------------------------------------------------------------------------- no decision


def test_rows_that_are_no_probabilities_have_no_decision():
    text = mw.export.to_sql(yes_no(), ["p"])
    rows = [(None,), (math.nan,), (-0.1,), (1.1,), (math.inf,), (0.3,), (0.30000000000000004,)]
    assert run(text, rows) == [None, None, None, None, None, "no", "yes"]
    rule = WeightedRule.from_weights([1, 2, 3], classes=["a", "b", "c"])
    rows = [
        (None, 0.5, 0.5), (math.nan, 0.5, 0.5), (0.5, -0.5, 1.0), (0.2, 0.2, 0.2), (math.inf, 0.0, 0.0), (0.4, 0.5, 0.1)
    ]  # fmt: skip
    assert run(mw.export.to_sql(rule), rows, "abc") == [None] * 5 + ["b"]


def test_scores_that_cannot_be_normalised_have_no_decision():
    rule = WeightedRule(Loss.argmax(2), (np.array(["a", "b"]),), normalize=True)
    rows = [(0.0, 0.0), (-1.0, 2.0), (None, 1.0), (math.nan, 1.0), (math.inf, 1.0), (2.0, 3.0)]
    assert run(mw.export.to_sql(rule), rows, "ab") == [None] * 5 + ["b"]


def test_sqlite_has_no_decision_without_a_number():
    lite = sqlite3.connect(":memory:")
    text = mw.export.to_sql(yes_no(), ["p"], "sqlite")
    query = f"WITH t(p) AS (VALUES (NULL), (-1.0), (2.0), (0.2), (0.7)) SELECT {text} FROM t"
    assert [row[0] for row in lite.execute(query).fetchall()] == [None, None, None, "no", "yes"]
    lite.close()


# ------------------------------------------------------------------------------------------------------------ quoting


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_labels_and_columns_full_of_quotes(dialect):
    """What a dialect writes is read by its own parser as what was meant."""
    rule = WeightedRule.from_weights(np.arange(1, 9), classes=NASTY)
    columns = [name or "empty" for name in NASTY]
    tree = sqlglot.parse_one(mw.export.to_sql(rule, columns, dialect), read=dialect)
    texts = {one.this for one in tree.find_all(sqlglot.exp.Literal) if one.is_string}
    assert texts == set(NASTY)
    assert {one.name for one in tree.find_all(sqlglot.exp.Column)} == set(columns)


def test_labels_full_of_quotes_come_back():
    rule = WeightedRule.from_weights(np.ones(8), classes=NASTY)
    columns = [name or "empty" for name in NASTY]
    assert run(mw.export.to_sql(rule, columns), np.eye(8).tolist(), [c.replace('"', '""') for c in columns]) == NASTY
    lite = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    lite.execute(f"CREATE TABLE t ({names})")
    lite.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 8)})", np.eye(8).tolist())
    assert [row[0] for row in lite.execute(f"SELECT {mw.export.to_sql(rule, columns, 'sqlite')} FROM t")] == NASTY
    lite.close()


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"duckdb", "sqlite", "postgres"}))
def test_other_dialects_mean_the_same(dialect):
    """There is no BigQuery here: its text is read by sqlglot and run in DuckDB."""
    rng = np.random.default_rng(0)
    link = TemperatureScaling(np.array([0.7]), np.array([[0.1, 0.0, -0.3]]))
    for rule in (
        WeightedRule.from_weights([1.0, 2.1, 0.3], classes=["a", "b", "c"]),
        WeightedRule(Loss(full=rng.normal(size=(1, 3, 3))), (np.array(["a", "b", "c"]),), link),
    ):
        proba = rng.dirichlet(np.ones(3), 60)
        text = sqlglot.transpile(mw.export.to_sql(rule, dialect=dialect), read=dialect, write="duckdb")[0]
        assert run(text, proba.tolist(), "abc") == rule.predict(proba).tolist()


# ------------------------------------------------------------------------------------------------------------ columns


def test_columns_are_named_like_classes_and_outputs():
    assert '"no"' in mw.export.to_sql(yes_no())
    assert '"yes"' in mw.export.to_sql(yes_no())
    tags = WeightedRule.from_thresholds({"news": 0.3, "sport": 0.6})
    text = mw.export.to_sql(tags)
    assert run(text, [(0.5, 0.5)], ["news", "sport"]) == [(1, 0)]
    assert text.endswith('AS "sport"')
    classes = (np.array(["no", "yes"]), np.array([1, 2, 3]))
    rule = WeightedRule(Loss.argmax(3), classes, multioutput=True, output_names=("risk", "size"))
    names = ["risk=no", "risk=yes", "size=1", "size=2", "size=3"]
    assert run(mw.export.to_sql(rule), [(0.2, 0.8, 0.2, 0.5, 0.3)], names) == [("yes", 2)]
    unnamed = WeightedRule(Loss.argmax(3), classes, multioutput=True)
    assert '"output_1=3"' in mw.export.to_sql(unnamed)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("p", "columns must be a list of names, got 'p'"),
        (["a", "b", "c"], "columns must have 2 names or 1, that of the second class, for output 0, got 3"),
        (["a", "a"], r"columns must be distinct names, got \['a', 'a'\]"),
        ([1, 2], r"columns must be distinct names, got \[1, 2\]"),
        ([""], "columns must be distinct names"),
    ],
)
def test_columns_that_do_not_fit(columns, message):
    with pytest.raises((TypeError, ValueError), match=f"to_sql: {message}"):
        mw.export.to_sql(yes_no(), columns)


def test_several_outputs_need_as_many_columns():
    rule = WeightedRule.from_thresholds([0.3, 0.6])
    with pytest.raises(ValueError, match="columns must be given for each of the 2 outputs, got 1"):
        mw.export.to_sql(rule, ["a"])
    assert run(mw.export.to_sql(rule, ["a", ["b0", "b1"]]), [(0.5, 0.3, 0.7)], ["a", "b0", "b1"]) == [(1, 1)]


def test_one_column_is_not_enough_for_scores():
    rule = WeightedRule(Loss.argmax(2), (np.array(["a", "b"]),), normalize=True)
    with pytest.raises(ValueError, match="columns must have 2 names for output 0, got 1"):
        mw.export.to_sql(rule, ["a"])


# -------------------------------------------------------------------------------------------------- kinds of decisions


def test_rules_that_always_say_the_same():
    always = WeightedRule.from_thresholds(-math.inf)
    assert run(mw.export.to_sql(always, ["p"]), [(0.0,), (1.0,), (None,)]) == [1, 1, None]
    never = WeightedRule.from_thresholds(math.inf)
    assert run(mw.export.to_sql(never, ["p"]), [(0.0,), (1.0,), (None,)]) == [0, 0, None]


def test_rules_that_are_turned_round():
    rule = WeightedRule(Loss.from_tensor([[1.0, 0.0], [0.0, 2.0]]), (np.array([0, 1]),))
    grid = np.linspace(0, 1, 101)
    for given_rule in (
        rule,
        WeightedRule(rule.loss, rule.classes, TemperatureScaling(np.array([1.5]), np.array([[0.0, 0.2]]))),
    ):
        found = run(mw.export.to_sql(given_rule, ["p"]), grid[:, None].tolist())
        assert found == given_rule.predict(grid).tolist()
        assert found[0] == 1
        assert found[-1] == 0


@pytest.mark.parametrize("labels", [[True, False], [0.5, 1.5], [3, -7], ["x", "y"]])
def test_labels_keep_their_type(labels):
    found = run(mw.export.to_sql(WeightedRule(Loss.argmax(2), (np.array(labels),)), ["a", "b"]), [(1.0, 0.0)], "ab")
    assert found == labels[:1]
    assert type(found[0]) is type(labels[0])


def test_many_classes():
    rng = np.random.default_rng(0)
    rule = WeightedRule.from_weights(rng.random(150))
    proba = rng.dirichlet(np.ones(150), 30)
    columns = [f"c{j}" for j in range(150)]
    lite = sqlite3.connect(":memory:")
    lite.execute(f"CREATE TABLE t ({', '.join(f'{name} REAL' for name in columns)})")
    lite.executemany(f"INSERT INTO t VALUES ({', '.join('?' for _ in columns)})", proba.tolist())
    found = [row[0] for row in lite.execute(f"SELECT {mw.export.to_sql(rule, columns, 'sqlite')} FROM t")]
    lite.close()
    assert found == rule.predict(proba).tolist()


def mixture(weights):
    classes = (np.array([0, 1]),)
    never, always = ([[0, 1], [0, 1]], [[1, 0], [1, 0]])
    rules = tuple(WeightedRule(Loss.from_tensor(loss), classes) for loss in (never, always, never))
    return MixtureRule(rules, np.array(weights), seed=3)


@pytest.mark.parametrize("weights", [[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.4, 0.6, 0.0], [1.0, 0.0, 0.0]])
def test_mixtures_by_a_number(weights):
    rule = mixture(weights)
    draws = uniforms(3, 0, 200, 1)[:, 0]
    p = np.linspace(0, 1, 200)
    text = mw.export.to_sql(rule, ["p"], draw="u")
    found = run(text, np.stack([p, draws], axis=1).tolist(), ["p", "u"])
    assert found == rule.predict(p).tolist()
    assert run(text, [(0.5, None), (0.5, -0.1), (0.5, 1.0), (0.5, math.nan)], ["p", "u"]) == [None] * 4


def test_mixtures_need_a_number():
    with pytest.raises(ValueError, match=r"to_sql: draw must name the column of numbers in \[0, 1\).*got None; a hash"):
        mw.export.to_sql(mixture([0.5, 0.3, 0.2]), ["p"])
    with pytest.raises(ValueError, match="to_sql: draw is only for a MixtureRule, got 'u' with a WeightedRule"):
        mw.export.to_sql(yes_no(), ["p"], draw="u")


# ------------------------------------------------------------------------------------------------------------ refusals


def test_dialects_are_named():
    with pytest.raises(ValueError, match=r"to_sql: dialect must be one of \['duckdb', 'postgres', .*got 'oracle'"):
        mw.export.to_sql(yes_no(), dialect="oracle")


def test_labels_that_sql_has_not():
    mixed = np.empty(2, dtype=object)
    mixed[:] = ["a", 1]
    with pytest.raises(ValueError, match=r"labels of an output must have a single type in SQL, got \['a', 1\]"):
        mw.export.to_sql(WeightedRule(Loss.argmax(2), (mixed,)))
    mixed[:] = ["a", "b\0"]
    with pytest.raises(ValueError, match="labels must not hold the character NUL"):
        mw.export.to_sql(WeightedRule(Loss.argmax(2), (mixed,)))
    mixed[:] = [1, 2**63]
    with pytest.raises(ValueError, match="labels must be integers of 64 bits"):
        mw.export.to_sql(WeightedRule(Loss.argmax(2), (mixed,)))


@pytest.mark.parametrize(
    ("package", "extra", "export"),
    [
        ("sqlglot", "sql", lambda: mw.export.to_sql(yes_no())),
        ("onnx", "onnx", lambda: mw.export.to_onnx(yes_no())),
        ("skl2onnx", "onnx", mw.export.register_converters),
    ],
)
def test_what_is_missing_is_named(monkeypatch, package, extra, export):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError, match=rf"needs {package}, which is not installed: pip install 'metricwise\[{extra}\]'"
    ):
        export()


@pytest.mark.parametrize("export", [mw.export.to_sql, mw.export.to_onnx])
def test_half_a_character(export):
    with pytest.raises(ValueError, match=r"labels must be valid Unicode, got '\\ud800'"):
        export(WeightedRule(Loss.argmax(2), (np.array(["a", "\ud800"]),)))


def test_links_whose_powers_vanish():
    rule = WeightedRule(Loss.argmax(3), (np.arange(3),), TemperatureScaling(np.array([80.0]), np.zeros((1, 3))))
    with pytest.raises(ValueError, match=r"so steep that its powers vanish, got a temperature of 80.*use to_python"):
        mw.export.to_sql(rule)


@pytest.mark.parametrize("export", [mw.export.to_sql, mw.export.to_python, mw.export.to_onnx])
@pytest.mark.parametrize("thing", [3, None, object(), WeightedRule, Loss.argmax(2)])
def test_what_is_no_rule(export, thing):
    with pytest.raises(
        TypeError, match=f"{export.__name__}: rule must be a WeightedRule, a MixtureRule or a GroupedRule, .*got "
    ):
        export(thing)


@pytest.mark.parametrize("export", [mw.export.to_sql, mw.export.to_python, mw.export.to_onnx])
def test_what_stands_for_a_rule(export, tmp_path):
    rule = yes_no()
    text = rule.to_json(tmp_path / "rule.json")
    solution = mw.optimize(
        [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1", strategy=mw.Strategy(recalibrate=False, confusion="labels")
    )
    assert export(rule) == export(text) == export(tmp_path / "rule.json") == export(rule.to_dict())
    assert export(solution) == export(solution.rule)


@pytest.mark.parametrize(
    ("export", "name"),
    [(mw.export.to_sql, "rule.sql"), (mw.export.to_python, "rule.py"), (mw.export.to_onnx, "rule.onnx")],
)
def test_files_are_whole_or_not_there(export, name, tmp_path):
    path = tmp_path / name
    result = export(yes_no(), path=path)
    content = result.SerializeToString() if hasattr(result, "SerializeToString") else result.encode()
    assert path.read_bytes().rstrip(b"\n") == content.rstrip(b"\n")
    assert [one.name for one in tmp_path.iterdir()] == [name]
    with pytest.raises(FileNotFoundError):
        export(yes_no(), path=tmp_path / "nowhere" / name)
    mixed = np.empty(2, dtype=object)
    mixed[:] = ["a", complex(1)]
    with pytest.raises(TypeError, match="classes must be text, integers, floats or booleans"):
        export(WeightedRule(Loss.argmax(2), (mixed,)), path=path)
    assert path.read_bytes().rstrip(b"\n") == content.rstrip(b"\n")


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_booleans_beside_an_abstention_are_integers(dialect):
    price = Loss(full=np.array([[[0.0, 1.0, 0.2], [1.0, 0.0, 0.2], [0.0, 0.0, 0.0]]]))
    rule = WeightedRule(price, (np.array([False, True]),), abstain_label=-1)
    p = [0.1, 0.5, 0.9]
    text = mw.export.to_sql(rule, ["p"], dialect=dialect)
    if dialect == "duckdb":
        found = run(text, [(value,) for value in p])
    else:
        with closing(sqlite3.connect(":memory:")) as connection:
            found = [connection.execute(f"SELECT {text} FROM (SELECT ? AS p)", (value,)).fetchone()[0] for value in p]
    assert found == [0, -1, 1] == [int(label) for label in rule.predict(p)]
    assert {type(value) for value in found} == {int}
    assert '"False"' in mw.export.to_sql(rule, dialect=dialect)  # a column is named like the class


def test_no_column_is_named_by_an_empty_text():
    rule = WeightedRule.from_weights([1, 2, 3], classes=["", "a", "b"])
    with pytest.raises(
        ValueError, match="to_sql: columns must be given, because no column can be named like the class"
    ):
        mw.export.to_sql(rule)
    assert run(mw.export.to_sql(rule, ["x", "y", "z"]), [(0.9, 0.05, 0.05), (0.1, 0.1, 0.8)], "xyz") == ["", "b"]
    several = WeightedRule.from_thresholds([0.2, 0.3], output_names=["", "b"])
    for columns in (None, ["x", "y"]):
        with pytest.raises(
            ValueError, match=r"to_sql: the outputs of the rule must have names in SQL, got \['', 'b'\]"
        ):
            mw.export.to_sql(several, columns)
