"""Stored calls, made with the library as it is today: the one file of the corpus that knows its signatures.

A call is {"id", "kind", "world", "do", "options"}, with options by names of their own. What comes of it are columns:
decisions, rule, numbers, structure, work, notes, warnings, error, text. Where a signature or a field changes, this file
changes, and neither the calls nor the recordings do.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import metricwise as mw
from metricwise import kernels
from metricwise.core.errors import InvalidParameter, InvalidType, MissingDependency
from tests.golden.columns import decisions_of, plain_values, shortened, visible_text
from tests.golden.containers import TABLES, like, probabilities, targets, write_table
from tests.golden.worlds import World, make

Columns = dict[str, Any]

VERSION = re.compile(re.escape(mw.__version__))


def kind_of_error(error: Exception) -> str:
    """Return the kind by which users catch an error: Python's own, for what the library refuses."""
    names = {InvalidParameter: "ValueError", InvalidType: "TypeError", MissingDependency: "ImportError"}
    return names.get(type(error), type(error).__name__)


def kernel_in_use() -> str:
    """Return which kernels serve in this process: "compiled" or "numpy"."""
    return kernels.in_use()


def perform(call: Mapping[str, Any]) -> Columns:
    """Make a call, and return the columns of what came of it."""
    with warnings.catch_warnings(record=True) as caught, tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("always")
        with contextlib.chdir(folder), _one_thread_of_dask():
            try:
                columns = OPERATIONS[call["do"]](make(call["world"]), dict(call["options"]))
            except Exception as error:  # a refusal is what came of it
                columns = {"error": f"{kind_of_error(error)}: {error}"}
            said = [f"{one.category.__name__}: {one.message}" for one in caught]
            if said:
                columns["warnings"] = list(dict.fromkeys(said))
            return _without_places(plain_values(columns))


load_rule, load_solution = mw.load_rule, mw.load_solution


def decide_by_document(document: Mapping[str, Any], call: Mapping[str, Any]) -> Any:
    """Return the decisions of a rule that was stored with a call about the new rows of its world."""
    world = make(call["world"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rule.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        rule = load_rule(path)
    return plain_values(decisions_of(predictions(rule, world, "new", call["options"]), world, rule.abstain_label))


@contextlib.contextmanager
def _one_thread_of_dask() -> Any:
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def _without_places(value: Any) -> Any:
    """The same with <version> for the version, and <folder> for the one that a call works in: neither is its result."""
    if isinstance(value, str):
        return VERSION.sub("<version>", value).replace(str(Path.cwd()), "<folder>")
    if isinstance(value, list):
        return [_without_places(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _without_places(entry) for key, entry in value.items()}
    return value


def _short(value: Any) -> Any:
    return shortened(_without_places(plain_values(value)))


# ------------------------------------------------------------------------------------------------- what calls speak of


def _profit(C: Any) -> float:
    return float(3 * C[-1, -1] - C[:-1, -1].sum())


def _hits_over_all(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    return float(np.average(np.asarray(y_true) == np.asarray(y_pred), weights=sample_weight))


def _whole_rows(y_true: Any, y_pred: Any) -> float:
    return float(np.mean(np.asarray(y_true) == np.asarray(y_pred)))


FUNCTIONS = {"profit": _profit, "hits": _hits_over_all, "whole_rows": _whole_rows}


def metric_of(spec: Any, world: World) -> Any:
    """Return the metric that a call means: a name, or {"name": ..., parameters}, {"function"}, {"scorer"}, ..."""
    if isinstance(spec, list):
        return [metric_of(one, world) for one in spec]
    if not isinstance(spec, dict):
        return spec
    spec = dict(spec)
    match next(iter(spec)):
        case "name":
            parameters = {key: world.order if value == "@order" else value for key, value in spec.items()}
            return mw.metrics.get_metric(parameters.pop("name"), **parameters)
        case "function":
            return FUNCTIONS[spec["function"]]
        case "sklearn":
            import sklearn.metrics

            function, parameters = getattr(sklearn.metrics, spec.pop("sklearn")), spec
            return sklearn.metrics.make_scorer(function, **parameters) if parameters else function
        case "ratio":
            return mw.metrics.FractionalLinear(*spec["ratio"])
        case "linear":
            return mw.metrics.Linear(spec["linear"])
        case "each":
            return {_key(key): metric_of(one, world) for key, one in spec["each"].items()}
        case "named":
            return {key: metric_of(one, world) for key, one in spec["named"].items()}
        case "worst_group":
            return mw.worst_group(metric_of(spec["worst_group"], world))
    raise ValueError(f"no such metric: {spec}")


def _key(text: str) -> Any:
    return int(text) if text.isdigit() else text


def constraint_of(spec: Any, world: World) -> Any:
    """Return the constraint that a call means: text, a list, or {"at_least": [metric, bound, *labels]} and the like."""
    if isinstance(spec, list):
        return [constraint_of(one, world) for one in spec]
    if not isinstance(spec, dict):
        return spec
    (kind, arguments), *_ = spec.items()
    match kind:
        case "in_every_group":
            return mw.in_every_group(constraint_of(arguments, world))
        case "in_group":
            return mw.in_group(constraint_of(arguments[0], world), arguments[1])
        case "gap":
            metric, bound, *labels = arguments
            return mw.at_most(mw.gap(metric_of(metric, world), *labels), bound)
        case "near_prior":
            return mw.near_prior(*arguments)
        case _:
            metric, *rest = arguments
            return getattr(mw, kind)(metric_of(metric, world), *rest)


def rule_of(spec: Any, world: World) -> Any:
    """Return the rule that a call means: fitted, or made by hand."""
    spec = dict(spec)
    kind = next(iter(spec))
    value = spec.pop(kind)
    if kind == "fit":
        return _fitted(world, value).rule
    makers = {
        "thresholds": mw.WeightedRule.from_thresholds,
        "weights": mw.WeightedRule.from_weights,
        "cuts": mw.WeightedRule.from_cut_points,
    }
    classes = world.classes if world.several else world.classes[0]
    names = {"positive": "pos_label", "names": "output_names"}
    return makers[kind](value, classes=classes, **{names.get(key, key): entry for key, entry in spec.items()})


# Options of a fit by their names in calls, and in the library.
KEYWORDS = {
    "average": "average",
    "output_weights": "output_weight",
    "positive": "pos_label",
    "prior": "prior",
    "seed": "random_state",
    "confidence": "confidence",
    "abstain": "abstain",
    "points": "n_points",
    "ceiling": "ceiling",
    "folds": "cv",
    "refit": "refit",
    "calibration": "calibration",
    "steps": "max_iter",
    "loss": "loss",
}


def _inexpressible(options: Mapping[str, Any]) -> Columns:
    """Options that contradict one another, by the keywords that took them once and are refused."""
    found: Columns = {}
    if options.get("clusters") and options.get("time"):
        found["time"] = True
    if "aware" in options and "sensitive" not in options:
        found["group_aware"] = options["aware"]
    if "abstain_label" in options and "abstain" not in options:
        found["abstain_label"] = options["abstain_label"]
    if options.get("weights") not in (None, "importance", "frequency"):
        found["weight_kind"] = options["weights"]
    return found


# Fields of a strategy likewise.
STRATEGY = {
    "count": "confusion",
    "recalibrate": "recalibrate",
    "solver": "solver",
    "tol": "tol",
    "randomized": "randomized",
}


def _keywords(options: Mapping[str, Any], world: World, names: Sequence[str] = tuple(KEYWORDS)) -> Columns:
    """Arguments of options that are what they are in the library, by their names there."""
    found = {KEYWORDS[name]: options[name] for name in names if name in options}
    if "abstain_label" in options and "abstain" in options:
        found["abstain"] = mw.Abstention(options["abstain"], options["abstain_label"])
    found |= _inexpressible(options)
    if names == tuple(KEYWORDS):
        settings = {field: options[name] for name, field in STRATEGY.items() if name in options}
        if options.get("estimator") == "weighted":
            found |= settings
        elif settings:
            found["strategy"] = mw.Strategy(**settings)
    if found.get("cv") == "by cluster":
        from sklearn.model_selection import GroupKFold

        found["cv"] = GroupKFold(3)
    if "record" in options:
        found["record"] = metric_of(options["record"], world)
    if "bounds" in options:
        found["subject_to"] = constraint_of(options["bounds"], world)
    if options.get("name_classes"):
        found["classes"] = world.classes if world.several else world.classes[0]
    return found


def _known_of_rows(options: Mapping[str, Any], world: World, which: str) -> Columns:
    """Weights, groups, times, sensitive features and costs of rows, by their names in the library."""
    rows, form, found = world.part(which), options.get("form", "array"), {}
    if "weights" in options:
        counts = options["weights"] != "importance"
        values = like((world.frequency if counts else world.weight)[rows], form)
        found["sample_weight"] = mw.Frequencies(values) if counts else values
    if options.get("clusters"):
        found["groups"] = like(world.cluster[rows], form)
    if options.get("time"):
        found["groups"] = mw.InTime(like(world.time[rows], form))
    return found | _sensitive(options, world, rows) | _row_costs(options, world, rows)


def _sensitive(options: Mapping[str, Any], world: World, rows: slice) -> Columns:
    if "sensitive" not in options:
        return {}
    import pandas as pd

    names = options["sensitive"]
    columns = {name: getattr(world, name)[rows] for name in names}
    values = columns[names[0]] if len(names) == 1 else pd.DataFrame(columns)
    return {"sensitive_features": values if options.get("aware", True) else mw.Sensitive(values, group_aware=False)}


def _row_costs(options: Mapping[str, Any], world: World, rows: slice) -> Columns:
    match options.get("row_costs"):
        case None:
            return {}
        case "wrong":
            return {"cost": world.wrong_costs[rows]}
        case "tables":
            return {"cost": world.cost_tables[rows]}
        case "abstaining":
            tables = world.cost_tables[rows]
            return {"cost": np.concatenate([tables, np.full((*tables.shape[:2], 1), 1.5)], axis=2)}
    raise ValueError(f"no such costs: {options['row_costs']}")


def _given(world: World, options: Mapping[str, Any], which: str = "given") -> tuple[Any, Any]:
    """Probabilities and labels as a call has them."""
    form = options.get("form", "array")
    if form in TABLES:
        return _opened(world, which, options), list(world.names) if world.several else "target"
    proba = probabilities(world, which, form)
    proba = _scaled(proba, options)
    if not options.get("labelled", True):
        return proba, None
    y_form = options.get("y_form", "array" if form in ("columns", "fortran", "float32", "tensor") else form)
    y = targets(world, which, y_form, options.get("missing_code"))
    return proba, np.ma.masked_equal(y, options["missing_code"]) if "missing_code" in options else y


def _scaled(proba: Any, options: Mapping[str, Any]) -> Any:
    """Scores in the place of probabilities, or probabilities made of them again."""
    scaled = proba * options["scale"] if "scale" in options else proba
    return scaled / scaled.sum(axis=-1, keepdims=True) if options.get("normalize") else scaled


def _opened(world: World, which: str, options: Mapping[str, Any]) -> Any:
    path = write_table(world, which, Path(f"{which}.{options['form']}"))
    return mw.Table(str(path), **({} if world.several and world.spec.kind != "multilabel" else {"proba_prefix": "p_"}))


# ------------------------------------------------------------------------------------------------------- fitting


def _fitted(world: World, options: Mapping[str, Any]) -> Any:
    proba, y = _given(world, options)
    known = _known_of_rows(options, world, "given")
    if options.get("form") in TABLES:
        counts = options.get("weights") == "frequency"
        columns = {"sample_weight": mw.Frequencies("frequency") if counts else "weight"}
        columns["groups"] = mw.InTime("time") if options.get("time") else "cluster"
        known = {name: columns.get(name, value) for name, value in known.items()}
    metric = metric_of(options["metric"], world)
    if "at_zero" in options:
        metric = mw.metrics.get_metric(metric, zero_division=options["at_zero"])
    return mw.optimize(proba, y, metric, **known, **_keywords(options, world))


def _optimize(world: World, options: Columns) -> Columns:
    return _of_solution(_fitted(world, options), world, options)


def _of_solution(solution: Any, world: World, options: Mapping[str, Any]) -> Columns:
    return {
        "decisions": _both_decided(solution.rule, world, options),
        "rule": solution.rule.to_dict(),
        "numbers": _numbers(solution),
        "structure": _structure(solution),
        "work": {"passes": solution.n_passes, "history": list(solution.history)},
        "notes": [solution.status],
        "text": {"rule": solution.rule.describe()},
    }


NUMBERS = ("value", "baseline", "optimized_value", "upper_bound", "gap", "alternative", "confusion", "level")
NUMBERS += ("threshold_range",)


def _numbers(solution: Any) -> Columns:
    found = {name: getattr(solution, name) for name in NUMBERS} | {"threshold": solution.certificate.threshold}
    found |= {name: _estimate(getattr(solution, name)) for name in ("gain", "value_on_new_rows")}
    found["candidates"] = [[one.value, one.gain, one.std_error, one.recorded] for one in solution.candidates]
    found["recorded"] = {name: [one.value, one.baseline] for name, one in solution.recorded.items()}
    found["constraints"] = [_promise(one) for one in solution.constraints]
    found["by_group"] = {
        str(group): {name: [one.value, one.baseline] for name, one in values.items()}
        for group, values in solution.by_group.items()
    }
    return {name: value for name, value in found.items() if value is not None and not _empty(value)}


def _empty(value: Any) -> bool:
    return isinstance(value, (list, dict, tuple)) and not value


def _estimate(estimate: Any) -> list[float] | None:
    return None if estimate is None else [estimate.estimate, estimate.low, estimate.high]


def _promise(promise: Any) -> list[Any]:
    numbers = [getattr(promise, name) for name in ("low", "high", "value", "margin", "confidence", "price")]
    return [*numbers, _estimate(promise.on_new_rows)]


def _structure(solution: Any) -> Columns:
    found = {
        "rule": type(solution.rule).__name__,
        "outcome": solution.outcome.value,
        "counted": solution.counted,
        "candidates": [one.recipe for one in solution.candidates],
        "constraints": [one.name for one in solution.constraints],
    }
    return {name: value for name, value in found.items() if not _empty(value)}


def predictions(rule: Any, world: World, which: str, options: Mapping[str, Any]) -> Any:
    """Decisions of a rule about rows in the form of the call; about rows of a table, those of arrays."""
    form = options.get("form", "array")
    proba = probabilities(world, which, "columns" if form in TABLES else form)
    proba = _scaled(proba, options)
    known: Columns = {}
    if isinstance(rule, mw.GroupedRule):
        known = _sensitive(options, world, world.part(which))
    elif isinstance(rule, mw.CostRule):
        known = _row_costs(options, world, world.part(which))
    labels = rule.predict(proba, **known)
    return np.asarray(labels.compute() if hasattr(labels, "compute") else labels)


def _both_decided(rule: Any, world: World, options: Mapping[str, Any]) -> Columns:
    label = rule.abstain_label
    new = decisions_of(predictions(rule, world, "new", options), world, label)
    return {"new": new, "given": _short(decisions_of(predictions(rule, world, "given", options), world, label))}


def _trade_off(world: World, options: Columns) -> Columns:
    proba, y = _given(world, options)
    known = _known_of_rows(options, world, "given")
    metric, against = metric_of(options["metric"], world), metric_of(options["against"], world)
    found = mw.trade_off(proba, y, metric, against, **known, **_keywords(options, world))
    new = [decisions_of(predictions(rule, world, "new", options), world, rule.abstain_label) for rule in found.rules]
    numbers = {name: getattr(found, name) for name in ("bounds", "values", "others", "baseline", "recorded")}
    return {
        "decisions": {"new": _short(new)},
        "rule": found.rules[-1].to_dict(),
        "numbers": numbers | {"recorded_baseline": found.recorded_baseline},
        "text": {"shown": repr(found)},
    }


# ------------------------------------------------------------------------------------------------- rules as they are


def _evaluate(world: World, options: Columns) -> Columns:
    rule = rule_of(options["rule"], world)
    against = None if "against" not in options else rule_of(options["against"], world)
    proba, y = _given(world, options, "given")
    known = _known_of_rows(options, world, "given")
    names = ("average", "output_weights", "positive", "abstain")
    metrics = metric_of(options["metrics"], world)
    found = mw.evaluate(rule, proba, y, metrics, against=against, **known, **_keywords(options, world, names))
    whole = {str(name): values.to_dict() for name, values in found.by_group.items()}
    return {
        "decisions": {
            "given": _short(decisions_of(predictions(rule, world, "given", options), world, rule.abstain_label))
        },
        "numbers": {"whole": found.to_dict(), **({"by_group": whole} if whole else {})},
        "text": {"shown": repr(found)},
    }


def _apply(world: World, options: Columns) -> Columns:
    rule = rule_of(options["rule"], world)
    chances = rule.distribution(probabilities(world, "new", options.get("form", "array")))
    return {
        "decisions": _both_decided(rule, world, options),
        "rule": rule.to_dict(),
        "numbers": {"distribution": np.asarray(chances)[:10], "threshold": getattr(rule, "thresholds", None)},
        "text": {"rule": rule.describe(), "shown": repr(rule)},
    }


def _predict_table(world: World, options: Columns) -> Columns:
    rule = rule_of(options["rule"], world)
    form = options["form"]
    n_rows = mw.predict_table(rule, _opened(world, "new", options), f"decided.{form}", keep=["id"])
    return {"numbers": {"rows": n_rows}, "decisions": {"file": _table_of(Path(f"decided.{form}"))}}


def _table_of(path: Path) -> Any:
    """What a table of decisions holds."""
    import pandas as pd

    match path.suffix:
        case ".parquet":
            frame = pd.read_parquet(path)
        case ".feather":
            frame = pd.read_feather(path)
        case _:
            frame = pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",", dtype=str)
    return _short([[name, *frame[name].astype(str).tolist()] for name in frame.columns])


def _summarize(world: World, options: Columns) -> Columns:
    solution = _fitted(world, options)
    summary = mw.report.summarize(solution)
    del summary["missing"]  # what a report says of sections that it does not have
    card = solution._repr_html_()
    return {
        "numbers": {"summary": {name: summary[name] for name in ("figures", "gains", "groups") if summary.get(name)}},
        "text": {
            "advice": summary["advice"],
            "summary": _short(json.dumps(plain_values(summary), sort_keys=True)),
            "card": _short(visible_text(card)),
            "rule card": _short(visible_text(solution.rule._repr_html_())),
        },
    }


# ----------------------------------------------------------------------------------------------------------- exports


def _export(world: World, options: Columns) -> Columns:
    rule = rule_of(options["rule"], world)
    labels, text = EXPORTS[options["to"]](rule, world, options)
    columns: Columns = {"text": {options["to"]: _short(text)}, "rule": rule.to_dict()}
    if labels is not None:
        columns["decisions"] = {"new": decisions_of(labels, world, rule.abstain_label)}
    return columns


def _to_python(rule: Any, world: World, options: Columns) -> tuple[Any, str]:
    source = mw.export.to_python(rule)
    names: Columns = {}
    exec(compile(source, "rule.py", "exec"), names)  # noqa: S102
    groups = _sensitive(options["rule"].get("fit", {}), world, world.part("new"))
    values = [] if not groups else [groups["sensitive_features"].tolist()]
    rows = probabilities(world, "new", "list")
    if world.spec.kind == "mixed":
        rows = [list(row) for row in zip(*rows, strict=True)]
    return np.array(names["decide_all"](rows, *values), dtype=object), source


def _to_sql(rule: Any, world: World, options: Columns) -> tuple[Any, str]:
    columns, named = [], {}
    for m, eta in enumerate(world.eta):
        columns.append([f"p{m}_{c}" for c in range(eta.shape[1])])
        named |= dict(zip(columns[-1], eta[world.part("new")].T, strict=True))
    group = {} if "group" not in options else {"group": options["group"]}
    given = columns if world.several else columns[0]
    text = mw.export.to_sql(rule, given, options.get("dialect", "duckdb"), **group)
    if options.get("dialect", "duckdb") != "duckdb":
        return None, text
    import duckdb
    import pyarrow as pa

    named |= {name: getattr(world, name)[world.part("new")] for name in ("sex", "region")}
    with duckdb.connect() as connection:
        connection.register("t", pa.table(named))
        found = connection.execute(f"SELECT {text} FROM t").fetchall()
    labels = np.array(found, dtype=object)
    return labels if world.several else labels[:, 0], text


def _to_onnx(rule: Any, world: World, options: Columns) -> tuple[Any, str]:
    import onnxruntime

    kind = options.get("type", "float64")
    model = mw.export.to_onnx(rule, dtype=kind, positive=False)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = world.part("new")
    if world.several:
        width = max(eta.shape[1] for eta in world.eta)
        proba = np.stack([np.pad(eta[rows], ((0, 0), (0, width - eta.shape[1]))) for eta in world.eta], axis=1)
    else:
        proba = world.eta[0][rows]
    found = session.run(None, {session.get_inputs()[0].name: proba.astype(kind)})
    labels = found[0] if len(found) == 1 else np.stack([one.astype(object) for one in found], axis=1)
    return labels, " ".join(node.op_type for node in model.graph.node)


EXPORTS = {"python": _to_python, "sql": _to_sql, "onnx": _to_onnx}


# -------------------------------------------------------------------------------------------------------- estimators


def model_of(name: str) -> Any:
    """Return a model whose probabilities are sums and ratios, which hardly depend on the processor."""
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    return GaussianNB() if name == "bayes" else DecisionTreeClassifier(max_depth=3, min_samples_leaf=5, random_state=0)


def estimator_of(options: Mapping[str, Any], world: World) -> Any:
    """Return the estimator that a call means, not fitted."""
    kind, model = options["estimator"], model_of(options.get("model", "bayes"))
    if options.get("several_models"):
        from sklearn.multioutput import MultiOutputClassifier

        model = MultiOutputClassifier(model)
    if kind == "fixed":
        return mw.FixedRuleClassifier(model, rule_of(options["rule"], world))
    settings = _keywords(options, world)
    if kind == "cost_sensitive":
        return mw.CostSensitiveClassifier(model, settings.pop("loss"), **settings)
    metric = metric_of(options["metric"], world)
    return {"optimal": mw.MetricOptimalClassifierCV, "weighted": mw.MetricWeightedClassifier}[kind](
        model, metric=metric, **settings
    )


def fitted_estimator(options: Mapping[str, Any], world: World) -> Any:
    """Return the estimator that a call means, fitted to the rows given."""
    known = _known_of_rows(options, world, "given")
    return estimator_of(options, world).fit(world.features[world.part("given")], targets(world, "given"), **known)


def _fit_estimator(world: World, options: Columns) -> Columns:
    estimator, new, of_new = fitted_estimator(options, world), world.part("new"), {}
    if "row_costs" in options:
        of_new = _row_costs(options, world, new)
    elif "sensitive" in options and options.get("aware", True):
        of_new = _sensitive(options, world, new)
    labels = np.asarray(estimator.predict(world.features[new], **of_new))
    score = estimator.score(world.features[new], targets(world, "new"), **of_new)
    label = getattr(getattr(estimator, "rule_", None), "abstain_label", None)
    columns: Columns = {"numbers": {"score": score}}
    if hasattr(estimator, "solution_"):
        solution = estimator.solution_
        columns = {
            "rule": solution.rule.to_dict(),
            "numbers": _numbers(solution) | {"score": score},
            "structure": _structure(solution),
            "work": {"passes": solution.n_passes, "history": list(solution.history)},
            "notes": [solution.status],
        }
    elif hasattr(estimator, "history_"):
        columns["numbers"] |= {"best": estimator.best_score_, "loss": estimator.loss_}
        columns["work"] = {"history": list(estimator.history_)}
    columns["decisions"] = {"new": decisions_of(labels, world, label)}
    return columns


def _score(world: World, options: Columns) -> Columns:
    names = ("average", "positive", "output_weights", "abstain")
    scorer = mw.make_scorer(metric_of(options["metric"], world), **_keywords(options, world, names))
    model = model_of(options.get("model", "bayes"))
    given, new = world.part("given"), world.part("new")
    model.fit(world.features[given], targets(world, "given"))
    return {"numbers": {"score": scorer(model, world.features[new], targets(world, "new"))}}


# ------------------------------------------------------------------------------------------------- the command line

# Words of the command line that are not the name of an option in calls behind two dashes.
WORDS = {"metric": "--metric", "bounds": "--subject-to", "sensitive": "--sensitive-features", "positive": "--pos-label"}


def command_app() -> Any:
    """Return the commands, as what typer runs."""
    from metricwise.cli.app import app

    return app


def command_words(command: Sequence[Any]) -> list[str]:
    """Return the words of a command: its name, what stands without an option, and options in order."""
    name, *places, options = command
    words = [name, *map(str, places)]
    for option, value in options.items():
        word = WORDS.get(option, f"--{option.replace('_', '-')}")
        for entry in value if isinstance(value, list) else [value]:
            words += [word] if entry is True else [word, str(entry)]
    return words


def _command_line(world: World, options: Columns) -> Columns:
    from typer.testing import CliRunner

    form = options.get("form", "csv")
    prefix = options.get("prefix", "p_")
    for which in ("given", "new"):
        write_table(world, which, Path(f"{which}.{form}"), prefix=prefix)
    before = set(Path().iterdir())
    said, codes = {}, []
    runner = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"})
    for at, command in enumerate(options["commands"]):
        result = runner.invoke(command_app(), command_words(command))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        codes.append(result.exit_code)
        said[f"{at} {command[0]}"] = {"out": _short(result.stdout), "err": _short(result.stderr)}
    columns: Columns = {"text": said, "structure": {"exit codes": codes}}
    for path in sorted(set(Path().iterdir()) - before):
        _add_file(columns, path)
    return columns


def _add_file(columns: Columns, path: Path) -> None:
    """Add what a command has written to its column."""
    if path.suffix == ".json":
        columns.setdefault("rule", {})[path.name] = json.loads(path.read_text(encoding="utf-8"))
    elif path.suffix in (".csv", ".tsv", ".parquet", ".feather"):
        columns.setdefault("decisions", {})[path.name] = _table_of(path)
    elif path.suffix == ".html":
        columns["text"][path.name] = _short(visible_text(path.read_text(encoding="utf-8")))
    elif path.suffix in (".py", ".sql"):
        columns["text"][path.name] = _short(path.read_text(encoding="utf-8"))
    else:
        columns["structure"].setdefault("files", []).append(path.name)


# ------------------------------------------------------------------------------------------------------------ theory


def _theory(world: World, options: Columns) -> Columns:
    proba, metric = probabilities(world, "given"), metric_of(options["metric"], world)
    feasible = mw.geometry.FeasibleSet.from_proba(proba)
    answer = mw.geometry.does_weighting_suffice(metric, feasible)
    rule = rule_of(options["rule"], world)
    lost = mw.theory.regret(rule, proba, proba, metric)
    return {
        "numbers": {"regret": [lost.regret, lost.value, lost.best], "weights": answer.decomposition.weights},
        "structure": {"verdict": answer.verdict},
    }


OPERATIONS: dict[str, Callable[[World, Columns], Columns]] = {
    "optimize": _optimize,
    "trade_off": _trade_off,
    "evaluate": _evaluate,
    "apply": _apply,
    "predict_table": _predict_table,
    "summarize": _summarize,
    "export": _export,
    "estimator": _fit_estimator,
    "score": _score,
    "commands": _command_line,
    "theory": _theory,
}
