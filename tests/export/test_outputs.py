"""Rules by group and those that abstain in every format, and the kinds that a format refuses by name."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import CostRule, GroupedRule, WeightedRule

STRICT, LENIENT = (WeightedRule.from_thresholds(t, classes=["no", "yes"], pos_label="yes") for t in (0.6, 0.3))
BY_TWO = GroupedRule((STRICT, LENIENT), (("f", 1), ("m", 2)), ("sex", "age"))
COSTS = CostRule((np.array(["no", "yes"]),))


def load(rule):
    names = {}
    exec(compile(mw.export.to_python(rule), "rule.py", "exec"), names)  # noqa: S102
    return names


def in_duckdb(expression, **columns):
    with duckdb.connect() as connection:
        connection.register("t", pa.table(columns))
        return [row[0] for row in connection.execute(f"SELECT {expression} FROM t").fetchall()]


def test_groups_of_several_columns():
    p = np.random.default_rng(0).random(200)
    sex, age = np.where(p * 7 % 1 < 0.5, "f", "m"), np.where(p * 7 % 1 < 0.5, 1, 2)
    ours = BY_TWO.predict(p, sensitive_features=np.stack([sex.astype(object), age.astype(object)], axis=1)).tolist()
    assert set(ours) == {"no", "yes"}
    assert in_duckdb(mw.export.to_sql(BY_TWO, ["p"]), p=p, sex=sex, age=age) == ours
    assert in_duckdb(mw.export.to_sql(BY_TWO, ["p"], group=["s", "a"]), p=p, s=sex, a=age) == ours
    names = load(BY_TWO)
    assert names["decide_all"](p.tolist(), list(zip(sex.tolist(), age.tolist(), strict=True))) == ours


def test_groups_that_are_not_known():
    found = in_duckdb(
        mw.export.to_sql(BY_TWO, ["p"]), p=[0.5, 0.5, 0.5, 0.5], sex=["m", "f", None, "x"], age=[2, 2, 1, 1]
    )
    assert found == ["yes", None, None, None]
    decide, decide_all = load(BY_TWO)["decide"], load(BY_TWO)["decide_all"]
    for group in (("f", 2), "f", None):
        with pytest.raises(ValueError, match=r"group must be one of \[\('f', 1\), \('m', 2\)\], got"):
            decide(0.5, group)
    with pytest.raises(ValueError, match="there must be a group for each row, got 1 of 2"):
        decide_all([0.5, 0.5], [("f", 1)])


def test_columns_of_groups_must_be_named():
    nameless = GroupedRule((STRICT, LENIENT), ("a", "b"))
    with pytest.raises(ValueError, match="to_sql: group must name the 1 column that define the groups"):
        mw.export.to_sql(nameless, ["p"])
    with pytest.raises(ValueError, match="to_sql: group must name the 2 columns"):
        mw.export.to_sql(BY_TWO, ["p"], group="sex")
    with pytest.raises(ValueError, match="to_sql: group is only for a GroupedRule, got 'g' with a WeightedRule"):
        mw.export.to_sql(STRICT, ["p"], group="g")
    with pytest.raises(ValueError, match="the labels of a column of groups must have a single type in SQL"):
        mw.export.to_sql(GroupedRule((STRICT, LENIENT), ("a", 1)), ["p"], group="g")


def test_onnx_refuses_rules_by_group():
    with pytest.raises(TypeError, match=r"to_onnx: rule must not be a GroupedRule, .*rule.by_group\[name\]"):
        mw.export.to_onnx(BY_TWO)
    assert mw.export.to_onnx(BY_TWO.by_group["m", 2]).graph.input[0].name == "probabilities"


@pytest.mark.parametrize("export", [mw.export.to_sql, mw.export.to_python, mw.export.to_onnx])
@pytest.mark.parametrize("rule", [COSTS, COSTS.to_json(), COSTS.to_dict()], ids=["rule", "text", "document"])
def test_costs_per_row_are_refused_by_name(export, rule):
    with pytest.raises(TypeError, match=r": rule must not be a CostRule.*rule.predict"):
        export(rule)


def test_labels_of_one_type_where_the_format_has_types():
    rule = WeightedRule(Loss.argmax(3), (np.array([0, 1]),), abstain_label="ask")
    for export, name in ((mw.export.to_sql, "SQL"), (mw.export.to_onnx, "ONNX")):
        with pytest.raises(ValueError, match=f"the labels of an output must have a single type in {name}"):
            export(rule)
    price = Loss(full=np.array([[[0.0, 1.0, 0.2], [1.0, 0.0, 0.2], [0.0, 0.0, 0.0]]]))
    rule = WeightedRule(price, rule.classes, abstain_label="ask")
    p = [0.1, 0.2, 0.5, 0.8, 0.9]
    assert load(rule)["decide_all"](p) == rule.predict(p).tolist() == [0, 0, "ask", 1, 1]
