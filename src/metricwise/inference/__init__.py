"""What counted rows say of new rows: influence, bootstrap, confidence limits, comparisons of decisions.

Owns every interval. Must not fit rules.
"""

from .label_summary import LabelSummary
from .results import Candidate, Comparison, ConstraintResult, Estimate, Evaluation, Gain, Recorded

__all__ = ["Candidate", "Comparison", "ConstraintResult", "Estimate", "Evaluation", "Gain", "LabelSummary", "Recorded"]
