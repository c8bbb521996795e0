"""How much a test does in each part of the suite.

A property test draws as many examples as it names, scaled by the profile of the run.

``METRICWISE_TESTS`` is the profile: ``quick`` while writing (``make test-quick``), ``usual`` (``make test``),
``thorough`` (``make test-slow``). A number fixed by hand would win over hypothesis' own profiles, so tests say
``@examples(100)`` instead of ``@settings(max_examples=100)``.

Of tests with many cases, `first`, `first_of_each` and `diagonal` leave some to ``make test``, and mark the others slow.
"""

import itertools
import os
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# What share of the examples that a test names is drawn.
SHARES = {"quick": 0.1, "usual": 0.5, "thorough": 1.0}
PROFILE = os.environ.get("METRICWISE_TESTS", "usual")
SHARE = SHARES[PROFILE]
MIN_EXAMPLES = 1 if PROFILE == "quick" else 5
DEFAULT_EXAMPLES = 100  # hypothesis' own number


def scaled(number: int) -> int:
    """Return so many examples, scaled by the profile."""
    return min(number, max(MIN_EXAMPLES, round(SHARE * number)))


def examples(number: int, **others: Any) -> settings:
    """Return the settings of a property test that names a number of examples."""
    return settings(max_examples=scaled(number), **others)


def first(number: int, values: Iterable[Any]) -> list[Any]:
    """Return values for `pytest.mark.parametrize`, of which all but the first so many are slow."""
    return [pytest.param(value, marks=[] if i < number else pytest.mark.slow) for i, value in enumerate(values)]


def first_of_each(kind: Callable[..., Hashable], cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return cases for `pytest.mark.parametrize`, of which all but the first of each kind are slow."""
    kinds = set()
    marked = []
    for case in cases:
        marks = [pytest.mark.slow] if kind(*case) in kinds else []
        kinds.add(kind(*case))
        marked.append(pytest.param(*case, marks=marks))
    return marked


def diagonal(number: int, *lists: Iterable[Any]) -> list[Any]:
    """Return all combinations for `pytest.mark.parametrize`, of which all but so many are slow.

    The i-th of those that are not takes the i-th value of every list. A list starts anew at its end; whenever the
    longest does, list j is shifted by j, so that lists of one length do not always show the same pairs.
    """
    values = [list(choices) for choices in lists]
    longest = max(map(len, values))
    assert number >= longest, "a value would be shown by slow tests alone"
    kept = [[(i + j * (i // longest)) % len(choices) for j, choices in enumerate(values)] for i in range(number)]
    return [
        pytest.param(
            *(choices[i] for choices, i in zip(values, indices, strict=True)),
            marks=[] if list(indices) in kept else pytest.mark.slow,
        )
        for indices in itertools.product(*(range(len(choices)) for choices in values))
    ]


def load_profile() -> None:
    """Set what hypothesis does where a test says nothing."""
    fixed = bool(os.environ.get("CI"))  # the same examples on every run: red means that the change is wrong
    settings.register_profile(
        "metricwise",
        deadline=None,  # the first example pays for imports and caches, and shared machines stall
        derandomize=fixed,
        max_examples=scaled(DEFAULT_EXAMPLES),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("metricwise")
