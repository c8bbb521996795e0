"""A scikit-learn scorer: what the best rule makes of the probabilities or scores of an estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from ..api.best_value import find_best_value
from ..core.errors import InvalidParameter, entry_point
from ..data.labels import observed_labels
from ..data.row_spec import RowSpec
from ..goals.spec import GoalSpec
from ._joined_classes import joined_classes
from ._responses import RESPONSES, Response, fitted_classes
from ._targets import Target, declared_classes

__all__ = ["BestRuleScorer"]


@dataclass(eq=False)
class BestRuleScorer:
    """The metric of an estimator with the best rule for what it returns; see :func:`metricwise.make_scorer`.

    Parameters
    ----------
    goal : GoalSpec
    classes : array-like, or list of array-likes, optional
        All class labels; None: those of the estimator and those that occur.
    response : str
        The method of the estimator, or "auto".
    name : str
        What the scorer prints.
    """

    goal: GoalSpec
    classes: Any
    response: str
    name: str
    _requests: MetadataRequest = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._requests = MetadataRequest(owner=self)

    def __repr__(self) -> str:
        return f"make_scorer({self.name}, at='best')"

    @entry_point("make_scorer")
    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Return the score of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that it was not fitted to.
        y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            Rows of a group come into the same half.

        Returns
        -------
        score : float
        """
        response = self._response_of(estimator)
        target = self._read_target(estimator, X, y_true)
        blocks = response.blocks(estimator, X, target)
        response.check(estimator, X, target, blocks)
        rows = RowSpec(
            response.pack(blocks, target),
            target.labels(np.arange(target.n_rows)),
            sample_weight,
            groups,
            order=self.goal.order,
            input=response.input,
        )
        return find_best_value(rows, self.goal)

    def _response_of(self, estimator: Any) -> Response:
        """Return the first response that is asked for and that the estimator has."""
        for response in RESPONSES:
            if self.response in ("auto", response.method) and response.is_given_by(estimator):
                return response
        methods = "predict_proba or decision_function" if self.response == "auto" else self.response
        raise InvalidParameter("estimator", f"have {methods}", type(estimator).__name__)

    def _read_target(self, estimator: Any, X: Any, y: Any) -> Target:
        """Read labels in terms of the classes that are declared, or of those of the estimator and those that occur."""
        labels = observed_labels(y)
        target = Target(labels.codes, labels.classes, labels.multioutput)
        if self.classes is not None:
            target = target.of_classes(declared_classes(labels, self.classes))
        else:
            classes = fitted_classes(estimator, X)[0]
            if len(classes) != target.n_outputs:
                raise InvalidParameter("y", f"have {len(classes)} outputs, as the estimator has", target.n_outputs)
            target = target.of_classes(tuple(joined_classes(classes, labels.classes, self.goal)))
        return target.in_order(self.goal.order, y)

    # ----------------------------------------------------------------------------------------------------- routing

    def set_score_request(self, **requests: bool | str | None) -> BestRuleScorer:
        """Set which metadata the scorer is passed by scikit-learn's metadata routing.

        Parameters
        ----------
        **requests
            ``sample_weight=True`` and ``groups=True`` pass them; a str is the name by which the caller passes them.

        Returns
        -------
        self : BestRuleScorer
        """
        self._requests = MetadataRequest(owner=self)
        for name, alias in requests.items():
            if name not in ("sample_weight", "groups"):
                raise InvalidParameter(name, problem=f"the scorer takes sample_weight and groups, got {name!r}")
            self._requests.score.add_request(param=name, alias=alias)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that the scorer asks for.

        Returns
        -------
        routing : MetadataRequest
        """
        return self._requests
