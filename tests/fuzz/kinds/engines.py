"""The same rows behind every engine, and by both kernels: the same counts, walks, samples, rules and values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from engines import ENGINES, served_by
from fuzz import cases
from fuzz.by_hypothesis import N_BYTES, run_property
from fuzz.cases import TARGETS
from fuzz.verdicts import Verdict
from kernels import twins
from laws.engine_promises import check_agreement

MAX_SEED = 1 << 40
OTHERS = [name for name in ENGINES if name not in ("memory", "dask", "parquet", "spark")]
SLOW_OTHERS = ["dask", "parquet"]  # which take a while to start
TWINS = (
    twins.test_decisions,
    twins.test_recalibration_to_the_last_bit,
    twins.test_counts_of_labels,
    twins.test_expected_counts,
    twins.test_changes,
    twins.test_checks,
    twins.test_codes,
    twins.test_tallies,
    twins.test_rows_of_low_keys,
)


@dataclass
class Counted:
    """Rows that are counted in memory and behind an engine."""

    engine: str
    confusion: str
    seed: int
    layout: str
    options: tuple
    of_logits: bool
    refusable: bool = False

    def judge(self):
        check_agreement(self.engine, self.confusion, self.seed, self.layout, self.options, of_logits=self.of_logits)
        return Verdict.RIGHT


@dataclass
class Fitted:
    """A case that is fitted in memory and behind an engine."""

    engine: str
    target: str
    seed: int
    refusable: bool = False

    def judge(self):
        case = cases.draw(self.target, self.seed)
        with served_by("memory"):
            expected = cases.optimize(case, case.proba)
        with served_by(self.engine):
            solution = cases.optimize(case, case.proba)
        assert solution.value == pytest.approx(expected.value, abs=1e-12)
        assert solution.baseline == pytest.approx(expected.baseline, abs=1e-12)
        if case.weight is None or case.weights == "integer":  # whose sums are exact in any order
            assert solution.rule == expected.rule
        return Verdict.RIGHT


@dataclass
class Twins:
    """Arguments of a kernel for both of its versions."""

    test: Callable
    content: bytes = field(repr=False)
    refusable: bool = False

    def __str__(self):
        return f"{self.test.__name__} on {len(self.content)} bytes"

    def judge(self):
        run_property(self.test, self.content)
        return Verdict.RIGHT


def draw(rng):
    """Draw rows, and two that must agree about them."""
    shape = rng.random()
    if shape < 0.6:
        return Twins(TWINS[rng.integers(len(TWINS))], rng.bytes(N_BYTES))
    engine = str(rng.choice(SLOW_OTHERS if rng.random() < 0.1 else OTHERS))
    seed = int(rng.integers(MAX_SEED))
    if shape < 0.8:
        confusion = str(rng.choice(["labels", "expected", "blended"]))
        # Tables have a column for each class: of an array of several outputs other rows are sampled.
        layout = str(rng.choice(["binary", "list"] if engine == "parquet" else ["binary", "array", "list"]))
        options = tuple(bool(rng.integers(2)) for _ in range(3))
        return Counted(engine, confusion, seed, layout, options, bool(rng.integers(2)))
    return Fitted(engine, str(rng.choice(TARGETS)), seed)
