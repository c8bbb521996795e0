"""The paper's six data sets of the UCI Machine Learning Repository.

Owns what the columns mean: which are labels, and the natural order of their classes. Features are all other columns,
the original class included.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from .fetch import fetch
from .sources import SOURCES
from .table import Table, make_table

__all__ = [
    "UCI_LOADERS",
    "load_car",
    "load_cmc",
    "load_nursery",
    "load_phishing",
    "load_student",
    "load_wiki4he",
]


def _read(name: str, folder: Path | str | None, verify: bool, delimiter: str = ",") -> list[list[str]]:
    path = fetch(SOURCES[name], folder, verify=verify)
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file, delimiter=delimiter) if row]


def load_car(folder: Path | str | None = None, *, verify: bool = True) -> Table:
    """Load Car Evaluation: 1728 cars, labels buying price and maintenance price of 4 classes.

    The attributes are a full factorial: each combination occurs once, so that a label tells nothing about the other
    attributes but through the class. The paper counts 1727 rows; the file has 1728.

    Parameters
    ----------
    folder : path, optional
        A local folder laid out as ``car/car.data``; None takes ``METRICWISE_DATA``, the cache, or downloads.
    verify : bool, default=True
        Compare the sha256.

    Returns
    -------
    Table

    References
    ----------
    .. [1] Bohanec (1988), "Car Evaluation", UCI Machine Learning Repository, doi:10.24432/C5JP48. CC BY 4.0.
    """
    columns = ["buying", "maint", "doors", "persons", "lug_boot", "safety", "class"]
    classes = ["low", "med", "high", "vhigh"]
    return make_table("car", _read("car", folder, verify), columns, ["buying", "maint"], classes)


def load_nursery(folder: Path | str | None = None, *, verify: bool = True) -> Table:
    """Load Nursery: 12960 applications, labels social and health conditions of 3 classes.

    The two labels have different words for their classes; the first is the best, the last the worst. The attributes
    are a full factorial.

    Parameters
    ----------
    folder : path, optional
        A local folder laid out as ``nursery/nursery.data``; None takes ``METRICWISE_DATA``, the cache, or downloads.
    verify : bool, default=True
        Compare the sha256.

    Returns
    -------
    Table

    References
    ----------
    .. [1] Rajkovic (1989), "Nursery", UCI Machine Learning Repository, doi:10.24432/C5P88W. CC BY 4.0.
    """
    columns = ["parents", "has_nurs", "form", "children", "housing", "finance", "social", "health", "class"]
    same = {"recommended": "nonprob", "priority": "slightly_prob", "not_recom": "problematic"}
    rows = _read("nursery", folder, verify)
    rows = [[*row[:7], same.get(row[7], row[7]), *row[8:]] for row in rows]
    return make_table("nursery", rows, columns, ["social", "health"], ["nonprob", "slightly_prob", "problematic"])


def load_cmc(folder: Path | str | None = None, *, verify: bool = True) -> Table:
    """Load Contraceptive Method Choice: 1473 couples, labels husband's occupation and standard of living, 4 classes.

    Parameters
    ----------
    folder : path, optional
        A local folder laid out as ``cmc/cmc.data``; None takes ``METRICWISE_DATA``, the cache, or downloads.
    verify : bool, default=True
        Compare the sha256.

    Returns
    -------
    Table

    References
    ----------
    .. [1] Lim (1999), "Contraceptive Method Choice", UCI Machine Learning Repository, doi:10.24432/C59W2D.
           CC BY 4.0.
    """
    columns = [
        "wife_age",
        "wife_education",
        "husband_education",
        "children",
        "wife_religion",
        "wife_working",
        "husband_occupation",
        "standard_of_living",
        "media_exposure",
        "method",
    ]
    rows = _read("cmc", folder, verify)
    labels = ["husband_occupation", "standard_of_living"]
    return make_table("cmc", rows, columns, labels, list("1234"), ["wife_age", "children"])


def load_phishing(folder: Path | str | None = None, *, verify: bool = True) -> Table:
    """Load Website Phishing: 1353 sites, labels SFH, popUpWidnow and SSLfinal_State of 3 classes.

    Parameters
    ----------
    folder : path, optional
        A local folder laid out as ``phishing/PhishingData.arff``; None takes ``METRICWISE_DATA``, the cache, or
        downloads.
    verify : bool, default=True
        Compare the sha256, that of the data section.

    Returns
    -------
    Table

    References
    ----------
    .. [1] Abdelhamid (2014), "Website Phishing", UCI Machine Learning Repository, doi:10.24432/C5B301. CC BY 4.0.
    """
    lines = fetch(SOURCES["phishing"], folder, verify=verify).read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data")
    columns = [line.split()[1] for line in lines[:start] if line.lower().startswith("@attribute")]
    rows = [line.split(",") for line in lines[start + 1 :] if line.strip() and not line.startswith("%")]
    return make_table("phishing", rows, columns, columns[:3], ["-1", "0", "1"])


_STUDENT_NUMBERS = [
    "age",
    "Medu",
    "Fedu",
    "traveltime",
    "studytime",
    "failures",
    "famrel",
    "freetime",
    "health",
    "absences",
    "G1",
    "G2",
    "G3",
]


def load_student(folder: Path | str | None = None, *, verify: bool = True) -> Table:
    """Load Student Performance (Portuguese): 649 pupils, labels goout, Dalc and Walc of 5 classes.

    Parameters
    ----------
    folder : path, optional
        A local folder laid out as ``student/student-por.csv``; None takes ``METRICWISE_DATA``, the cache, or downloads.
    verify : bool, default=True
        Compare the sha256.

    Returns
    -------
    Table

    References
    ----------
    .. [1] Cortez (2008), "Student Performance", UCI Machine Learning Repository, doi:10.24432/C5TG7T. CC BY 4.0.
    """
    columns, *rows = _read("student", folder, verify, delimiter=";")
    return make_table("student", rows, columns, columns[25:28], list("12345"), _STUDENT_NUMBERS)


def load_wiki4he(folder: Path | str | None = None, *, verify: bool = True) -> Table:
    """Load wiki4HE: 913 teachers on Wikipedia, labels Vis3, Im1 and Im2 of 5 classes, some answers missing.

    Parameters
    ----------
    folder : path, optional
        A local folder laid out as ``wiki4he/wiki4HE.csv``; None takes ``METRICWISE_DATA``, the cache, or downloads.
    verify : bool, default=True
        Compare the sha256.

    Returns
    -------
    Table

    References
    ----------
    .. [1] Meseguer-Artola, Aibar, Lladós, Minguillón, Lerga (2015), "wiki4HE", UCI Machine Learning Repository,
           doi:10.24432/C50031. CC BY 4.0.
    """
    columns, *rows = _read("wiki4he", folder, verify, delimiter=";")
    categories = {"DOMAIN", "UNIVERSITY", "UOC_POSITION", "OTHER_POSITION", "OTHERSTATUS"}
    numeric = [column for column in columns if column not in categories]
    return make_table("wiki4he", rows, columns, columns[25:28], list("12345"), numeric)


UCI_LOADERS: dict[str, Callable[..., Table]] = {
    "car": load_car,
    "nursery": load_nursery,
    "cmc": load_cmc,
    "phishing": load_phishing,
    "student": load_student,
    "wiki4he": load_wiki4he,
}
