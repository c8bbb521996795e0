"""The sample that judges rules of very many classes, and the link of all rows that are not in it.

A sample that is small enough to search in shows a class a few times, which says little about its bias. So the link of
the rules that it judges is fitted to the other rows. Must not know candidates.
"""

from __future__ import annotations

from ..core.sampling import draw_rows
from ..data.sources.memory import MemorySource
from ..oracles.problem import InMemory, Problem
from ..rules.calibration import TemperatureScaling
from ..rules.calibration_fit import link_rows

__all__ = ["FEW_CLASS_ROWS", "MANY_CLASSES", "draw_judging_sample"]

_ENTRIES = 1 << 23  # probabilities of the sample
FEW_CLASS_ROWS = 20  # rows per class of a sample, below which they say little about biases
MANY_CLASSES = 100  # from which on a class has few of the rows that judge
_LEAST_RATIO = 3  # of all rows to those of the sample: the others have most of what there is to learn


def draw_judging_sample(problem: Problem, seed: int) -> tuple[InMemory, TemperatureScaling] | None:
    """Return a sample of the rows of a single output of very many classes, and the link of the other rows.

    None where there are fewer classes or rows, and where rows belong together or stand for several, so that the others
    would know the sample.
    """
    schema = problem.schema
    n_rows = _ENTRIES // max(schema.width, 1)
    is_plain = schema.n_outputs == 1 and problem.prior is None and problem.dependence is None
    if not is_plain or n_rows >= FEW_CLASS_ROWS * schema.width or problem.n_rows < _LEAST_RATIO * n_rows:
        return None
    rows = problem.source.sample(link_rows(schema.width))
    if rows.n_rows < _LEAST_RATIO * n_rows or rows.cluster is not None or rows.repeats is not None:
        return None
    assert rows.codes is not None
    drawn = draw_rows(rows.codes, n_rows, rows.n_rows, weight=rows.weight, seed=seed)
    source = MemorySource(rows.sampled(drawn.rows, drawn.frequency), schema, problem.source.passes)
    if source.rows.copies() is not None:
        return None
    link = problem.link_without(rows, drawn.rows)
    return InMemory(source, problem.aim, None, problem.record, problem.allowed), link
