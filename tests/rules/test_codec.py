"""Rules as files: exact round trips, every corruption refused in a sentence, nothing run."""

import copy
import datetime as dt
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import MixtureRule, TemperatureScaling, WeightedRule, load_rule
from profiles import examples

number = st.floats(allow_nan=False, allow_infinity=False)
label = st.one_of(st.text(), st.integers(), number, st.booleans())
json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | number | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def label_arrays(size):
    one_type = st.sampled_from([st.text(), st.integers(), number]).flatmap(
        lambda kind: st.lists(kind, min_size=size, max_size=size, unique=True)
    )

    def array(labels):
        result = np.empty(len(labels), dtype=object)
        result[:] = labels
        return result

    return (one_type | st.lists(label, min_size=size, max_size=size, unique=True)).map(array)


@st.composite
def weighted_rules(draw, **fixed):
    sizes = fixed.get("sizes") or draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    m, k = len(sizes), max(sizes)
    classes = fixed.get("classes") or tuple(draw(label_arrays(size)) for size in sizes)
    lead = draw(st.sampled_from([1, m]))
    if draw(st.booleans()):
        loss = Loss(full=draw(npst.arrays(float, (lead, k, k), elements=number)))
    else:
        loss = Loss(*(None, *(draw(npst.arrays(float, (lead, k), elements=number)) for _ in range(2))))
    positive = st.floats(1e-3, 1e3)
    arrays = npst.arrays(float, (m,), elements=positive), npst.arrays(float, (m, k), elements=st.floats(-1e100, 1e100))
    link = draw(st.none() | st.builds(TemperatureScaling, *arrays, st.floats(1e-12, 0.4)))
    facts = draw(st.dictionaries(st.text(), json_value, max_size=3))
    names = fixed["names"] if "names" in fixed else draw(st.none() | st.just(tuple(f"out {i}" for i in range(m))))
    normalize = fixed.get("normalize", draw(st.booleans()))
    return WeightedRule(loss, classes, link, fixed.get("multioutput", m > 1), normalize, facts, names)


@st.composite
def mixture_rules(draw):
    first = draw(weighted_rules())
    fixed = {
        "sizes": first.n_classes.tolist(),
        "classes": first.classes,
        "names": first.output_names,
        "normalize": first.normalize,
        "multioutput": first.multioutput,
    }
    rules = (first, *draw(st.lists(weighted_rules(**fixed), max_size=2)))
    raw = draw(npst.arrays(float, (len(rules),), elements=st.floats(0.1, 1)))
    weights = raw / raw.sum()
    if draw(st.booleans()):
        weights = np.tile(weights, (first.n_outputs, 1))
    return MixtureRule(rules, weights, draw(st.integers(0, 2**64 - 1)), first.metadata)


def same_bits(one, other):
    return [a.tobytes() for a in one.loss.arrays] == [b.tobytes() for b in other.loss.arrays]


@examples(40)
@given(weighted_rules())
def test_weighted_rules_come_back_exactly(rule):
    text = rule.to_json()
    for again in (WeightedRule.from_json(text), load_rule(text), WeightedRule.from_dict(rule.to_dict())):
        assert again == rule
        assert same_bits(again, rule)
        assert again.metadata.to_dict() == rule.metadata.to_dict()
        assert again.to_json() == text
        types = [[type(v) for v in labels.tolist()] for labels in again.classes]
        assert types == [[type(v) for v in labels.tolist()] for labels in rule.classes]


@examples(25)
@given(mixture_rules())
def test_mixtures_come_back_exactly(rule):
    text = rule.to_json()
    for again in (MixtureRule.from_json(text), load_rule(text), MixtureRule.from_dict(rule.to_dict())):
        assert again == rule
        assert again.metadata.to_dict() == rule.metadata.to_dict()
        assert all(same_bits(a, b) for a, b in zip(again.rules, rule.rules, strict=True))
        assert again.to_json() == text


@pytest.mark.parametrize(
    "labels",
    [
        np.array([True, False]),
        np.array([1, 2], dtype=np.int8),
        np.array([1.5, -0.0], dtype=np.float32),
        np.array(["ja", "nein"]),
        np.array(["\N{SNOWMAN}", "\ud800"], dtype=object),
        np.array(["a\0", "a"], dtype=object),
        np.array([-1, 2**63], dtype=object),
        np.array([10**30, 1], dtype=object),
        np.array([np.int64(3), "three"], dtype=object),
        np.array([np.str_("x"), np.bool_(True)], dtype=object),
    ],
)
def test_labels_keep_value_and_type(labels, tmp_path):
    rule = WeightedRule(Loss.argmax(2), (labels,))
    rule.to_json(tmp_path / "rule.json")
    again = load_rule(tmp_path / "rule.json")
    assert again == rule
    eta = [0.1, 0.9]
    for one, other in zip(again.predict(eta).tolist(), rule.predict(eta).tolist(), strict=True):
        assert one == other
    expected = [v.item() if isinstance(v, np.generic) else v for v in labels.tolist()]
    assert [type(v) for v in again.classes[0].tolist()] == [type(v) for v in expected]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([b"a", b"b"]), r"got b'a' \(bytes\); convert the labels, for instance with str\(\)"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), r"\(datetime64\); convert the labels"),
        (np.array([(1, 2), None], dtype=object), "convert the labels"),
        (np.array([1 + 2j, 0]), r"\(complex\); convert the labels"),
    ],
)
def test_labels_that_json_cannot_hold_are_refused(labels, message):
    with pytest.raises(TypeError, match=message):
        WeightedRule(Loss.argmax(2), (labels,)).to_json()


def test_a_label_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="classes must be finite to be written as JSON, got inf"):
        WeightedRule(Loss.argmax(2), (np.array([1.0, np.inf]),)).to_json()


@pytest.mark.parametrize(
    ("facts", "error", "message"),
    [
        ({"a": math.nan}, ValueError, r"facts\.a must be finite to be written as JSON, got nan"),
        ({"a": {"b": [math.inf]}}, ValueError, r"facts\.a\.b must be finite"),
        ({"a": dt.date(2020, 1, 1)}, TypeError, r"facts\.a must hold JSON values under text keys, got date"),
        ({"a": {1: 2}}, TypeError, r"facts\.a must hold JSON values under text keys, got dict"),
        ({"a": print}, TypeError, "got builtin_function_or_method"),
    ],
)
def test_facts_that_json_cannot_hold_are_refused(facts, error, message):
    with pytest.raises(error, match=message):
        WeightedRule(Loss.argmax(2), (np.arange(2),), metadata=facts).to_json()


def test_facts_of_numpy_become_plain():
    facts = {"n": np.int64(3), "x": np.float64(0.5), "ok": np.bool_(True), "shape": (2, 3), "prior": np.array([0.5])}
    rule = WeightedRule(Loss.argmax(2), (np.arange(2),), metadata=facts)
    assert load_rule(rule.to_json()).metadata.to_dict() == {
        "n": 3,
        "x": 0.5,
        "ok": True,
        "shape": [2, 3],
        "prior": [0.5],
    }


def test_a_loss_that_is_not_finite_is_not_written(tmp_path):
    rule = WeightedRule(Loss(full=np.array([[[0.0, np.inf], [1.0, 0.0]]])), (np.arange(2),))
    with pytest.raises(ValueError, match=r"loss\.full must be finite to be written as JSON, got inf"):
        rule.to_json(tmp_path / "rule.json")
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------------------------------------- corrupted

WEIGHTED = WeightedRule(
    Loss(diagonal=-np.ones((2, 3)), offset=np.zeros((2, 3))),
    (np.array(["a", "b", "c"]), np.array([0, 1])),
    TemperatureScaling.identity(2, 3),
    multioutput=True,
    metadata={"metric": "f1"},
    output_names=("x", "y"),
).to_dict()
FULL = WeightedRule(Loss(full=np.ones((1, 2, 2))), (np.arange(2),)).to_dict()
MIXTURE = MixtureRule((WeightedRule.from_dict(FULL),) * 2, np.array([0.5, 0.5])).to_dict()


def broken(document, path, value):
    document = copy.deepcopy(document)
    target = document
    for key in path[:-1]:
        target = target[key]
    if value is ...:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return document


def nested(depth, kind=list):
    """A number within lists, or objects, within one another."""
    value = 1
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


CORRUPTIONS = [
    (WEIGHTED, ["format"], "pickle", "format must be 'metricwise-rule', got 'pickle'"),
    (WEIGHTED, ["format"], ..., "format must be 'metricwise-rule', got None"),
    (
        WEIGHTED,
        ["version"],
        2,
        "version must be at most 1, got 2; the rule was written by a newer version of metricwise; upgrade",
    ),
    (WEIGHTED, ["version"], "1", "version must be an integer from 1 to 1, got '1'"),
    (WEIGHTED, ["version"], True, "version must be an integer from 1 to 1, got True"),
    (WEIGHTED, ["version"], 0, "version must be an integer from 1 to 1, got 0"),
    (
        WEIGHTED,
        ["kind"],
        "neural",
        "kind must be 'weighted', 'mixture', 'grouped', 'segmented', 'row_costs', 'cut_points', 'labels' or "
        "'label_sets', got 'neural'",
    ),
    (
        WEIGHTED,
        ["kind"],
        [],
        "kind must be 'weighted', 'mixture', 'grouped', 'segmented', 'row_costs', 'cut_points', 'labels' or "
        "'label_sets', got",
    ),
    (WEIGHTED, ["loss"], ..., "the rule must have the field 'loss', got"),
    (WEIGHTED, ["extra"], 1, "the rule must have only the fields .* got also 'extra'"),
    (WEIGHTED, ["loss"], [], r"loss must be an object, got \[\]"),
    (WEIGHTED, ["loss", "offset"], ..., r"loss must have the field 'offset', got \['diagonal'\]"),
    (WEIGHTED, ["loss", "code"], "import os", "loss must have only the fields .* got also 'code'"),
    (WEIGHTED, ["loss", "diagonal"], [[1, 2, "3"], [1, 2, 3]], "loss.diagonal must be made of numbers, got '3'"),
    (WEIGHTED, ["loss", "diagonal"], [[1, 2, True], [1, 2, 3]], "loss.diagonal must be made of numbers, got True"),
    (WEIGHTED, ["loss", "diagonal"], [[1, 2, None], [1, 2, 3]], "loss.diagonal must be made of numbers, got None"),
    (WEIGHTED, ["loss", "diagonal"], [[1, 2], [1, 2, 3]], "loss.diagonal must be a regular array of 2 dimensions"),
    (WEIGHTED, ["loss", "diagonal"], [], r"loss.diagonal must be a non-empty list, got \[\]"),
    (
        WEIGHTED,
        ["loss", "diagonal"],
        [[10**400] * 3] * 2,
        "loss.diagonal must hold numbers of up to 1.8e308, got a larger one",
    ),
    (WEIGHTED, ["loss", "diagonal"], [[1, 2, math.inf]] * 2, "loss.diagonal must be finite, got NaN or infinity"),
    (
        WEIGHTED,
        ["loss", "offset"],
        [[1, 2, 3]],
        r"loss.offset must have the shape of loss.diagonal, \(2, 3\), got \(1, 3\)",
    ),
    (WEIGHTED, ["loss"], {"diagonal": [[1, 2]], "offset": [[0, 0]]}, "loss must have 2 outputs .* got 1 and 2"),
    (FULL, ["loss", "full"], [[[1, 2, 3], [1, 2, 3]]], r"loss.full must have square matrices, got shape \(1, 2, 3\)"),
    (FULL, ["loss", "offset"], [[0, 0]], r"loss must have only the fields \['full'\], got also 'offset'"),
    (WEIGHTED, ["classes"], [], "classes must be a non-empty list"),
    (WEIGHTED, ["classes", 0], "abc", r"classes\[0\] must be a non-empty list, got 'abc'"),
    (WEIGHTED, ["classes", 0, 1], None, r"classes\[0\] must be made of text, finite numbers or booleans, got None"),
    (WEIGHTED, ["classes", 0, 1], {"py": 1}, r"classes\[0\] must be made of text, finite numbers or booleans"),
    (WEIGHTED, ["classes", 0, 1], "a", "classes must be distinct within an output"),
    (WEIGHTED, ["classes", 1], [1], "classes must hold one array of at least 2 labels per output"),
    (WEIGHTED, ["multioutput"], 1, "multioutput must be true or false, got 1"),
    (WEIGHTED, ["multioutput"], False, "multioutput must be True for several outputs"),
    (WEIGHTED, ["normalize"], "no", "normalize must be true or false, got 'no'"),
    (WEIGHTED, ["output_names"], ["x", "x"], "output_names must be a list of distinct texts"),
    (WEIGHTED, ["output_names"], ["x", 1], "output_names must be a list of distinct texts"),
    (WEIGHTED, ["output_names"], ["x"], "output_names must have one name per output, 2, got 1"),
    (WEIGHTED, ["facts"], [], r"facts must be an object, got \[\]"),
    (WEIGHTED, ["link"], "softmax", "link must be an object, got 'softmax'"),
    (WEIGHTED, ["link", "floor"], ..., "link must have the field 'floor'"),
    (WEIGHTED, ["link", "floor"], "0", "link.floor must be made of numbers, got '0'"),
    (WEIGHTED, ["link", "floor"], 2, "floor must be at least 0 and below 0.5, got 2"),
    (WEIGHTED, ["link", "temperature"], [1, 0], "temperature must be positive and finite, got 0"),
    (WEIGHTED, ["link", "bias"], [[0, 0, 0]], "temperature must have shape"),
    (WEIGHTED, ["link", "bias"], [[0, 0], [0, 0]], "link must have 2 outputs and 3 classes"),
    (MIXTURE, ["rules"], [], "rules must be a non-empty list"),
    (MIXTURE, ["rules", 1], 3, r"rules\[1\] must be an object, got 3"),
    (MIXTURE, ["rules", 1, "link"], ..., r"rules\[1\] must have the field 'link'"),
    (MIXTURE, ["weights"], "half", "weights must be a non-empty list, got 'half'"),
    (MIXTURE, ["weights"], [0.5, "x"], "weights must be made of numbers, got 'x'"),
    (MIXTURE, ["weights"], [0.5, 0.6], "weights must sum to 1"),
    (MIXTURE, ["weights"], [1.0], r"weights must have shape \(2,\) or \(1, 2\)"),
    (MIXTURE, ["seed"], 0.5, "seed must be an integer, got 0.5"),
    (MIXTURE, ["seed"], -1, "seed must be an integer from 0"),
    (MIXTURE, ["facts"], None, "facts must be an object, got None"),
    *(
        (
            document,
            ["facts", "deep"],
            nested(depth, kind),
            "facts must nest lists and objects at most 64 deep, got more",
        )
        for document in (WEIGHTED, MIXTURE)
        for depth in (65, 300, 450)
        for kind in (list, dict)
    ),
    *(
        (WEIGHTED, path, nested(300, list), ".* must be")
        for path in (["loss"], ["kind"], ["classes"], ["link", "floor"])
    ),
    (WEIGHTED, ["facts", "n"], 10**4200, "facts.n must hold integers of moderate size, got one of 13953 bits"),
    (WEIGHTED, ["version"], 10**4200, r"version must be at most 1, got 10{76}\.\.\.; the rule was written by a newer"),
]


@pytest.mark.parametrize(("document", "path", "value", "message"), CORRUPTIONS)
def test_each_corruption_is_refused_in_a_sentence(document, path, value, message):
    text = json.dumps(broken(document, path, value)).replace("Infinity", "1e999")
    with pytest.raises(ValueError, match=rf"^\w+(\.\w+)?: {message}") as caught:
        load_rule(text)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the rule must be JSON, got text that is truncated or invalid at line 1, column 2"),
        ("[1, 2]", r"the rule must be an object, got \[1, 2\]"),
        ('{"format": "metricwise-rule", "version": NaN}', "numbers must be finite, got NaN"),
        ('{"format": -Infinity}', "numbers must be finite, got -Infinity"),
        ('{"kind": "weighted", "kind": "mixture"}', "each field must be given once, got 'kind' twice"),
        ('{"a": ' + "[" * 100_000, "the rule must be JSON without very deep nesting or very long numbers"),
        ('{"a": ' + "9" * 10_000 + "}", "the rule must be JSON without very deep nesting or very long numbers"),
        ("{}", "format must be 'metricwise-rule', got None"),
    ],
)
def test_other_text_is_refused(text, message, tmp_path):
    (tmp_path / "rule.json").write_text(text)
    for source in (text, tmp_path / "rule.json", str(tmp_path / "rule.json")):
        with pytest.raises(ValueError, match=rf"^\w+(\.\w+)?: {message}"):
            load_rule(source)


@pytest.mark.parametrize("depth", [600, 5_000, 100_000])
@pytest.mark.parametrize("around", [("[", "]"), ('{"a": ', "}")])
@pytest.mark.parametrize("field", ["facts", "loss", "kind", "classes"])
def test_a_rule_that_nests_too_deep_is_refused(depth, around, field):
    """However deep it is, and wherever Python gives up."""
    marked = json.dumps(broken(WEIGHTED, [field], {"deep": "here"}))
    text = marked.replace('"here"', around[0] * depth + "1" + around[1] * depth)
    with pytest.raises(ValueError, match=rf"^\w+(\.\w+)?: ({field}|the rule) must .* got ") as caught:
        load_rule(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("depth", [64, 65, 600, 100_000])
def test_a_document_is_read_and_written_to_the_same_depth(depth):
    facts = {"deep": nested(depth - 1)}
    rule = WeightedRule(Loss.argmax(2), (np.arange(2),), metadata=facts)
    if depth <= 64:
        assert load_rule(rule.to_json()).metadata.to_dict() == facts
        return
    with pytest.raises(ValueError, match=r"WeightedRule\.to_dict: facts must nest lists and objects at most 64 deep"):
        rule.to_json()
    with pytest.raises(ValueError, match=r"WeightedRule\.from_dict: facts must nest lists and objects at most 64 deep"):
        WeightedRule.from_dict(broken(WEIGHTED, ["facts"], facts) if depth < 300 else WEIGHTED | {"facts": facts})
    with pytest.raises(ValueError, match="loss must be an object, got "):
        WeightedRule.from_dict(WEIGHTED | {"loss": nested(depth)})


def test_facts_that_hold_themselves_are_refused():
    facts = {}
    facts["self"] = facts
    with pytest.raises(ValueError, match="facts must nest lists and objects at most 64 deep"):
        WeightedRule(Loss.argmax(2), (np.arange(2),), metadata=facts).to_json()


@pytest.mark.parametrize("cls", [WeightedRule, MixtureRule])
def test_each_class_reads_its_own_kind_only(cls):
    document = MIXTURE if cls is WeightedRule else WEIGHTED
    kind = "weighted" if cls is WeightedRule else "mixture"
    with pytest.raises(ValueError, match=rf"^{cls.__name__}.from_dict: kind must be '{kind}'"):
        cls.from_json(json.dumps(document))
    with pytest.raises(ValueError, match=rf"^{cls.__name__}.from_dict: the rule must be an object, got 3"):
        cls.from_dict(3)


def test_sources_that_are_no_rule(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        load_rule(tmp_path / "missing.json")
    with pytest.raises(TypeError, match="load_rule: the rule must be a path or JSON text, got int"):
        load_rule(3)
    for text in ("3", "null", "a\0b", "x" * 5000):
        with pytest.raises(FileNotFoundError, match=r"No such file, nor JSON text of the rule, which starts with '\{'"):
            load_rule(text)
    with pytest.raises(ValueError, match="load_rule: the rule must be a path or JSON text, got an empty text"):
        load_rule("")
    (tmp_path / "rule.pkl").write_bytes(b"\x80\x04\x95\xff")
    with pytest.raises(ValueError, match=r"rule\.pkl must be a JSON file in UTF-8, got other bytes"):
        load_rule(tmp_path / "rule.pkl")


@pytest.mark.parametrize("where", [["facts", "metric"], ["classes", 0, 0], ["output_names", 0]])
@pytest.mark.parametrize(
    "poison", ["__import__('os').mkdir('pwned')", "!!python/object/apply:os.mkdir [pwned]", "{0.__class__}", "%s%n"]
)
def test_text_in_a_rule_stays_text(where, poison, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rule = load_rule(json.dumps(broken(WEIGHTED, where, poison)))
    assert poison in rule.to_json()
    assert isinstance(rule.describe(), str)
    assert rule.predict([np.array([[0.5, 0.3, 0.2]]), np.array([[0.5, 0.5]])]).shape == (1, 2)
    assert not list(tmp_path.iterdir())


@given(st.data())
def test_random_damage_gives_a_rule_or_a_value_error(data):
    text = json.dumps(WEIGHTED)
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 30))
    damaged = text[:at] + data.draw(st.text('{}[]",:0129eE.-tfnul \\', max_size=4)) + text[at + length :]
    try:
        rule = load_rule("{" + damaged[1:])
    except ValueError as error:
        message = str(error)
        rule = None
    assert isinstance(rule, WeightedRule | MixtureRule) or message.endswith(".")


def test_files_hold_the_text_and_can_be_read_by_people(tmp_path):
    path = tmp_path / "rule.json"
    text = WeightedRule.from_dict(WEIGHTED).to_json(path)
    assert path.read_text(encoding="utf-8") == text
    assert text.endswith("}\n")
    assert "      [-1.0, -1.0, -1.0],\n" in text
    assert load_rule(str(path)) == mw.WeightedRule.from_json(path)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())  # as some editors save it
    assert load_rule(path).to_dict() == WEIGHTED


def test_text_with_brackets_and_breaks_is_not_reformatted():
    labels = ["[\n  1\n]", "[\\n 1 \\n]", "  [ 1,\n 2 ]  "]
    rule = WeightedRule(Loss.argmax(3), (np.array(labels),), metadata={"note": labels})
    again = load_rule(rule.to_json())
    assert again.classes[0].tolist() == labels
    assert again.metadata.to_dict() == {"note": labels}


def test_rules_with_integers_that_no_float_can_hold():
    facts = {"metric": "f1", "subject_to": ["recall >= 0.5"], "confidence": 10**400, "value": 10**400}
    rule = WeightedRule.from_thresholds(0.3).with_metadata(**facts)
    loaded = load_rule(rule.to_json())
    assert loaded.describe().startswith("Rule for f1, subject to recall >= 0.5.\n")
    assert "recall &gt;= 0.5" in loaded._repr_html_()
    graded = WeightedRule.from_cut_points([0.5, 1.5], classes=[0, 1, 10**400], grades=[0, 1, 2])
    assert "rounded at the cut points 0.5, 1.5." in load_rule(graded.to_json()).describe()
    document = rule.to_dict()
    document["loss"]["diagonal"][0][0] = 10**400
    with pytest.raises(ValueError, match=r"loss\.diagonal must hold numbers of up to 1\.8e308, got a larger one\."):
        load_rule(json.dumps(document))
