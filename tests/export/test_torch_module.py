"""PyTorch modules: decisions on every kind of rule, converted or not; types, devices, files; and what is refused."""

import copy
import doctest
import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from scipy.special import softmax

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import MixtureRule, TemperatureScaling, WeightedRule
from profiles import examples
from worlds.rules import rules_and_logits, rules_and_rows

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
equality = pytest.importorskip("benchmarks.export_equality", reason="the benchmarks are not here")

# Of PyTorch's own: TorchScript is deprecated, and its parts warn of one another.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

ROOT = Path(__file__).parents[2]
LINK = TemperatureScaling(np.array([0.7]), np.array([[0.1, 0.0, -0.3, 0.2]]))
LABELS = (np.array(["a", "b", "c", "d"]),)
FULL = Loss(full=np.random.default_rng(0).random((1, 4, 4)))
RULES = {
    "full": WeightedRule(FULL, LABELS),
    "diagonal": WeightedRule(
        Loss(diagonal=-np.array([[1, 1.5, 2, 1]]), offset=np.array([[0, 0.1, 0.2, -0.1]])), LABELS
    ),
    "linked": WeightedRule(FULL, LABELS, LINK),
    "normalised": WeightedRule(FULL, LABELS, normalize=True),
    "abstaining": WeightedRule(
        Loss(diagonal=-np.array([[1, 1.5, 2, 1, 0]]), offset=np.array([[0, 0.1, 0.2, -0.1, -0.6]])),
        LABELS,
        abstain_label="ask",
    ),
}


def rows_of(n=500, k=4, dtype=np.float64):
    """Rows with many ties."""
    return (np.random.default_rng(1).multinomial(8, np.full(k, 1 / k), n) / 8).astype(dtype)


def scripted(module, *arguments):
    return torch.jit.script(module)


def exported(module, *arguments):
    """The program of three rows, for any number of them."""
    shapes = tuple({0: torch.export.Dim("rows")} for _ in arguments)
    return torch.export.export(module, tuple(one[:3] for one in arguments), dynamic_shapes=shapes).module()


def captured(module, *arguments):
    """What torch.compile captures as one graph, and runs without a compiler of C++."""
    torch.compiler.reset()
    return torch.compile(module, fullgraph=True, dynamic=True, backend="aot_eager")


CONVERSIONS = [lambda module, *_: module, scripted, exported, captured]
NAMES = ["eager", "scripted", "exported", "captured"]


# ------------------------------------------------------------------------------------------------------------ decisions


@pytest.mark.parametrize("where", ["PyTorch", "TorchScript", pytest.param("torch.export", marks=pytest.mark.slow)])
def test_every_case_of_the_benchmark(where):
    for case in equality.cases(300):
        if case.groups is None:
            for rows in (case, equality.single(case)):
                line = equality.compare(rows, where, equality.ON_TORCH[where])
                assert line["of these beyond 1e-9"] == 0, line
                assert line["rows that differ"] == 0 or case.linked, line


def test_ties_go_to_the_lowest_class():
    """Every row of a grid of ties, against a loop in the order of the definition."""
    rng = np.random.default_rng(0)
    eta = rng.multinomial(4, np.full(4, 0.25), 500) / 4
    loss = rng.integers(-2, 3, (4, 4)) / 2
    rule = WeightedRule(Loss(full=loss[None]), (np.array([7, 5, 3, 1]),))
    codes = mw.export.to_torch(rule)(torch.from_numpy(eta))
    scores = [[sum(eta[n, i] * loss[i, j] for i in range(4)) for j in range(4)] for n in range(500)]
    assert codes.tolist() == [min(range(4), key=lambda j, s=row: (s[j], j)) for row in scores]
    assert sum(row.count(min(row)) > 1 for row in scores) > 50


@examples(60)
@given(rules_and_rows(links=False))
def test_rules_at_random(drawn):
    rule, proba = drawn
    module = mw.export.to_torch(rule, positive=False)
    for numbers in (proba, proba.astype(np.float32)):
        labels, expected = module.labels(module(torch.from_numpy(numbers))), rule.predict(numbers)
        assert labels.dtype == expected.dtype
        assert (labels == expected).all()


def scores_by_scipy(rule, z, m):
    """The expected loss of each decision about output m, (N, D)."""
    k, d = int(rule.n_classes[m]), int(rule.schema.n_decisions[m])
    numbers = z[:, m, :k] if rule.multioutput else z
    logits = rule.link.temperature[m] * numbers + rule.link.bias[m, :k]
    return softmax(logits, axis=1) @ rule.loss.output(m).tensor()[0][:k, :d]


@examples(30)
@given(rules_and_logits())
def test_on_logits_only_ties_may_differ(drawn):
    rule, z = drawn
    module = mw.export.to_torch(rule, positive=False)
    codes = module(torch.from_numpy(z)).numpy().reshape(len(z), -1)
    labels = rule.predict(z).reshape(len(z), -1)
    for m, decisions in enumerate(rule.schema.decisions):
        scores, place = scores_by_scipy(rule, z, m), {label: j for j, label in enumerate(decisions.tolist())}
        expected = np.array([place[label] for label in labels[:, m]])
        for row in np.flatnonzero(codes[:, m] != expected):
            assert abs(scores[row, codes[row, m]] - scores[row, expected[row]]) < 1e-9


@pytest.mark.parametrize("convert", CONVERSIONS, ids=NAMES)
@pytest.mark.parametrize("name", RULES)
def test_conversions(name, convert):
    rule, proba = RULES[name], rows_of()
    module = mw.export.to_torch(rule)
    codes = convert(module, torch.from_numpy(proba))(torch.from_numpy(proba))
    assert (codes.dtype, codes.shape) == (torch.int64, (500,))
    assert (module.labels(codes) == rule.predict(proba)).all()
    assert len(set(codes.tolist())) > 1


@pytest.mark.parametrize("convert", CONVERSIONS, ids=NAMES)
def test_keys_of_mixtures(convert):
    rules = tuple(WeightedRule.from_thresholds([t, 1 - t]) for t in (0.2, 0.5, 0.6))
    rule = MixtureRule(rules, np.array([[0.3, 0.6, 0.1], [0.9, 0.0, 0.1]]), seed=2**64 - 5)
    module = mw.export.to_torch(rule)
    p = torch.rand((500, 2), generator=torch.manual_seed(0), dtype=torch.float64)
    decide = convert(module, p, torch.arange(500))
    for start in (0, 10**12):
        assert (module.labels(decide(p, torch.arange(start, start + 500))) == rule.predict(p, start=start)).all()


def test_keys_of_other_types_and_without_keys():
    rules = tuple(WeightedRule.from_thresholds(t) for t in (0.2, 0.6))
    module = mw.export.to_torch(MixtureRule(rules, np.array([0.5, 0.5])), positive=True)
    p = torch.full((100,), 0.4)
    assert (module(p, torch.arange(100, dtype=torch.int32)) == module(p, torch.arange(100))).all()
    assert set(module(p, torch.arange(100)).tolist()) == {0, 1}
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'keys'"):
        module(p)


def test_codes_are_positions_and_the_last_one_abstains():
    module = mw.export.to_torch(RULES["abstaining"])
    codes = module(torch.tensor([[0.97, 0.01, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25]]))
    assert codes.tolist() == [0, 4]
    assert module.labels(codes).tolist() == ["a", "ask"]
    assert [labels.tolist() for labels in module.classes] == [["a", "b", "c", "d", "ask"]]


def test_labels_of_several_outputs_and_types():
    classes = (np.array(["no", "yes"]), np.array([1, 2, 3]))
    rule = WeightedRule(Loss.argmax(3), classes, multioutput=True, output_names=("risk", "size"))
    module = mw.export.to_torch(rule)
    proba = np.array([[[0.2, 0.8, 0.0], [0.1, 0.2, 0.7]]])
    codes = module(torch.from_numpy(proba))
    assert codes.tolist() == [[1, 2]]
    assert module.labels(codes).tolist() == rule.predict(proba).tolist() == [["yes", 3]]


def test_the_positive_class_alone():
    rule = WeightedRule(Loss.from_tensor([[0.0, 1.0], [2.7, 0.0]]), (np.array([0, 1]),))
    p = torch.rand(200, generator=torch.manual_seed(0), dtype=torch.float64).round(decimals=2)
    module = mw.export.to_torch(rule, positive=True)
    for numbers in (p, p[:, None]):
        assert (module(numbers).numpy() == rule.predict(p.numpy())).all()


# ---------------------------------------------------------------------------------------------------- types and devices


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["full", "diagonal", "normalised"])
def test_types_of_input(name, dtype):
    rule, generator = RULES[name], torch.manual_seed(0)
    scores = torch.rand((500, 4), generator=generator, dtype=torch.float64)
    numbers = (scores if rule.normalize else scores / scores.sum(dim=1, keepdim=True)).to(dtype)
    module = mw.export.to_torch(rule)
    assert (module.labels(module(numbers)) == rule.predict(numbers)).all()


CHANGES = {
    "half": lambda module: module.half(),
    "float": lambda module: module.float(),
    "to": lambda module: module.to(torch.bfloat16),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("convert", CONVERSIONS[:3], ids=NAMES[:3])
def test_changes_of_type_leave_decisions_as_they_are(convert, change):
    """Rows next to a threshold that lower precision does not have."""
    threshold = 0.1
    rule = WeightedRule.from_thresholds(threshold)
    p = torch.tensor([np.nextafter(threshold, 0), threshold, np.nextafter(threshold, 1)], dtype=torch.float64)
    changed = CHANGES[change](convert(mw.export.to_torch(rule, positive=True), p))
    assert changed(p).tolist() == [0, 0, 1]
    proba = torch.from_numpy(rows_of())
    for name in ("full", "diagonal", "linked"):
        module = mw.export.to_torch(RULES[name])
        expected = module(proba)
        assert (CHANGES[change](convert(module, proba))(proba) == expected).all()


@pytest.mark.parametrize("convert", [CONVERSIONS[0], scripted], ids=["eager", "scripted"])
def test_a_conversion_of_the_bits_is_refused(convert):
    module = convert(mw.export.to_torch(RULES["full"])).type(torch.float32)
    with pytest.raises((AssertionError, torch.jit.Error), match="kept as bits in int64"):
        module(torch.from_numpy(rows_of()))


def test_autocast_leaves_decisions_as_they_are():
    rule, proba = RULES["linked"], rows_of()
    module = mw.export.to_torch(rule)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        codes = module(torch.from_numpy(proba))
    assert (module.labels(codes) == rule.predict(proba)).all()


def test_all_constants_move_to_the_device():
    """On the device without numbers: what stays behind on the CPU cannot be combined with it."""
    mixture = MixtureRule(tuple(WeightedRule(loss, LABELS) for loss in (FULL, Loss.argmax(4))), [0.5, 0.5])
    rules = [*RULES.values(), mixture, mw.CutPointRule([0.5], (np.array(["low", "high"]),))]
    for rule in rules:
        module = mw.export.to_torch(rule).to("meta")
        assert {buffer.device.type for buffer in module.buffers()} == {"meta"}
        numbers = torch.empty((5, *module.reader.row_shape), device="meta")
        keys = [torch.empty(5, dtype=torch.int64, device="meta")] if rule.is_randomized else []
        codes = module(numbers, *keys)
        assert (codes.device.type, codes.shape) == ("meta", (5,))


# ------------------------------------------------------------------------------------------------ within models, files


@pytest.mark.parametrize("convert", CONVERSIONS, ids=NAMES)
def test_behind_a_model(convert):
    torch.manual_seed(0)
    rule, model = RULES["full"], torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Softmax(dim=1))
    both, X = torch.nn.Sequential(model, mw.export.to_torch(rule)), torch.randn(200, 3)
    codes = convert(both, X)(X)
    assert (both[1].labels(codes) == rule.predict(model(X))).all()
    assert not codes.requires_grad


@pytest.mark.parametrize("name", RULES)
def test_state_dict(name):
    """The constants of a rule replace those of another of the same shape."""
    rule, proba = RULES[name], torch.from_numpy(rows_of())
    module, other = mw.export.to_torch(rule), mw.export.to_torch(rule)
    for buffer in other.buffers():
        buffer.zero_()
    assert not (other(proba) == module(proba)).all()
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert (other(proba) == module(proba)).all()
    assert not list(module.parameters())


def test_files_of_all_kinds(tmp_path):
    rule, proba = RULES["linked"], torch.from_numpy(rows_of())
    module = mw.export.to_torch(rule)
    torch.save(module, tmp_path / "module.pt")
    torch.jit.save(torch.jit.script(module), tmp_path / "scripted.pt")
    program = torch.export.export(module, (proba[:3],), dynamic_shapes=({0: torch.export.Dim("rows")},))
    torch.export.save(program, tmp_path / "program.pt2")
    saved = torch.load(tmp_path / "module.pt", weights_only=False)
    decided = [
        saved(proba),
        copy.deepcopy(module)(proba),
        torch.jit.load(tmp_path / "scripted.pt")(proba),
        torch.export.load(tmp_path / "program.pt2").module()(proba),
    ]
    assert all((saved.labels(codes) == rule.predict(proba)).all() for codes in decided)


def test_a_module_says_what_it_decides():
    rule = WeightedRule.from_thresholds(0.3, classes=["no", "yes"], pos_label="yes")
    assert "Predict 'yes' when its probability exceeds 0.3" in repr(mw.export.to_torch(rule))


def test_from_a_file_and_a_solution(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    y = (rng.random((300, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    solution = mw.optimize(proba, y, "f1_macro")
    solution.rule.to_json(tmp_path / "rule.json")
    for source in (solution, tmp_path / "rule.json", solution.rule.to_json()):
        module = mw.export.to_torch(source)
        assert (module.labels(module(torch.from_numpy(proba))) == solution.predict(proba)).all()


# ------------------------------------------------------------------------------------------------------------- refusals


def test_what_is_refused():
    rule = WeightedRule.from_thresholds(0.3)
    grouped = mw.GroupedRule((rule, rule), ("a", "b"))
    with pytest.raises(
        TypeError, match="to_torch: rule must not be a GroupedRule, because the module has no input for"
    ):
        mw.export.to_torch(grouped)
    with pytest.raises(ValueError, match="positive must be False if an output has more than two classes"):
        mw.export.to_torch(RULES["full"], positive=True)
    with pytest.raises(TypeError, match="rule must be a WeightedRule"):
        mw.export.to_torch(3)


@pytest.mark.parametrize("convert", [CONVERSIONS[0], scripted], ids=["eager", "scripted"])
@pytest.mark.parametrize("shape", [(5, 3), (5, 5), (5, 1), (5,), (5, 1, 4)])
def test_other_shapes(shape, convert):
    module = convert(mw.export.to_torch(RULES["full"]))
    with pytest.raises((ValueError, torch.jit.Error), match=r"rows must have shape \[4\] each, as the rule needs, got"):
        module(torch.zeros(shape))


# ---------------------------------------------------------------------------------------------------------------- pages


def test_the_example_of_the_docstring():
    """Skipped among other doctests, which run without PyTorch."""
    text = mw.export.to_torch.__doc__.replace("  # doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(text, {}, "to_torch", None, 0)
    report = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append)
    assert results.attempted == 7, results
    assert not report, "".join(report)


def test_the_code_of_the_page():
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "to_torch" in block]
    rule = WeightedRule.from_weights({"low": 1, "mid": 2, "high": 3}, classes=["low", "mid", "high"])
    names = {"mw": mw, "rule": rule}
    exec(code, names)  # noqa: S102
    X = torch.randn(50, 4)
    expected = rule.predict(names["network"](X))
    for decide in (names["decider"], names["scripted"], names["program"].module()):
        assert (names["decider"][1].labels(decide(X)) == expected).all()
    assert names["labels"].shape == names["codes"].shape == (8,)
