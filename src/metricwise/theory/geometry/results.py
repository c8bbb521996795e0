"""What questions to the feasible set are answered with: values that hold their own evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...rules.mixture import MixtureRule
from ...rules.weighted import WeightedRule, anonymous_rule

__all__ = ["Decomposition", "Exit", "Membership", "Part"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """What was found for one output: a loss (K_m, K_m), and a mixture of the rules of losses."""

    loss: FloatArray
    losses: tuple[FloatArray, ...] = ()
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A confusion tensor as a mixture of the confusions of weighted rules.

    Parameters
    ----------
    losses : tuple of R Loss
        The losses of the rules, each with a loss for every output.
    weights : ndarray of shape (M, R)
        Weights of the rules for each output, in descending order; 0 for a rule that an output does not need.
    confusion : ndarray of shape (M, K, K)
        The confusion of the mixture.
    n_classes : ndarray of shape (M,), int
        Number of classes of each output.

    See Also
    --------
    FeasibleSet.contains : Finds a decomposition.

    Examples
    --------
    >>> from metricwise.geometry import FeasibleSet
    >>> feasible = FeasibleSet.from_proba([[0.9, 0.1], [0.4, 0.6]])
    >>> mixture = feasible.contains([[0.4, 0.25], [0.1, 0.25]]).decomposition
    >>> mixture.weights.shape, mixture.n_rules
    ((1, 3), 3)
    """

    losses: tuple[Loss, ...]
    weights: FloatArray
    confusion: FloatArray
    n_classes: NDArray[np.intp]

    @property
    def n_rules(self) -> int:
        """R, the most rules that an output needs."""
        return len(self.losses)

    def rule(self, seed: int = 0) -> WeightedRule | MixtureRule:
        """Return the rule that reaches the confusion, with codes as labels."""
        rules = tuple(anonymous_rule(loss, self.n_classes) for loss in self.losses)
        if len(rules) == 1:
            return rules[0]
        return MixtureRule(rules, self.weights[0] if len(self.weights) == 1 else self.weights, seed=seed)


@dataclass(frozen=True, eq=False)
class Membership:
    """Whether a confusion tensor can be reached; ``bool()`` returns the answer.

    Parameters
    ----------
    inside : bool
        Whether the tensor is in the set or on its boundary, within the tolerance.
    decomposition : Decomposition or None
        The proof if inside: a mixture of weighted rules that reaches the tensor, with at most one rule more than the
        dimension of the set of each output.
    loss : Loss or None
        The proof if outside, with Frobenius norm 1: ``<loss, C>`` is less than its value for any rule.
    margin : float
        Lower bound of the distance to the set; 0 if inside.

    See Also
    --------
    FeasibleSet.contains : Decides membership.

    Examples
    --------
    >>> from metricwise.geometry import FeasibleSet
    >>> feasible = FeasibleSet.from_proba([[0.9, 0.1], [0.4, 0.6]])
    >>> bool(feasible.contains([[0.65, 0.0], [0.0, 0.35]]))
    False
    """

    inside: bool
    decomposition: Decomposition | None
    loss: Loss | None
    margin: float

    def __bool__(self) -> bool:
        return self.inside

    def __repr__(self) -> str:
        if self.decomposition is not None:
            return f"Membership(inside=True, n_rules={self.decomposition.n_rules})"
        return f"Membership(inside=False, margin={self.margin:.6g})"


@dataclass(frozen=True, eq=False)
class Exit:
    """The point where a ray leaves the set.

    Parameters
    ----------
    length : float
        The largest t for which ``start + t * direction`` can be reached.
    confusion : ndarray of shape (M, K, K)
        The point on the boundary.
    loss : Loss
        A loss that supports the set at this point, modulo row constants; 0 for outputs in which the ray has not
        stopped.

    See Also
    --------
    FeasibleSet.exit : Follows a ray.

    Examples
    --------
    >>> from metricwise.geometry import FeasibleSet
    >>> feasible = FeasibleSet.from_proba([[0.9, 0.1], [0.4, 0.6]])
    >>> end = feasible.exit([[0.325, 0.325], [0.175, 0.175]], [[1.0, -1.0], [-1.0, 1.0]])
    >>> round(end.length, 6)
    0.125
    """

    length: float
    confusion: FloatArray
    loss: Loss
