"""Shared vocabulary of the tests: rows at random, small problems, and answers found by looking at everything.

Nothing here imports what it is used to check. Rules at random, which do, are in `worlds.rules`.
"""

# ruff: noqa: F401 (names are re-exported)

from worlds.exact import (
    averaged,
    best_of_family,
    best_threshold,
    blocks,
    confusion,
    crossings,
    decide,
    every_rule,
    expected,
    families,
    tables,
    undecidable,
    value,
)
from worlds.problems import Tiny, random_tiny, simplex, small_proba, tiny
from worlds.rows import (
    autoregressive,
    binary,
    clouds,
    copies,
    draw_codes,
    draw_flags,
    features,
    fraud,
    graded,
    hide,
    in_groups,
    in_time,
    multiclass,
    named,
    named_outputs,
    normalized,
    of_kind,
    outputs,
    posterior,
    shifted_groups,
    show_every_class,
    sigmoid,
    softmax,
    stepped,
    stepped_or_smooth,
)
