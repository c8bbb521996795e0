"""Rules on logits, log-probabilities and scores, and cut points of one score, in every format."""

import math
import sqlite3
from typing import Any

import duckdb
import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.export import converters
from metricwise.export.outputs import IntervalTable
from metricwise.rules import TemperatureScaling, WeightedRule

YES_NO = (np.array(["no", "yes"]),)
LETTERS = (np.array(["a", "b", "c"]),)


def logit_map(temperature, *bias):
    return TemperatureScaling(np.array([temperature]), np.array([bias]), 0.0)


def binary(kind="logits", cost=2.7, **options):
    loss = Loss.from_tensor([[0.0, 1.0], [cost, 0.0]])
    return WeightedRule(loss, YES_NO, logit_map(0.8, 0.0, 0.3), input=kind, **options)


def with_loss(kind="logits", temperature=0.8, **arrays):
    loss = Loss(**{name: np.array([array]) for name, array in arrays.items()})
    return WeightedRule(loss, LETTERS, logit_map(temperature, 0.0, 0.3, -0.2), input=kind)


WEIGHTS = {"diagonal": [-1.0, -2.0, -3.0], "offset": [0.0, 0.0, 0.0]}
SOME_ZERO = {"diagonal": [-1.0, 0.0, -3.0], "offset": [0.0, 0.0, 0.0]}
OFFSETS = {"diagonal": [-1.0, -2.0, -3.0], "offset": [0.0, 0.1, 0.4]}
FULL = {"full": [[0.0, 1.0, 3.0], [1.5, 0.0, 1.0], [4.0, 1.0, 0.0]]}


# ------------------------------------------------------------------------------------------------------------- formats


def load(rule):
    names: dict[str, Any] = {}
    exec(compile(mw.export.to_python(rule), "rule.py", "exec"), names)  # noqa: S102
    return names


def in_python(rule, z):
    return load(rule)["decide_all"](z.tolist())


def in_onnx(rule, z, positive=None, dtype="float64"):
    model = mw.export.to_onnx(rule, positive=(z.ndim == 1) if positive is None else positive, dtype=dtype)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: z[:, None] if z.ndim == 1 else z})[0].tolist()


def names_of(z):
    return ["z"] if z.ndim == 1 else [f"z{j}" for j in range(z.shape[1])]


def in_duckdb(rule, z):
    text = mw.export.to_sql(rule, names_of(z))
    table = pa.table(dict(zip(names_of(z), z.reshape(len(z), -1).T, strict=True)))
    with duckdb.connect() as connection:
        connection.register("t", table)
        return [row[0] for row in connection.execute(f"SELECT {text} FROM t").fetchall()]


def in_sqlite(rule, z):
    names, text = names_of(z), mw.export.to_sql(rule, names_of(z), "sqlite")
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t ({', '.join(f'{name} REAL' for name in names)})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' for _ in names)})", z.reshape(len(z), -1).tolist())
    found = [row[0] for row in connection.execute(f"SELECT {text} FROM t").fetchall()]
    connection.close()
    return found


FORMATS = [in_python, in_onnx, in_duckdb, in_sqlite]


# --------------------------------------------------------------------------------------------------------- two classes


def test_a_threshold_reads_in_the_unit_of_the_column():
    rule = binary("scores")
    last = rule.threshold
    assert abs(last - (math.log(1 / 2.7) - 0.3) / 0.8) < 1e-12
    text = " ".join(mw.export.to_sql(rule, ["score"], "postgres").split())
    assert text == (
        f"""CASE WHEN "score" <= {last} THEN 'no' WHEN "score" > {last} """
        """AND "score" <= CAST('inf' AS DOUBLE PRECISION) THEN 'yes' END"""
    )
    assert "EXP" not in mw.export.to_sql(rule, ["z0", "z1"], "postgres")
    assert "Exp" not in {node.op_type for node in mw.export.to_onnx(rule, positive=True).graph.node}
    source = mw.export.to_python(rule)
    assert f'"cuts": [{last!r}]' in source
    assert "math.exp(logit" not in source


@pytest.mark.parametrize("decide", FORMATS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_one_column(decide, kind):
    rule = binary(kind)
    t = rule.threshold
    z = np.array([t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf), 0.0, -3.0, 800.0, -1e6, 1e150, np.inf, -np.inf])
    expected = np.where(z > t, "yes", "no").tolist()
    assert decide(rule, z) == expected == rule.predict(z).tolist()


@pytest.mark.parametrize("decide", FORMATS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", ["logits", "log_proba", "scores"])
def test_two_columns(decide, kind):
    rule = binary(kind)
    z = np.random.default_rng(0).normal(0, 3, (200, 2)) * np.array([1.0, 1.0, 300.0, 1e5])[np.arange(200) % 4, None]
    if kind == "log_proba":
        z = z - np.logaddexp(z[:, :1], z[:, 1:])
    z[:3] = [[-np.inf, 0.0], [0.0, -np.inf], [0.0, -1e5]]
    expected = np.where(z[:, 1] - z[:, 0] > rule.threshold, "yes", "no").tolist()
    assert decide(rule, z) == expected == rule.predict(z).tolist()


@pytest.mark.parametrize("decide", FORMATS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("loss", [[[0, 1], [0, 1]], [[1, 0], [1, 0]], [[1.0, 0.0], [0.0, 2.0]]])
def test_always_never_and_turned_round(decide, loss):
    rule = WeightedRule(Loss.from_tensor(loss), YES_NO, logit_map(0.8, 0.0, 0.3), input="logits")
    z = np.array([-np.inf, -1e5, -2.0, 0.0, 2.0, 1e5, np.inf])
    assert decide(rule, z) == rule.predict(z).tolist()


@pytest.mark.parametrize("decide", FORMATS, ids=lambda one: one.__name__)
def test_abstaining_between_two_thresholds(decide):
    price = Loss(full=np.array([[[0.0, 1.0, 0.25], [1.0, 0.0, 0.2], [0.0, 0.0, 0.0]]]))
    rule = WeightedRule(price, YES_NO, logit_map(0.8, 0.0, 0.3), abstain_label="ask", input="logits")
    low, high = (region.high for region in rule.regions[:-1])
    z = np.array([low, np.nextafter(low, 9), high, np.nextafter(high, 9), 700.0, -1e6, np.inf])
    expected = ["no", "ask", "ask", "yes", "yes", "no", "yes"]
    assert decide(rule, z) == expected == rule.predict(z).tolist()
    both = np.random.default_rng(0).normal(0, 3, (100, 2))
    assert decide(rule, both) == rule.predict(both).tolist()
    assert set(rule.predict(both).tolist()) == {"no", "yes", "ask"}


def test_log_odds_where_probabilities_are_all_one():
    """Gaussian naive Bayes: the best threshold lies at log-odds of about 95, where the probability is 1.0."""
    X, y = load_digits(return_X_y=True)
    y = (y == 8).astype(int)
    logs = GaussianNB().fit(X[::2], y[::2]).predict_log_proba(X[1::2])
    rule = mw.optimize(logs, y[1::2], "f1", input="log_proba").rule
    assert rule.threshold > 60
    for decide in FORMATS:
        assert decide(rule, logs) == rule.predict(logs).tolist()


# -------------------------------------------------------------------------------------------------------- more classes


def far_rows(n=300):
    rng = np.random.default_rng(1)
    z = rng.normal(0, 3, (n, 3)) * np.array([1.0, 1.0, 400.0, 1e4])[np.arange(n) % 4, None]
    z += np.array([0.0, 0.0, 1e3, -1e5])[np.arange(n) // 4 % 4, None]
    z[:20, 1], z[20:30, 0] = -np.inf, -np.inf
    z[25:30, 2], z[30:40] = -np.inf, 0.0
    return z


@pytest.mark.parametrize("decide", FORMATS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("loss", [WEIGHTS, SOME_ZERO, OFFSETS, FULL], ids=["weights", "zero", "offsets", "full"])
def test_numbers_far_apart(decide, loss):
    rule, z = with_loss(**loss), far_rows()
    found = decide(rule, z)
    assert found == rule.predict(z).tolist()
    scores = softmax(0.8 * z + [0.0, 0.3, -0.2], axis=1) @ rule.loss.tensor()[0]
    clear = np.diff(np.sort(scores, axis=1)[:, :2], axis=1)[:, 0] > 1e-9
    assert (np.array(found)[clear] == LETTERS[0][scores.argmin(axis=1)][clear]).all()
    assert clear.sum() > 200


@pytest.mark.parametrize("decide", [in_onnx, in_duckdb], ids=lambda one: one.__name__)
@pytest.mark.parametrize("temperature", [0.8, 1.0])
def test_single_precision_is_widened_first(decide, temperature):
    z = far_rows().astype(np.float32)
    options = {"dtype": "float32"} if decide is in_onnx else {}
    for loss in (WEIGHTS, OFFSETS, FULL):
        rule = with_loss(temperature=temperature, **loss)
        assert decide(rule, z, **options) == rule.predict(z).tolist()


@pytest.mark.parametrize("decide", [in_python, in_onnx], ids=lambda one: one.__name__)
def test_one_certain_class(decide):
    z = np.array([[np.inf, 0.0, 3.0], [1.0, np.inf, -np.inf], [1e3, 5.0, np.inf]])
    for loss in (WEIGHTS, OFFSETS, FULL):
        rule = with_loss(**loss)
        assert decide(rule, z) == rule.predict(z).tolist() == ["a", "b", "c"]


def test_weights_are_compared_in_log_space():
    text = " ".join(mw.export.to_sql(with_loss(**WEIGHTS), dialect="postgres").split())
    shifts = [math.log(w) / 0.8 + c / 0.8 for w, c in ((1, 0.0), (2, 0.3), (3, -0.2))]
    assert "EXP" not in text
    assert 'THEN CASE GREATEST("a", "b" + ' in text
    found = [float(part.split(")")[0].split(",")[0]) for part in text.split(" + ")[1:3]]
    np.testing.assert_allclose(found, shifts[1:], rtol=1e-12)


# ------------------------------------------------------------------------------------------------ rows without decision


@pytest.mark.parametrize("decide", [in_duckdb, in_sqlite], ids=lambda one: one.__name__)
def test_rows_that_have_no_decision(decide):
    one = np.array([math.nan, 1.0])
    assert decide(binary(), one) == [None, "yes"]
    two = np.array([[math.nan, 1.0], [1.0, math.nan], [-math.inf, -math.inf], [math.inf, math.inf], [0.0, 1.0]])
    assert decide(binary(), two) == [None] * 4 + ["yes"]
    three = np.array([[math.nan, 1, 1], [1, math.nan, 1], [-math.inf] * 3, [math.inf, 0, math.inf], [0.0, 0.0, 9.0]])
    for loss in (WEIGHTS, OFFSETS, FULL):
        assert decide(with_loss(**loss), three) == [None] * 4 + ["c"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (math.nan, "the numbers of .* must not be NaN"),
        ([0.0, math.nan], "the numbers of .* must not be NaN"),
        ([-math.inf, -math.inf], "one of .* at most must be inf, and one above -inf"),
        ([math.inf, math.inf], "one of .* at most must be inf"),
        ([0.0, 1.0, 2.0], "one number for each of the classes"),
        ([0.0], "one number for each of the classes"),
    ],
)
def test_python_checks_its_numbers(row, message):
    with pytest.raises(ValueError, match=message):
        load(binary())["decide"](row)


def test_python_of_several_classes_checks_its_numbers():
    decide = load(with_loss(**FULL))["decide"]
    for row, message in (
        (1.0, "one number for each of the classes"),
        ([0.0, 1.0], "one number for each"),
        ([0.0, 1.0, math.nan], "must not be NaN"),
        ([math.inf, 1.0, math.inf], "at most must be inf"),
    ):
        with pytest.raises(ValueError, match=message):
            decide(row)


def test_log_probabilities_are_of_all_classes():
    rule = binary("log_proba")
    with pytest.raises(ValueError, match="to_sql: columns must have 2 names for output 0, got 1"):
        mw.export.to_sql(rule, ["z"])
    with pytest.raises(ValueError, match="to_onnx: positive must be False if the input is log-probabilities"):
        mw.export.to_onnx(rule, positive=True)
    decide = load(rule)["decide"]
    assert decide([math.log(0.9), math.log(0.1)]) == "no"
    with pytest.raises(ValueError, match="one number for each of the classes"):
        decide(-0.1)
    with pytest.raises(ValueError, match="must be logarithms of a sum of 1"):
        decide([3.0, 1e4])


# --------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("kind", "name"), [("logits", "logits"), ("log_proba", "log_probabilities"), ("scores", "scores")]
)
def test_names_are_those_of_the_input(kind, name):
    model = mw.export.to_onnx(with_loss(kind, **FULL))
    assert [tensor.name for tensor in model.graph.input] == [name]
    source = mw.export.to_python(with_loss(kind, **FULL))
    assert source.startswith(f'"""Decisions by {name.replace("_", "-")}, written by')
    assert f"def decide({name}):" in source
    assert "NORMALIZE" not in source
    assert "probabilities of the classes" not in source.replace("log-probabilities of the classes", "")


def test_several_outputs_have_a_column_each():
    link = TemperatureScaling(np.array([0.8, 1.2]), np.array([[0.0, 0.3], [0.1, 0.0]]), 0.0)
    names, loss = ("risk", "size"), Loss.from_tensor([[0.0, 1.0], [2.0, 0.0]])
    rule = WeightedRule(loss, (np.arange(2),) * 2, link, True, output_names=names, input="logits")
    z = np.random.default_rng(0).normal(0, 2, (50, 2))
    expected = (z > rule.thresholds).astype(int).tolist()
    assert in_onnx(rule, z, positive=True) == load(rule)["decide_all"](z.tolist()) == expected
    table = pa.table({"risk": z[:, 0], "size": z[:, 1]})
    with duckdb.connect() as connection:
        connection.register("t", table)
        found = connection.execute(f"SELECT {mw.export.to_sql(rule)} FROM t").fetchall()
    assert [list(row) for row in found] == expected


# -------------------------------------------------------------------------------------------------- behind a classifier


def network(*outputs):
    """A model whose outputs all are its input."""
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    nodes = [helper.make_node("Identity", ["X"], [name], name=f"{name}_node") for name in outputs]
    values = [helper.make_tensor_value_info(name, double, ["N", 3]) for name in outputs]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("X", double, ["N", 3])], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_appended_to_a_network():
    rule, z = with_loss(**FULL), far_rows()
    for model in (
        mw.export.to_onnx(rule, append_to=network("out")),
        mw.export.to_onnx(rule, append_to=network("logits", "probabilities")),
        mw.export.to_onnx(rule, append_to=network("probabilities"), probability_output="probabilities"),
    ):
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        assert session.run(None, {"X": z})[0].tolist() == rule.predict(z).tolist()
    with pytest.raises(
        ValueError, match=r"append_to must have one output of logits, got \['probabilities'\].*probabilities are none"
    ):
        mw.export.to_onnx(rule, append_to=network("probabilities"))


def test_converters_refuse_classifiers_on_scores():
    class Classifier:
        def _fitted(self):
            return None, with_loss("log_proba", **FULL)

    with pytest.raises(ValueError, match="a Classifier that decides by log-probabilities cannot be converted"):
        converters._fitted(Classifier())


# ---------------------------------------------------------------------------------------------------------- cut points


def graded(cuts, classes, z):
    """Labels of numbers (N, M): as many cuts as lie strictly below."""
    outputs = zip(cuts, classes, z.T, strict=True)
    return np.stack(
        [labels[np.searchsorted(points, column, side="left")] for points, labels, column in outputs], axis=1
    )


GRADES = np.array(["low", "mid", "high", "top"])


@pytest.mark.parametrize("decide", FORMATS, ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    "cuts",
    [
        [-1.5, 0.25, 3.0],
        [0.25, 0.25, 3.0],
        [-np.inf, 0.25, np.inf],
        [-np.inf, -np.inf, 0.1],
        [np.inf, np.inf, np.inf],
        [-np.inf, -np.inf, -np.inf],
        [1 / 3, 1e5, 1e6],
    ],
)
def test_cut_points_of_one_score(decide, cuts):
    rule = mw.CutPointRule([cuts], (GRADES,))
    finite = [cut for cut in cuts if np.isfinite(cut)]
    near = [number for cut in finite for number in (cut, np.nextafter(cut, 9e9), np.nextafter(cut, -9e9))]
    z = np.array([*near, -4.0, 0.0, 1.0, 2e6, -1e100])
    assert decide(rule, z) == graded([cuts], [GRADES], z[:, None])[:, 0].tolist() == rule.predict(z).tolist()


@pytest.mark.parametrize("decide", FORMATS, ids=lambda one: one.__name__)
def test_a_cut_between_two_classes(decide):
    rule = mw.CutPointRule([[0.7]], YES_NO, input="logits")
    z = np.array([0.7, 0.8, -3.0, 1e4, np.inf, -np.inf])
    assert decide(rule, z) == np.where(z > 0.7, "yes", "no").tolist()
    both = np.random.default_rng(0).normal(0, 2, (50, 2))
    assert decide(rule, both) == np.where(both[:, 1] - both[:, 0] > 0.7, "yes", "no").tolist()


def test_cut_points_of_several_outputs():
    cuts = np.array([[-1.0], [0.2]])
    classes = (np.arange(2), np.arange(2))
    rule = mw.CutPointRule(cuts, classes, multioutput=True, output_names=("pain", "fever"))
    z = np.random.default_rng(0).normal(0, 2, (60, 2))
    expected = graded(cuts, classes, z).tolist()
    assert load(rule)["decide_all"](z.tolist()) == in_onnx(rule, z, positive=True) == expected
    with duckdb.connect() as connection:
        connection.register("t", pa.table({"pain": z[:, 0], "fever": z[:, 1]}))
        found = connection.execute(f"SELECT {mw.export.to_sql(rule)} FROM t").fetchall()
    assert [list(row) for row in found] == expected


def test_one_score_has_one_column():
    rule = mw.CutPointRule([[-1.0, 0.5, 2.0]], (GRADES,))
    assert '"score" <= -1' in mw.export.to_sql(rule)
    shape = mw.export.to_onnx(rule).graph.input[0].type.tensor_type.shape
    assert shape.dim[1].dim_value == 1
    with pytest.raises(ValueError, match="to_sql: columns must have 1 name for output 0, got 4"):
        mw.export.to_sql(rule, list("abcd"))
    with pytest.raises(ValueError, match="to_onnx: positive must be True if one score decides"):
        mw.export.to_onnx(rule, positive=False)
    with pytest.raises(ValueError, match="one number for all of the classes"):
        load(rule)["decide"]([0.1, 0.2, 0.3, 0.4])


def test_intervals_without_numbers_are_left_out():
    table = IntervalTable.of_cuts(tuple("abcde"), [-np.inf, 1.0, 1.0, np.inf], range(5))
    assert (table.cuts, table.codes) == ((1.0,), (1, 3))


@pytest.mark.parametrize("decide", FORMATS, ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    "options", [{"subject_to": "precision[3] >= 0.5"}, {"abstain": 0.4}], ids=["floor", "abstentions"]
)
def test_rules_behind_a_map_of_one_score(decide, options):
    draw = np.random.default_rng(5)
    z = draw.normal(size=600)
    grade = np.digitize(1.5 * z + draw.logistic(size=600), [-2.0, -0.5, 1.0])
    metric = "accuracy" if "abstain" in options else "recall[3]"
    for scores in (z, np.exp(1.5 * z)):  # of which the second needs a change of unit
        rule = mw.optimize(scores, grade, metric, input="scores", **options).rule
        new = np.concatenate([scores, np.linspace(-9, 9, 400), [-1e9, 1e9]])
        assert decide(rule, new) == rule.predict(new).tolist()
