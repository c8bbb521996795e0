"""Decision rules: what to predict from probabilities.

Weighted rules, mixtures of them, rules by sensitive group and by segment, by costs per row and for very many labels,
their recalibration and their JSON.
Must not know metrics, oracles or solvers.
"""

from ..core.ordinal_map import OrdinalMap
from .base import LossMixture, Rule, RuleRows
from .calibration import TemperatureScaling, prior_shift
from .calibration_fit import fit_link, fit_links
from .cut_points import CutPointRule
from .example_cost import CostRule
from .grouped import GroupedRule, of_schema
from .label_sets import LabelSetRule
from .labels import LabelRule
from .load import as_rule, load_rule
from .metadata import RuleMetadata
from .mixture import MixtureRule
from .segmented import SegmentedRule
from .weighted import WeightedRule, anonymous_rule
from .writer import RuleWriter

__all__ = [
    "CostRule",
    "CutPointRule",
    "GroupedRule",
    "OrdinalMap",
    "TemperatureScaling",
    "LabelRule",
    "LabelSetRule",
    "LossMixture",
    "MixtureRule",
    "Rule",
    "RuleMetadata",
    "RuleRows",
    "RuleWriter",
    "SegmentedRule",
    "WeightedRule",
    "anonymous_rule",
    "as_rule",
    "fit_link",
    "fit_links",
    "load_rule",
    "of_schema",
    "prior_shift",
]
