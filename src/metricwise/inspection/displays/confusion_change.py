"""Display of confusion matrices before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, entry_point
from ...core.labels import python_labels
from ...metrics.naming import same_classes
from ..details import Details
from ..text import number
from ..view import View
from ._base import RowsDisplay
from ._style import GREY, INCHES_PER_LETTER, font_for, pyplot, short

__all__ = ["ConfusionChangeDisplay"]

FloatArray = NDArray[np.float64]

_MAX_CLASSES_WITH_NUMBERS = 12
_MAX_CLASSES_WITH_NAMES = 40
_MAX_NAME_LENGTH = 16
_MAX_LETTERS_BELOW = 26  # of all columns together; of more, names are upright
_MIN_SIGNED_SHARE = 0.15  # of the largest difference: smaller ones have no sign


@dataclass(eq=False)
class ConfusionChangeDisplay(RowsDisplay):
    """Confusion matrices of argmax and of the rule, and their difference.

    Parameters
    ----------
    before, after : ndarray of shape (K, K) or (K, D)
        Confusion matrices as shares or weights of rows, pooled over outputs with the same classes.
    labels : sequence of K str
        Names of the classes.
    decisions : sequence of D str, optional
        Names of the columns, if the rule may also abstain.
    normalize : {"true", "all", "counts"}, default="true"
        Whether to show shares of each true class, shares of all rows, or weights of rows.

    Attributes
    ----------
    ax_ : ndarray of 3 matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    sklearn.metrics.ConfusionMatrixDisplay : Display of one confusion matrix.
    MovesDisplay : Rows whose decision changed.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.displays import ConfusionChangeDisplay
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([3, 2, 1], 1000)
    >>> y = (P.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1)
    >>> display = ConfusionChangeDisplay.from_solution(mw.optimize(P, y, "macro_f1"))
    >>> [ax.get_title() for ax in display.ax_]
    ['argmax', 'rule', 'difference']
    """

    before: FloatArray
    after: FloatArray
    labels: Sequence[str]
    decisions: Sequence[str] | None = None
    normalize: str = "true"

    @classmethod
    def from_details(cls, details: Details, solution: View | None = None) -> Self:
        """Return the display without drawing it."""
        return cls(*pooled(details))

    @property
    def matrices(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The matrices that are drawn: before, after and their difference, (K, K) each."""
        before, after = (self._normalized(matrix) for matrix in (self.before, self.after))
        return before, after, after - before

    def _normalized(self, matrix: FloatArray) -> FloatArray:
        if self.normalize == "counts":
            return matrix
        total = matrix.sum(axis=1, keepdims=True) if self.normalize == "true" else matrix.sum()
        return np.asarray(matrix / np.where(total > 0, total, 1.0))

    @entry_point()
    def plot(
        self, ax: Any = None, *, normalize: str | None = None, cmap: str = "Greys", diverging: str = "PuOr_r"
    ) -> Self:
        """Draw three matrices side by side.

        Parameters
        ----------
        ax : sequence of 3 matplotlib Axes, optional
        normalize : {"true", "all", "counts"}, optional
        cmap : str, default="Greys"
            Colormap of the first two matrices.
        diverging : str, default="PuOr_r"
            Colormap of the difference.

        Returns
        -------
        self
        """
        if normalize is not None:
            self.normalize = normalize
        if self.normalize not in ("true", "all", "counts"):
            raise InvalidParameter("normalize", "be 'true', 'all' or 'counts'", repr(normalize))
        plt, k = pyplot(), len(self.labels)
        if ax is None:
            # "compressed" is the constrained layout of axes with a fixed aspect.
            self.figure_, axes = plt.subplots(1, 3, figsize=self._figure_size(), layout="compressed")
        else:
            axes = np.asarray(ax, dtype=object).ravel()
            if len(axes) != 3:
                raise InvalidParameter("ax", "be 3 axes", len(axes))
            self.figure_ = axes[0].figure
        self.ax_ = axes
        matrices = self.matrices
        most = max(float(matrices[0].max()), float(matrices[1].max()), 1e-12)
        far = max(float(np.abs(matrices[2]).max()), 1e-12)
        for axis, matrix, title in zip(axes, matrices, ("argmax", "rule", "difference"), strict=True):
            signed = title == "difference"
            scale = (
                {"cmap": diverging, "vmin": -far, "vmax": far} if signed else {"cmap": cmap, "vmin": 0, "vmax": most}
            )
            image = axis.imshow(matrix, interpolation="nearest", **scale)
            axis.set_title(title)
            self._name_cells(axis, first=axis is axes[0])
            if k <= _MAX_CLASSES_WITH_NUMBERS:
                self._write_cells(axis, image, matrix, signed)
            elif signed and k <= _MAX_CLASSES_WITH_NAMES:  # in grey, more and less look alike
                for i, j in np.argwhere(np.abs(matrix) > _MIN_SIGNED_SHARE * far):
                    sign = "+" if matrix[i, j] > 0 else "−"
                    axis.text(j, i, sign, ha="center", va="center", fontsize=6, color=_ink(image, matrix[i, j]))
        return self

    def _figure_size(self) -> tuple[float, float]:
        """Return the size at which matrices are equally large, whatever the names of the classes."""
        k, decisions = len(self.labels), _names(self.decisions or self.labels)
        side = float(np.clip(1.1 + 0.42 * k, 2.6, 5.5))
        width, height = 3 * side, side + 0.7
        if k <= _MAX_CLASSES_WITH_NAMES:
            width += INCHES_PER_LETTER * max(map(len, _names(self.labels)))
            height += INCHES_PER_LETTER * max(map(len, decisions)) if _are_upright(decisions) else 0.0
        return width, height

    def _write_cells(self, axis: Any, image: Any, matrix: FloatArray, signed: bool) -> None:
        percent = self.normalize != "counts"
        size = float(np.clip(13 - 0.5 * len(self.labels), 6.5, 11))
        for (i, j), value in np.ndenumerate(matrix):
            sign = "+" if signed else ""
            text = f"{100 * value:{sign}.1f}" if percent else number(value, signed)
            if not percent and abs(value - round(value)) < 1e-6:
                text = f"{round(value):{sign},d}"
            text = "0" if text.strip("+-−0.") == "" else text.replace("-", "−")
            axis.text(j, i, text, ha="center", va="center", fontsize=size, color=_ink(image, value))

    def _name_cells(self, axis: Any, first: bool) -> None:
        k, columns = len(self.labels), self.decisions or self.labels
        unit = {"true": "% of the true class", "all": "% of all rows", "counts": "rows"}[self.normalize]
        axis.set_xlabel("predicted")
        axis.set_ylabel(f"true ({unit})" if first else "")
        if k > _MAX_CLASSES_WITH_NAMES:
            return
        names, decisions = _names(self.labels), _names(columns)
        options = {"fontsize": "small" if k <= 8 else "x-small", **font_for([*names, *decisions])}
        axis.set_xticks(range(len(decisions)), decisions, rotation=90 if _are_upright(decisions) else 0, **options)
        axis.set_yticks(range(k), names if first else [""] * k, **options)
        axis.tick_params(length=0, colors=GREY, labelcolor="black")


def _names(labels: Sequence[str]) -> list[str]:
    return [short(label, _MAX_NAME_LENGTH) for label in labels]


def _are_upright(names: Sequence[str]) -> bool:
    """Return whether names below the columns would meet one another."""
    return max(map(len, names)) * len(names) > _MAX_LETTERS_BELOW


def _ink(image: Any, value: float) -> str:
    """Return what can be read on the colour of a value."""
    red, green, blue, _ = image.cmap(image.norm(value))
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "black"


def pooled(details: Details) -> tuple[FloatArray, FloatArray, list[str], list[str]]:
    """Return the confusions of all outputs before and after, as weights, and names of the classes and decisions."""
    classes = details.rule.classes
    if not same_classes(classes):
        raise InvalidParameter(
            "outputs",
            "have the same classes to be shown together",
            "different ones",
            (
                "draw one of them: ConfusionChangeDisplay(before, after, labels), with "
                "solution.details.before[m] and .after[m]"
            ),
            owner="ConfusionChangeDisplay",
        )
    k = len(classes[0])
    before, after = (np.einsum("m,mij->ij", details.weight, tensor)[:k] for tensor in (details.before, details.after))
    names = (classes[0], details.rule.schema.decisions[0])
    labels, decisions = ([str(label) for label in python_labels(part)] for part in names)
    return before, after, labels, decisions
