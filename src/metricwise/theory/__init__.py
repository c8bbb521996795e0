"""The theory as tools: the loss at an optimum, monotonicity, regret, and the regret bound.

Owns what the paper proves *about* rules, for those who want to look at it in numbers. Nothing that fits or applies a
rule depends on this module. The paper is Wang, Li, Yan, Koyejo, "Consistent Classification with Generalized Metrics"
(arXiv:1908.09057).
"""

from .bound import RegretBound, regret_bound
from .monotonicity import Counterexample, Monotonicity, check_monotonic
from .optimal_loss import loss_from_gradient
from .regret_of_rules import Regret, regret

__all__ = [
    "Counterexample",
    "Monotonicity",
    "Regret",
    "RegretBound",
    "check_monotonic",
    "loss_from_gradient",
    "regret",
    "regret_bound",
]
