"""Wrong arguments give one sentence, or what they can be read as gives the right shape: never another traceback."""

import numpy as np
import pytest

from fuzz.mangled_calls import check_optimize, check_predict, check_score, mangle_some, problem, scored, shown_to_a_rule

CHUNK, CHUNKS = 100, 5


def hunt(chunk, arguments, check):
    """Call `check` with mangled arguments of each seed of a chunk, and say which they were where it fails."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = np.random.default_rng(seed)
        mangled, names = mangle_some(arguments(rng), rng)
        try:
            check(mangled)
        except Exception as error:
            error.add_note(f"with seed {seed}, {', '.join(f'{name}={mangled[name]!r}' for name in names)}")
            raise


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_optimize_refuses_in_a_sentence(chunk):
    hunt(chunk, problem, check_optimize)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_score_refuses_in_a_sentence(chunk):
    hunt(chunk, scored, check_score)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_predict_refuses_in_a_sentence(chunk):
    hunt(chunk, shown_to_a_rule, check_predict)
