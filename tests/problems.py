"""Problems by the keywords of `optimize`, for tests of what solves them; and keywords with further settings."""

from dataclasses import fields, replace

import metricwise as mw
from metricwise.api.problems import open_problem
from metricwise.data.row_spec import RowSpec
from metricwise.goals.spec import GoalSpec

OF_ROWS = {field.name for field in fields(RowSpec)}
OF_GOAL = {field.name for field in fields(GoalSpec)}


def read_problem(proba, y, metric, *, constrained=False, **options):
    """Return the problem of rows and a goal; `constrained` says that constraints are to come."""
    if constrained:
        options["subject_to"] = ()
    rows = RowSpec(proba, y, **{name: value for name, value in options.items() if name in OF_ROWS})
    goal = GoalSpec(metric, **{name: value for name, value in options.items() if name in OF_GOAL})
    assert options.keys() <= OF_ROWS | OF_GOAL
    return open_problem(rows, goal)[0]


def asking(options, **settings):
    """Return options with further settings of their strategy."""
    return options | {"strategy": replace(options.get("strategy", mw.Strategy()), **settings)}


def with_strategy(**options):
    """Return options for `optimize`, with fields of a strategy among them put into one."""
    settings = {name: options.pop(name) for name in mw.Strategy().get_params() if name in options}
    return options | {"strategy": mw.Strategy(**settings)}
