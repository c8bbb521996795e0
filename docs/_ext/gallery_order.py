"""The order of the gallery: from the most common task to the least."""

from pathlib import Path

ORDER = (
    "precision_floor",
    "costs",
    "row_costs",
    "ordinal_grades",
    "grades_from_a_score",
    "macro_f1_boosting",
    "worst_class_recall",
    "multilabel_tags",
    "many_labels",
    "missing_labels",
    "shifted_prior",
    "drift",
    "own_metric",
    "abstain",
    "fair_groups",
    "geometry",
    "production",
)


def by_task(path):
    """Return where in `ORDER` an example stands; those that it does not name follow, by name."""
    name = Path(path).stem.removeprefix("plot_")
    return ORDER.index(name) if name in ORDER else len(ORDER), name
