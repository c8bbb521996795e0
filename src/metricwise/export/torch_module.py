"""Rules as PyTorch modules.

The arithmetic is in `torch_layers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import MissingDependency, entry_point
from ..rules.base import Rule
from ..rules.mixture import MixtureRule
from ..rules.weighted import WeightedRule
from .graph import read_positive
from .outputs import (
    DRAW_MIXERS,
    DRAW_STEP,
    IntervalTable,
    TensorWriter,
    draw_origin,
    interval_arrays,
    interval_tables,
    read_rule,
)

__all__ = ["to_torch"]


@entry_point("to_torch")
def to_torch(rule: Any, *, positive: bool | None = None) -> Any:
    """Export a rule as a PyTorch module.

    Numbers of any floating-point type are converted to float64, and scores are computed in the same order as in
    ``rule.predict``, so that decisions are the same, even at ties; after recalibration they may differ if two scores
    are within 1e-9 of each other, because libraries differ in the last bit of exp and log. Two classes on logits or
    scores are compared with the threshold of the rule, and have no probabilities in between. The module checks the
    shape of its input, but not the numbers: those that ``rule.predict`` rejects, such as NaN, must not be passed to it.

    Parameters
    ----------
    rule : WeightedRule, CutPointRule, MixtureRule, Solution, path, JSON text, or dict
        The rule, or a Solution, file, JSON text or dict that contains it.
    positive : bool, optional
        Whether the input has only the probability, log-odds or score of the second of two classes. The default is True
        for several outputs with two classes each. A rule of cut points always has one score per output.

    Returns
    -------
    torch.nn.Module
        ``module(numbers)`` takes probabilities, logits, log-probabilities or scores, as `rule.input` says: a tensor of
        shape (N, K) for one output, or (N, 1) or (N,) if `positive`; for several outputs (N, M, K), with 0 beyond the
        classes of an output, or (N, M) if `positive`. The module of a mixture takes a second argument, keys, integers
        of shape (N,): with row positions as keys, decisions are those of ``rule.predict``.

        It returns codes, an int64 tensor of shape (N,) or (N, M) on the same device: the position of a decision in
        ``rule.classes[m]``, and ``len(rule.classes[m])`` if the rule abstains. ``module.labels(codes)`` returns the
        labels, an array as from ``rule.predict``; ``module.classes[m]`` are the labels of output m in the order of
        codes.

    See Also
    --------
    to_onnx : Export a rule as an ONNX model, alone or appended to a classifier.

    Notes
    -----
    The module can be a part of a larger one, be compiled by ``torch.jit.script``, exported by ``torch.export.export``
    with a dynamic number of rows, and saved. All constants are buffers, which move with ``to(device)``. They are the
    bits of float64 numbers, stored as int64, so that ``half()``, ``float()`` and ``to(dtype)`` do not change decisions.
    The device must support float64, which Apple's MPS does not: use the CPU there. No gradient flows through decisions.

    Because sums are in order, an exported program has some operations for each class: ``torch.export.export`` of a rule
    for 400 classes takes about ten seconds.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> import metricwise as mw
    >>> rule = mw.WeightedRule.from_weights({"low": 1, "middle": 2, "high": 3}, classes=["low", "middle", "high"])
    >>> module = mw.export.to_torch(rule)  # doctest: +SKIP
    >>> codes = module(torch.tensor([[0.45, 0.4, 0.15], [0.7, 0.2, 0.1]]))  # doctest: +SKIP
    >>> codes  # doctest: +SKIP
    tensor([1, 0])
    >>> module.labels(codes)  # doctest: +SKIP
    array(['middle', 'low'], dtype='<U6')
    """
    layers = _import_layers()
    rule = read_rule(rule)
    positive = read_positive(rule, positive)
    decide = rule.accept(_Decisions(layers, positive))
    kind = layers.DrawnRuleModule if rule.is_randomized else layers.RuleModule
    return kind(_reader(layers, rule, positive), decide, rule.schema.decisions, rule.multioutput, rule.describe())


def _import_layers() -> Any:
    """Return the module of layers, or say how to install PyTorch."""
    try:
        from . import torch_layers
    except ImportError:
        raise MissingDependency("needs PyTorch, which is not installed: pip install torch") from None
    return torch_layers


def _reader(layers: Any, rule: Rule, positive: bool) -> Any:
    """Return the module that reads the numbers of rows."""
    shape = [rule.n_outputs] if rule.multioutput or positive else [rule.width]
    if rule.multioutput and not positive:
        shape.append(rule.width)
    axis = 2 if positive else -1 if rule.multioutput else 1
    return layers.RowReader([int(size) for size in shape], axis, bool(rule.schema.normalize))


@dataclass(frozen=True)
class _Decisions(TensorWriter[Any]):
    """The modules from numbers, (N, M, K) or (N, M, 1), to codes (N, M) of each kind of rule."""

    layers: Any
    positive: bool
    target = "the module"

    def weighted(self, rule: WeightedRule) -> Any:
        tables = interval_tables(rule, self.positive)
        if tables is not None:
            return self.layers.Intervals(*interval_arrays(tables))
        n_decisions, width = rule.schema.n_decisions, rule.schema.decision_width
        padding = np.arange(width) >= n_decisions[:, None]
        return self.layers.LeastLoss(self.link(rule), self.losses(rule), padding, self.positive)

    def link(self, rule: WeightedRule) -> Any:
        """The module from numbers to probabilities."""
        if rule.link is None:
            return self.layers.nn.Identity()
        real = np.arange(rule.width) < rule.n_classes[:, None]
        bias = np.where(real, rule.link.bias[:, : rule.width], -np.inf)
        return self.layers.Link(rule.link.temperature, bias, rule.link.floor, self.positive)

    def losses(self, rule: WeightedRule) -> Any:
        """The module from probabilities to scores."""
        if rule.loss.is_diagonal:
            return self.layers.DiagonalLosses(*rule.loss.arrays, self.positive)
        return self.layers.FullLosses(*rule.loss.arrays)

    def mixture(self, rule: MixtureRule) -> Any:
        parts = [self.weighted(part) for part in rule.rules]
        return self.layers.Draws(parts, rule.edges, draw_origin(rule.seed), DRAW_STEP, DRAW_MIXERS)

    def cut_points(self, rule: Any) -> Any:
        tables = [IntervalTable.of_cut_points(rule, m) for m in range(rule.n_outputs)]
        return self.layers.Intervals(*interval_arrays(tables))
