"""ONNX: alone, behind classifiers, through skl2onnx; and what is refused."""

import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import skl2onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import MixtureRule, TemperatureScaling, WeightedRule


def run(model, **feeds):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def convert(model, X, zipmap=False, kind=DoubleTensorType, **options):
    return skl2onnx.convert_sklearn(
        model, initial_types=[("X", kind([None, X.shape[1]]))], options={id(model): {"zipmap": zipmap}}, **options
    )


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X + np.random.default_rng(0).normal(size=X.shape), y


# --------------------------------------------------------------------------------------------------------------- alone


def test_ties_go_to_the_lowest_class():
    """Every row of a grid of ties, against a loop in the order of the definition."""
    rng = np.random.default_rng(0)
    eta = rng.multinomial(4, np.full(4, 0.25), 500) / 4
    loss = rng.integers(-2, 3, (4, 4)) / 2
    rule = WeightedRule(Loss(full=loss[None]), (np.array([7, 5, 3, 1]),))
    (found,) = run(mw.export.to_onnx(rule), probabilities=eta)
    scores = [[sum(eta[n, i] * loss[i, j] for i in range(4)) for j in range(4)] for n in range(500)]
    assert found.tolist() == [[7, 5, 3, 1][min(range(4), key=lambda j, s=row: (s[j], j))] for row in scores]
    assert sum(row.count(min(row)) > 1 for row in scores) > 50


def test_no_operator_adds_in_an_order_of_its_own():
    link = TemperatureScaling(np.array([0.7]), np.zeros((1, 5)))
    rule = WeightedRule(Loss(full=np.random.default_rng(0).random((1, 5, 5))), (np.arange(5),), link)
    kinds = {node.op_type for node in mw.export.to_onnx(rule).graph.node}
    assert not kinds & {"MatMul", "Gemm", "Einsum", "ReduceSum", "ReduceMean", "Softmax", "Sum", "CumSum"}


def test_the_model_says_what_it_is():
    rule = WeightedRule.from_thresholds(0.3, classes=["no", "yes"], pos_label="yes")
    model = mw.export.to_onnx(rule)
    assert (model.producer_name, model.producer_version) == ("metricwise", mw.__version__)
    assert model.graph.doc_string == rule.describe()
    (given,), (decided,) = model.graph.input, model.graph.output
    assert given.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    assert [dim.dim_value for dim in given.type.tensor_type.shape.dim] == [0, 2]
    assert (decided.name, decided.type.tensor_type.elem_type) == ("decisions", onnx.TensorProto.STRING)


@pytest.mark.parametrize("labels", [["x", "y"], [3, -7], [0.5, 1.5], [False, True]])
def test_labels_keep_their_type(labels):
    rule = WeightedRule(Loss.argmax(2), (np.array(labels),))
    (found,) = run(mw.export.to_onnx(rule), probabilities=np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert found.tolist() == labels
    assert [type(one) for one in found.tolist()] == [type(one) for one in labels]


def test_labels_of_several_types_come_apart():
    classes = (np.array(["no", "yes"]), np.array([1, 2, 3]))
    rule = WeightedRule(Loss.argmax(3), classes, multioutput=True, output_names=("risk", "size"))
    model = mw.export.to_onnx(rule)
    assert [one.name for one in model.graph.output] == ["risk", "size"]
    risk, size = run(model, probabilities=np.array([[[0.2, 0.8, 0.0], [0.1, 0.2, 0.7]]]))
    assert (risk.tolist(), size.tolist()) == (["yes"], [3])


def test_keys_of_mixtures():
    rules = tuple(WeightedRule.from_thresholds([t, 1 - t]) for t in (0.2, 0.5, 0.6))
    rule = MixtureRule(rules, np.array([[0.3, 0.6, 0.1], [0.9, 0.0, 0.1]]), seed=2**64 - 5)
    model = mw.export.to_onnx(rule)
    assert [one.name for one in model.graph.input] == ["probabilities", "keys"]
    p = np.random.default_rng(0).random((500, 2))
    for start in (0, 10**12):
        (found,) = run(model, probabilities=p, keys=np.arange(start, start + 500))
        assert (found == rule.predict(p, start=start)).all()


def test_the_positive_class_alone():
    rule = WeightedRule(Loss.from_tensor([[0.0, 1.0], [2.7, 0.0]]), (np.array([0, 1]),))
    p = np.random.default_rng(0).random(200).round(2)
    (found,) = run(mw.export.to_onnx(rule, positive=True), probabilities=p[:, None])
    assert (found == rule.predict(p)).all()
    with pytest.raises(ValueError, match="positive must be False if an output has more than two classes"):
        mw.export.to_onnx(WeightedRule.from_weights([1, 2, 3]), positive=True)


def test_booleans_beside_an_abstention_are_integers():
    price = Loss(full=np.array([[[0.0, 1.0, 0.2], [1.0, 0.0, 0.2], [0.0, 0.0, 0.0]]]))
    rule = WeightedRule(price, (np.array([False, True]),), abstain_label=-1)
    p = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    (found,) = run(mw.export.to_onnx(rule), probabilities=p)
    assert found.dtype == np.int64
    assert found.tolist() == [0, -1, 1] == [int(label) for label in rule.predict(p)]


def test_what_onnx_has_no_word_for():
    mixed = np.empty(2, dtype=object)
    mixed[:] = ["a", 1]
    with pytest.raises(ValueError, match=r"labels of an output must have a single type in ONNX, got \['a', 1\]"):
        mw.export.to_onnx(WeightedRule(Loss.argmax(2), (mixed,)))
    mixed[:] = [1, 2**63]
    with pytest.raises(ValueError, match="labels must be integers of 64 bits"):
        mw.export.to_onnx(WeightedRule(Loss.argmax(2), (mixed,)))
    with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32', got 'float16'"):
        mw.export.to_onnx(WeightedRule.from_thresholds(0.5), dtype="float16")


def test_many_outputs_share_constants():
    rule = WeightedRule.from_thresholds([0.3] * 1000)
    model = mw.export.to_onnx(rule)
    assert len(model.graph.node) < 20
    p = np.random.default_rng(0).random((20, 1000))
    assert (run(model, probabilities=p)[0] == rule.predict(p)).all()


# ------------------------------------------------------------------------------------------------ behind a classifier


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("labels", [[0, 1, 2], ["se", "ve", "vi"]])
def test_behind_a_classifier(iris, zipmap, labels):
    X, y = iris
    X, y = X.astype(np.float32), np.array(labels)[y]
    classifier = LogisticRegression(max_iter=1000).fit(X, y)
    given = convert(classifier, X, zipmap, FloatTensorType)
    before = given.SerializeToString()
    rule = WeightedRule.from_weights([1.0, 3.0, 2.0], classes=labels)
    model = mw.export.to_onnx(rule, append_to=given)
    assert given.SerializeToString() == before
    decided, proba = run(model, X=X)
    assert proba.dtype == np.float32
    assert (decided == rule.predict(proba)).all()
    assert (decided != classifier.predict(X)).any()


def test_behind_a_file(iris, tmp_path):
    X, y = iris
    (tmp_path / "model.onnx").write_bytes(convert(LogisticRegression(max_iter=1000).fit(X, y), X).SerializeToString())
    rule = WeightedRule.from_weights([1.0, 3.0, 2.0])
    mw.export.to_onnx(rule, tmp_path / "both.onnx", append_to=tmp_path / "model.onnx")
    decided, proba = run(onnx.load(tmp_path / "both.onnx"), X=X)
    assert (decided == rule.predict(proba)).all()
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"append_to must be an ONNX file, got .*broken\.onnx"):
        mw.export.to_onnx(rule, append_to=tmp_path / "broken.onnx")
    with pytest.raises(FileNotFoundError):
        mw.export.to_onnx(rule, append_to=tmp_path / "missing.onnx")


def test_behind_another_rule(iris):
    """Names do not clash, but the same output twice is refused."""
    X, y = iris
    rule = WeightedRule.from_weights([1.0, 3.0, 2.0])
    once = mw.export.to_onnx(rule, append_to=convert(LogisticRegression(max_iter=1000).fit(X, y), X))
    with pytest.raises(ValueError, match="append_to must not have a tensor named 'decisions'"):
        mw.export.to_onnx(rule, append_to=once)


def test_behind_a_multilabel_classifier(iris):
    X, y = iris
    Y = np.stack([y == 0, y >= 1, y == 2], axis=1).astype(int)
    classifier = OneVsRestClassifier(LogisticRegression(max_iter=1000)).fit(X, Y)
    rule = WeightedRule.from_thresholds([0.2, 0.6, 0.9])
    model = mw.export.to_onnx(rule, append_to=convert(classifier, X))
    decided, proba = run(model, X=X)
    assert (decided == rule.predict(proba)).all()
    assert (decided == rule.predict(classifier.predict_proba(X))).mean() > 0.99


def test_a_mixture_behind_a_classifier(iris):
    X, y = iris
    rule = MixtureRule(
        (WeightedRule.from_weights([1, 2, 3]), WeightedRule.from_weights([3, 2, 1])), np.array([0.5, 0.5])
    )
    classifier = LogisticRegression(max_iter=1000).fit(X, y)
    model = mw.export.to_onnx(rule, append_to=convert(classifier, X, target_opset=18))
    decided, proba = run(model, X=X, keys=np.arange(len(X)))
    assert (decided == rule.predict(proba)).all()


@pytest.mark.parametrize("opset", [9, 15])
def test_behind_a_classifier_of_another_opset(iris, opset):
    X, y = iris
    X = X.astype(np.float32)
    given = convert(LogisticRegression(max_iter=1000).fit(X, y), X, True, FloatTensorType, target_opset=opset)
    rule = WeightedRule.from_weights([1.0, 3.0, 2.0])
    decided, proba = run(mw.export.to_onnx(rule, append_to=given), X=X)
    assert (decided == rule.predict(proba)).all()


@pytest.mark.skipif(
    tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 22), reason="onnx crashes on this model before 1.22"
)
def test_an_opset_that_cannot_be_raised():
    value = onnx.helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, ["N", 3])
    upsample = onnx.helper.make_node("Scan", ["p"], ["q"])  # changed for good in opset 9
    graph = onnx.helper.make_graph([upsample], "g", [value], [onnx.helper.make_tensor_value_info("q", 1, ["N", 3])])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 8)], ir_version=4)
    with pytest.raises(ValueError, match=r"append_to must have opset 13 or later .*got 8, which cannot be converted"):
        mw.export.to_onnx(WeightedRule.from_weights([1, 2, 3]), append_to=model)


def test_classifiers_that_do_not_fit(iris):
    X, y = iris
    given = convert(LogisticRegression(max_iter=1000).fit(X, y), X)
    with pytest.raises(ValueError, match=r"append_to must return probabilities of shape \['N', 4\].*got \['N', 3\]"):
        mw.export.to_onnx(WeightedRule.from_weights([1, 2, 3, 4]), append_to=given)
    named = convert(LogisticRegression(max_iter=1000).fit(X, np.array(["a", "b", "c"])[y]), X, True, FloatTensorType)
    with pytest.raises(
        ValueError, match=r"append_to must have the classes of the rule.*\['c', 'b', 'a'\], got \['a', 'b'"
    ):
        mw.export.to_onnx(WeightedRule.from_weights([1, 2, 3], classes=["c", "b", "a"]), append_to=named)
    with pytest.raises(TypeError, match=r"append_to must be an onnx\.ModelProto or a path, got int"):
        mw.export.to_onnx(WeightedRule.from_weights([1, 2, 3]), append_to=3)
    with pytest.raises(ValueError, match=r"probability_output must be one of \['label', 'probabilities'\], got 'p'"):
        mw.export.to_onnx(WeightedRule.from_weights([1, 2, 3]), append_to=given, probability_output="p")
    with pytest.raises(
        ValueError, match="must return probabilities as a tensor of floats, which output 'label' is not"
    ):
        mw.export.to_onnx(WeightedRule.from_weights([1, 2, 3]), append_to=given, probability_output="label")


def test_classifiers_without_probabilities(iris):
    X, _ = iris
    given = skl2onnx.to_onnx(StandardScaler().fit(X), X[:1])
    del given.graph.output[:]
    with pytest.raises(ValueError, match=r"append_to must have one output of probabilities, got \[\]"):
        mw.export.to_onnx(WeightedRule.from_weights([1, 2, 3]), append_to=given)


# ------------------------------------------------------------------------------------------------------------ skl2onnx


@pytest.fixture(scope="module")
def converters():
    mw.export.register_converters()


ESTIMATORS = [
    LogisticRegression(max_iter=1000),
    make_pipeline(StandardScaler(), LogisticRegression()),
    DecisionTreeClassifier(max_depth=3, random_state=0),
]


@pytest.mark.usefixtures("converters")
@pytest.mark.parametrize(
    ("estimator", "labels"), list(zip(ESTIMATORS, [[False, True, True], ["se", "ve", "vi"], [0, 1, 2]], strict=True))
)
def test_estimators_of_metricwise(iris, estimator, labels):
    X, y = iris
    y = np.array(labels)[y]
    worth = mw.metrics.Linear(np.diag([1.0, 6.0, 2.0][: len(set(labels))]))
    model = mw.MetricOptimalClassifierCV(
        estimator, metric=worth, cv=3, strategy=mw.Strategy(confusion="expected", recalibrate=True)
    ).fit(X, y)
    # Trees take single precision, and are cut where it decides.
    kind, given = (FloatTensorType, X.astype(np.float32)) if "Tree" in repr(estimator) else (DoubleTensorType, X)
    decided, proba = run(convert(model, X, kind=kind), X=given)
    np.testing.assert_allclose(proba, model.predict_proba(given), atol=1e-6)
    assert (decided == model.predict(given)).all()
    assert (decided != model.estimator_.predict(given)).any()


@pytest.mark.usefixtures("converters")
def test_at_the_end_of_a_pipeline(iris):
    X, y = iris
    inner = mw.FixedRuleClassifier(
        LogisticRegression(), WeightedRule.from_weights({2: 9.0, 0: 1.0, 1: 2.0}, classes=[2, 0, 1])
    )
    model = make_pipeline(StandardScaler(), inner).fit(X, y)
    decided, proba = run(convert(model, X), X=X)
    assert (decided == model.predict(X)).all()
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-12)
    (decided, maps) = run(convert(model, X, True, FloatTensorType), X=X.astype(np.float32))
    assert (decided == model.predict(X)).mean() > 0.98
    assert set(maps[0]) == {0, 1, 2}


@pytest.mark.usefixtures("converters")
def test_an_estimator_that_was_fitted_before(iris):
    X, y = iris
    frozen = FrozenEstimator(LogisticRegression(max_iter=1000).fit(X, y))
    model = mw.FixedRuleClassifier(frozen, WeightedRule.from_weights([1, 2, 9]))
    decided, _ = run(convert(model, X), X=X)
    assert (decided == model.predict(X)).all()


@pytest.mark.usefixtures("converters")
def test_several_outputs_one_by_one(iris):
    X, y = iris
    Y = np.stack([y, y == 1], axis=1).astype(int)
    model = mw.MetricOptimalClassifierCV(LogisticRegression(max_iter=1000), metric="g_mean", average="macro", cv=3)
    model.fit(X, Y)
    decided, proba = run(convert(model, X), X=X)
    assert (decided == model.predict(X)).all()
    assert proba.shape == (150, 2, 3)


@pytest.mark.usefixtures("converters")
def test_what_skl2onnx_cannot_have(iris):
    X, y = iris
    forest = mw.MetricOptimalClassifierCV(DecisionTreeClassifier(max_depth=2), metric="accuracy", average="macro", cv=3)
    forest.fit(X, np.stack([y, 2 - y], axis=1))
    with pytest.raises(ValueError, match=r"several outputs must be fitted one by one.*got DecisionTreeClassifier"):
        convert(forest, X)
    floats = mw.FixedRuleClassifier(LogisticRegression(max_iter=1000), None).fit(X, y.astype(float))
    with pytest.raises(ValueError, match=r"labels must all be text, integers or booleans in skl2onnx, got \['float'\]"):
        convert(floats, X)
    mixture = MixtureRule(
        (WeightedRule.from_weights([1, 2, 3]), WeightedRule.from_weights([3, 2, 1])), np.array([0.5, 0.5])
    )
    drawing = mw.FixedRuleClassifier(LogisticRegression(max_iter=1000), mixture).fit(X, y)
    with pytest.raises(ValueError, match="a FixedRuleClassifier that draws rules cannot be converted"):
        convert(drawing, X)


def test_why_there_are_converters(iris):
    """skl2onnx leaves scikit-learn's own tuned thresholds out."""
    X, y = iris
    model = TunedThresholdClassifierCV(LogisticRegression(), scoring="recall", cv=2).fit(X, (y == 1).astype(int))
    decided = run(convert(model, X), X=X)[0]
    assert (decided == model.estimator_.predict(X)).all()
    assert (decided != model.predict(X)).any()


def test_classifiers_that_are_defined_after_the_call_are_registered():
    pytest.importorskip("skl2onnx")
    code = (
        "import metricwise as mw\n"
        "mw.export.register_converters()\n"
        "import sys\n"
        "assert 'metricwise.estimators' not in sys.modules\n"
        "from skl2onnx._supported_operators import sklearn_operator_name_map as names\n"
        "print(names[mw.FixedRuleClassifier], names[mw.MetricOptimalClassifierCV])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["MetricwiseFixedRuleClassifier", "MetricwiseMetricOptimalClassifierCV"]
