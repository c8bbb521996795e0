"""Confusion matrices that laws run over."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


def interior(rng, n_classes, *shape):
    """Confusion matrices with every cell well above 0."""
    cells = rng.dirichlet(np.ones(n_classes**2), size=shape or None) + 0.1 / n_classes
    cells = cells / cells.sum(axis=-1, keepdims=True)
    return cells.reshape(*shape, n_classes, n_classes)


def same_priors(rng, confusion):
    """Another matrix with the row sums of this one."""
    n_classes = confusion.shape[-1]
    return confusion.sum(axis=-1, keepdims=True) * rng.dirichlet(np.ones(n_classes), size=n_classes)


@st.composite
def degenerate_counts(draw, n_classes):
    """Small counts, most of them 0, not all: absent classes, classes never predicted, a single cell."""
    cell = st.sampled_from([0, 0, 0, 0, 1, 2, 7])
    counts = draw(hnp.arrays(np.int64, (n_classes, n_classes), elements=cell))
    if counts.sum() == 0:
        counts[draw(st.integers(0, n_classes - 1)), draw(st.integers(0, n_classes - 1))] = 1
    return counts
