"""The demo: it runs, and what it prints is what scikit-learn says about held-out rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score
from sklearn.model_selection import train_test_split

from metricwise.cli import demo


@pytest.fixture(scope="module")
def cases():
    return list(demo.cases())


def test_prints_a_table_and_a_rule_for_each_kind_of_problem(capsys, cases):
    demo.main(n_splits=1)
    printed = capsys.readouterr().out
    for kind in ("Multiclass", "Ordinal", "Multioutput"):
        assert f". {kind}: " in printed
    lines = printed.splitlines()
    for case in cases:
        for name in case.metrics:
            assert any(line.startswith(f"    {name} ") and line.endswith(" of 1 splits") for line in lines)
    assert printed.count("    | Rule for ") == 3
    assert max(map(len, lines)) <= demo.WIDTH
    assert printed.isascii()


def test_columns_are_aligned():
    results = {"a": demo.Comparison(np.array([0.5, 0.25]), np.array([0.75, 0.25]), None)}
    head, row = demo.table(results).splitlines()
    for title, value in (("argmax", "0.375"), ("optimal rule", "0.500"), ("change", "+0.125")):
        assert head.index(title) + len(title) == row.index(value) + len(value)
    assert row.endswith(" 1 of 2 splits")


def test_scores_are_those_of_scikit_learn_on_rows_that_were_held_out(cases):
    _, ordinal, multioutput = cases
    X, X_new, y, y_new = train_test_split(ordinal.X, ordinal.y, test_size=0.5, random_state=0, stratify=ordinal.y)
    model = ordinal.model.fit(X, y)
    found = demo.compare(ordinal, 1)["quadratic_kappa"]
    predicted = {"argmax": model.predict(X_new), "optimal": found.rule.predict(model.predict_proba(X_new))}
    for column, labels in predicted.items():
        expected = cohen_kappa_score(y_new, labels, weights="quadratic")
        assert getattr(found, column)[0] == pytest.approx(expected, abs=1e-12)

    X, X_new, y, y_new = train_test_split(multioutput.X, multioutput.y, test_size=0.5, random_state=0)
    model = multioutput.model.fit(X, y)
    found = demo.compare(multioutput, 1)["balanced_accuracy"]
    predicted = {"argmax": model.predict(X_new), "optimal": found.rule.predict(model.predict_proba(X_new))}
    for column, labels in predicted.items():
        expected = np.mean([balanced_accuracy_score(y_new[:, m], labels[:, m]) for m in range(6)])
        assert getattr(found, column)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "g_mean"), (0, "min_recall"), (1, "quadratic_kappa"), (2, "micro_f1"), (2, "balanced_accuracy")],
)
def test_large_gains_are_there_on_a_few_splits(cases, number, name):
    case = cases[number]
    found = demo.compare(replace(case, metrics={name: case.metrics[name]}), 3)[name]
    assert found.optimal.mean() > found.argmax.mean() + 0.02
