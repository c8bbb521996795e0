"""``watch``: a monitor of the promises of a rule, to which batches of rows and labels are given as they come.

Owns what users call and read. It suggests, and never changes the rule. Must not know how evidence is computed.
"""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from ..core.errors import InvalidParameter, entry_point, shown
from ..data.frames import warn_of_order
from ..evaluation.arguments import read_rule
from ..rules.base import PARTITIONS, Rule
from ..rules.codec import dump
from .forms import LABELLED
from .promises import read_promises
from .reading import read_codes, read_ids
from .state import WatchSettings, WatchState, add_labels, add_rows
from .status import PromiseStatus, notes_of, plural, statuses_of, summarize

__all__ = ["Watch", "load_watch", "watch"]


class Watch:
    """A monitor of promises of a rule; made by :func:`metricwise.watch` or :func:`metricwise.load_watch`.

    Attributes
    ----------
    rule : Rule
        The rule that is watched, which is never changed.
    n_batches, n_rows, n_labelled, n_waiting : int
        Calls of `update` and `update_labels`, rows decided, rows with a label, and rows that wait for one.
    promises : tuple of PromiseStatus
        What is known of each promise.
    broken : bool
        Whether any promise was found to be broken.

    See Also
    --------
    metricwise.watch : Watch a rule.
    metricwise.load_watch : Go on with a watch that was saved.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), "accuracy >= 0.7")
    >>> for day in range(10):
    ...     p = rng.random(100)
    ...     y = rng.random(100) < (p if day < 5 else 0.5)  # the model says nothing any more
    ...     _ = watch.update(p, y.astype(int))
    >>> watch.broken, watch.promises[0].since
    (True, 6)
    """

    def __init__(self, settings: WatchSettings, state: WatchState | None = None) -> None:
        self._settings = settings
        self._state = WatchState.begin(settings) if state is None else state

    # ------------------------------------------------------------------------------------------------- rows and labels

    @entry_point()
    def update(
        self,
        proba: Any,
        y: Any = None,
        ids: Any = None,
        *,
        sensitive_features: Any = None,
        cost: Any = None,
        start: int = 0,
        pos_label: Any = None,
        segments: Any = None,
    ) -> Self:
        """Add a batch of rows, which the rule decides; if anything is wrong with it, nothing changes.

        Parameters
        ----------
        proba : array-like
            Class probabilities, logits or scores, as ``rule.predict`` takes them.
        y : array-like of shape (N,) or (N, M), optional
            True labels, among the rule's classes; NaN, None and NA where a label is missing. A row some of whose
            outputs have labels does not wait for the others.
        ids : array-like of shape (N,), optional
            A text or an integer for each row, by which its label may come later: see :meth:`update_labels`. The labels
            of rows without ids cannot. An id that was given before is refused.
        sensitive_features, cost, start, pos_label, segments
            As in ``rule.predict``. The decisions of a mixture are those that ``rule.predict`` draws with this `start`.

        Returns
        -------
        Watch
            Itself.

        Examples
        --------
        >>> import metricwise as mw
        >>> watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), "precision >= 0.5")
        >>> watch.update([0.2, 0.7, 0.9], y=[0, 1, None], ids=["a", "b", "c"]).n_waiting
        1
        """
        settings = self._settings
        warn_of_order(proba=proba, y=y, ids=ids)
        row_inputs = {"sensitive_features": sensitive_features, "cost": cost, "segments": segments}
        rows = settings.rule.read_rows(proba, start=start, pos_label=pos_label, **row_inputs)
        n_rows = rows.proba.n_rows
        decisions = settings.rule.decide(rows)
        codes = np.full(decisions.shape, -1) if y is None else read_codes(settings.rule, y, proba, n_rows)
        names = None if ids is None else read_ids(ids, n_rows)
        groups = rows.groups if "sensitive_features" in settings.rule.needs else None  # promises may be about these
        self._state = add_rows(settings, self._state, decisions, codes, groups, names)
        return self

    @entry_point()
    def update_labels(self, ids: Any, y: Any) -> Self:
        """Add labels of rows that were decided before; if anything is wrong with them, nothing changes.

        Evidence is collected in the order in which labels come, as one batch. Values and intervals are the same in any
        order.

        Parameters
        ----------
        ids : array-like of shape (N,)
            Ids of rows that wait for their labels. An id that is not known, or whose label is, is refused.
        y : array-like of shape (N,) or (N, M)
            Their labels; a row without any goes on waiting.

        Returns
        -------
        Watch
            Itself.

        Examples
        --------
        >>> import metricwise as mw
        >>> watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), "precision >= 0.5")
        >>> watch = watch.update([0.2, 0.7, 0.9], ids=["a", "b", "c"])
        >>> watch.update_labels(["c", "b"], [1, 0]).promises[0].estimate.estimate
        0.5
        """
        settings = self._settings
        codes = read_codes(settings.rule, y, None, None)
        self._state = add_labels(settings, self._state, read_ids(ids, len(codes)), codes)
        return self

    # ---------------------------------------------------------------------------------------------------- what it says

    @property
    def rule(self) -> Rule:
        """The rule that is watched."""
        return self._settings.rule

    @property
    def alpha(self) -> float:
        """Probability of calling any promise broken although all are kept."""
        return self._settings.alpha

    @property
    def labelled(self) -> str:
        """What decides whether the label of a row becomes known."""
        return self._settings.labelled

    @property
    def forget_after(self) -> int | None:
        """Number of batches after which a row no longer waits for its label."""
        return self._settings.forget_after

    @property
    def n_batches(self) -> int:
        """Calls of `update` and `update_labels` so far."""
        return self._state.n_batches

    @property
    def n_rows(self) -> int:
        """Rows that were decided."""
        return self._state.n_rows

    @property
    def n_labelled(self) -> int:
        """Rows whose labels are known."""
        return self._state.n_labelled

    @property
    def n_waiting(self) -> int:
        """Rows that wait for their labels, by id."""
        return len(self._state.waiting.rows)

    @property
    def promises(self) -> tuple[PromiseStatus, ...]:
        """What is known of each promise."""
        return statuses_of(self._settings, self._state)

    @property
    def broken(self) -> bool:
        """Whether any promise was found to be broken."""
        return any(known.found is not None for known in self._state.promises)

    @property
    def notes(self) -> tuple[str, ...]:
        """What should be known besides, as sentences."""
        return notes_of(self._state)

    @entry_point()
    def summary(self) -> dict[str, Any]:
        """Return everything that a display or a report shows, as JSON types.

        Returns
        -------
        dict
            With these keys.

            - `metricwise`: the version; `rule`: the rule in words; `alpha`, `labelled`: as in :func:`metricwise.watch`.
            - `batches`, `rows`, `labelled_rows`, `waiting`: numbers.
            - `broken`, `sentences`, `notes`: the result.
            - `promises`: for each, the fields of :class:`PromiseStatus`, infinite bounds as None, and over time, for
              each entry of `history`: `values` of the rows decided then, and `running`, `running_low`, `running_high`
              and `log_evidence` of all rows up to then.
            - `history`: `first` and `last`, numbers of batches (neighbours are joined in long streams), `rows`, and
              `outputs`: for each its `name`, its `decisions` and their `shares`.

        Examples
        --------
        >>> import metricwise as mw
        >>> watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), "precision >= 0.5")
        >>> summary = watch.update([0.2, 0.7, 0.9, 0.1], y=[0, 1, 0, 0]).summary()
        >>> summary["promises"][0]["values"], summary["history"]["outputs"][0]["shares"]
        ([0.5], [[0.5, 0.5]])
        """
        return summarize(self._settings, self._state)

    def __repr__(self) -> str:
        waiting = f", {self.n_waiting:,} of which wait for their labels" if self.n_waiting else ""
        batches, rows = plural(self.n_batches, "batch"), plural(self.n_rows, "row")
        head = f"Watch: {batches}, {rows}{waiting}, {self.n_labelled:,} with a label."
        return "\n".join([head, *(status.sentence for status in self.promises), *self.notes])

    # ------------------------------------------------------------------------------------------------- pictures, files

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Plot promises and decisions over time; requires matplotlib.

        Parameters
        ----------
        ax : array of matplotlib Axes, optional
            One for each promise, and one for each output; by default, new ones.
        **kwargs
            Passed to :meth:`metricwise.displays.WatchDisplay.plot`.

        Returns
        -------
        WatchDisplay

        See Also
        --------
        metricwise.displays.WatchDisplay
        """
        from ..inspection.displays.watch import WatchDisplay

        return WatchDisplay.from_watch(self, ax=ax, **kwargs)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page about the watch; requires Jinja2.

        Parameters
        ----------
        path : path
            Where to write the file, which is written completely or not at all.
        """
        from ..inspection.watch_page import write_watch_page

        write_watch_page(path, self.summary())

    @entry_point()
    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the watch with its rule as JSON text; if `path` is given, also write it there.

        A watch that is loaded goes on exactly as if it had never stopped. A file is written completely or not at all.

        Parameters
        ----------
        path : path, optional

        Returns
        -------
        str
        """
        from .watch_file import to_document  # only who saves or loads needs it

        return dump(to_document(self._settings, self._state), path)


@entry_point("watch")
def watch(
    rule: Any,
    subject_to: Any = None,
    *,
    alpha: float = 0.05,
    labelled: str = "random",
    pos_label: Any = None,
    forget_after: int | None = None,
) -> Watch:
    """Watch whether a rule in use keeps its promises, as rows are decided and labels become known.

    Batches of rows are given to :meth:`Watch.update`, labels with them or later, by id, to :meth:`Watch.update_labels`.
    One may look after every batch: a promise that is kept is called broken with probability `alpha` at most, over all
    promises and all times together.

    Parameters
    ----------
    rule : rule, Solution, path, str or dict
        The rule in use, as in :func:`metricwise.evaluate`.
    subject_to : str, constraint, or list of these, optional
        What is promised, in any form that :func:`metricwise.optimize` takes: ``"precision >= 0.9"``. None: the
        constraints that the rule was fitted with. Bounds on ratios of counts (shares, recalls, precisions, F, accuracy,
        costs), on kappa, and on means of class ratios (balanced accuracy, macro-F1, G-mean, MCC of two classes) can be
        watched; gaps between groups cannot.
    alpha : float, default=0.05
        Probability of calling any promise broken although all are kept.
    labelled : {"random", "by_decision", "by_class"}, default="random"
        What decides whether the label of a row becomes known: nothing that has to do with it ("random"), the decision,
        as where only rows that are predicted positive are looked at, or the true class. Promises that the rows with
        labels cannot show are then refused: with "by_decision" all but precisions of a class and predicted shares, with
        "by_class" all but recalls of a class and predicted shares. Labels that are clearly not random raise an error.
    pos_label : object, or list of M objects, optional
        The positive class of promises that name none. None: that of the rule.
    forget_after : int, optional
        Number of batches, calls of `update` and `update_labels`, after which a row no longer waits for its label; None:
        it waits for ever, and at most 200,000 rows may wait.

    Returns
    -------
    Watch

    See Also
    --------
    load_watch : Go on with a watch that was saved.
    optimize : Fit a rule with constraints.
    evaluate : A rule on labelled rows, looked at once.

    Notes
    -----
    For a bound on a ratio of means, the evidence is an e-process against the hypothesis that, given everything before,
    the mean of ``a - bound * b`` over the next row keeps the bound, where a and b are what the row adds to the
    numerator and the denominator. It is mixed over bets and over the batches in which the promise may have been broken;
    the j-th has weight ``1 / (j (j + 1))``. A promise is broken once its evidence reaches the number of bounds divided
    by `alpha`. For kappa, the same holds of pairs of rows, drawn at random within a batch. Of means of class ratios,
    the limits of each ratio hold at all times together, since the first batch, the second, the fourth and so on; this
    supposes that the rows since then are alike.

    Rows that depend on one another, such as many rows of one patient in a batch, are more alike than is assumed here.

    References
    ----------
    .. [1] Podkopaev, Ramdas (2022), "Tracking the Risk of a Deployed Model and Detecting Harmful Distribution Shifts",
           ICLR.
    .. [2] Ramdas, Grünwald, Vovk, Shafer (2023), "Game-Theoretic Statistics and Safe Anytime-Valid Inference",
           Statistical Science.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> def day(n, good=1.0):
    ...     p = rng.beta(1, 2, n)
    ...     return p, (rng.random(n) < good * p).astype(int)
    >>> rule = mw.optimize(*day(4000), "recall", subject_to="precision >= 0.6").rule
    >>> watch = mw.watch(rule)
    >>> for good in [1.0] * 10 + [0.7] * 10:
    ...     _ = watch.update(*day(200, good))
    >>> watch.broken, watch.promises[0].name
    (True, 'precision >= 0.6')
    """
    loaded = read_rule(rule, inputs=("cost", *PARTITIONS))
    level, after = _read_alpha(alpha), _read_forget_after(forget_after)
    if labelled not in LABELLED:
        raise InvalidParameter("labelled", "be 'random', 'by_decision' or 'by_class'", shown(labelled))
    return Watch(WatchSettings(loaded, read_promises(loaded, subject_to, pos_label, labelled), level, labelled, after))


def _read_alpha(alpha: Any) -> float:
    if isinstance(alpha, bool) or not isinstance(alpha, (float, np.floating)) or not 0 < alpha < 1:
        raise InvalidParameter("alpha", "be a number between 0 and 1", shown(alpha))
    return float(alpha)


def _read_forget_after(forget_after: Any) -> int | None:
    if forget_after is None:
        return None
    if isinstance(forget_after, bool) or not isinstance(forget_after, (int, np.integer)) or forget_after < 1:
        raise InvalidParameter("forget_after", "be a number of batches from 1, or None", shown(forget_after))
    return int(forget_after)


@entry_point("load_watch")
def load_watch(path: str | os.PathLike[str]) -> Watch:
    """Load a watch that was saved with :meth:`Watch.to_json`.

    Every field is checked, and no code from the file is executed.

    Parameters
    ----------
    path : path, or JSON text
        The file, or its content.

    Returns
    -------
    Watch

    See Also
    --------
    watch : Begin to watch a rule.

    Examples
    --------
    >>> import metricwise as mw
    >>> watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), "precision >= 0.5")
    >>> watch = watch.update([0.2, 0.7, 0.9], ids=["a", "b", "c"])
    >>> mw.load_watch(watch.to_json()).update_labels(["b"], [1]).n_waiting
    2
    """
    from .watch_file import read_watch  # only who saves or loads needs it

    return Watch(*read_watch(path))
