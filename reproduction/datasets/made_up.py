"""Small made-up files in the layout of the real ones, for where the real ones are not at hand.

They let every line of the experiments run. What they give as results means nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from .sources import SOURCES

__all__ = ["write_made_up"]


def write_made_up(folder: Path | str, seed: int = 0) -> Path:
    """Write made-up files of all data sets into a folder.

    Parameters
    ----------
    folder : path
    seed : int, default=0

    Returns
    -------
    pathlib.Path
        The folder, for the loaders with ``verify=False``.
    """
    root = Path(folder)
    rng = np.random.default_rng(seed)
    writers = {
        "car": _car,
        "nursery": _nursery,
        "cmc": _cmc,
        "phishing": _phishing,
        "student": _student,
        "wiki4he": _wiki4he,
        "movielens": _movielens,
    }
    for name, writer in writers.items():
        path = root / SOURCES[name].path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(writer(rng), encoding="utf-8")
    return root


def _lines(rows: Iterable[Iterable[object]], delimiter: str = ",") -> str:
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


def _car(rng: np.random.Generator) -> str:
    levels = [["low", "med", "high", "vhigh"]] * 2 + [["2", "4"], ["2", "more"], ["small", "big"], ["low", "high"]]
    rows = []
    for row in itertools.product(*levels):
        dear = levels[0].index(row[0]) + levels[1].index(row[1]) + rng.normal()
        rows.append([*row, "unacc" if row[5] == "low" or dear > 4 else "acc"])
    return _lines(rows)


def _nursery(rng: np.random.Generator) -> str:
    levels = [
        ["usual", "great_pret"],
        ["proper", "critical"],
        ["complete", "foster"],
        ["1", "2", "more"],
        ["convenient", "critical"],
        ["convenient", "inconv"],
        ["nonprob", "slightly_prob", "problematic"],
        ["recommended", "priority", "not_recom"],
    ]
    rows = []
    for row in itertools.product(*levels):
        other = "priority" if levels[6].index(row[6]) + rng.normal() < 1 else "spec_prior"
        rows.append([*row, "not_recom" if row[7] == "not_recom" else other])
    return _lines(rows)


def _likert(rng: np.random.Generator, n: int, columns: int, top: int) -> np.ndarray:
    """Answers from 1 to `top` that share one cause."""
    cause = rng.normal(size=(n, 1))
    score = cause + rng.normal(size=(n, columns))
    return np.clip(np.round(score * top / 5 + (top + 1) / 2), 1, top).astype(int)


def _cmc(rng: np.random.Generator) -> str:
    n = 300
    middle = _likert(rng, n, 5, 4)
    age, children, flags = rng.integers(16, 50, n), rng.integers(0, 9, n), rng.integers(0, 2, (n, 3))
    columns = [age, middle[:, 0], middle[:, 1], children, flags[:, 0], flags[:, 1], middle[:, 2], middle[:, 3]]
    return _lines(np.column_stack([*columns, flags[:, 2], np.minimum(middle[:, 4], 3)]))


def _phishing(rng: np.random.Generator) -> str:
    names = ["SFH", "popUpWidnow", "SSLfinal_State", "Request_URL", "URL_of_Anchor", "web_traffic", "URL_Length"]
    names += ["age_of_domain", "having_IP_Address", "Result"]
    head = ["@relation made-up", "", *(f"@attribute {name} {{-1,0,1}}" for name in names), "", "@data"]
    return "\n".join(head) + "\n" + _lines(_likert(rng, 300, 10, 3) - 2)


def _student(rng: np.random.Generator) -> str:
    names = "school sex age address famsize Pstatus Medu Fedu Mjob Fjob reason guardian traveltime studytime failures"
    names += " schoolsup famsup paid activities nursery higher internet romantic famrel freetime goout Dalc Walc health"
    rows = _likert(rng, 300, 33, 5)
    return _lines([[*names.split(), "absences", "G1", "G2", "G3"], *rows.tolist()], ";")


def _wiki4he(rng: np.random.Generator) -> str:
    first = ["AGE", "GENDER", "DOMAIN", "PhD", "YEARSEXP", "UNIVERSITY"]
    first += ["UOC_POSITION", "OTHER_POSITION", "OTHERSTATUS", "USERWIKI"]
    groups = {"PU": 3, "PEU": 3, "ENJ": 2, "Qu": 5, "Vis": 3, "Im": 3, "SA": 3, "Use": 5, "Pf": 3, "JR": 2, "BI": 2}
    groups |= {"Inc": 4, "Exp": 5}
    names = first + [f"{group}{i + 1}" for group, size in groups.items() for i in range(size)]
    rows = _likert(rng, 300, len(names), 5).astype(str).astype(object)
    rows[rng.random(rows.shape) < 0.03] = "?"
    return _lines([names, *rows.tolist()], ";")


def _movielens(rng: np.random.Generator) -> str:
    n_users, n_items = 80, 120
    taste = rng.normal(size=(n_users, 1)) * 0.5 + rng.normal(size=n_items) * 0.6 + 3.6
    stars = np.clip(np.round(taste + rng.normal(size=taste.shape)), 1, 5).astype(int)
    seen = rng.random(taste.shape) < np.linspace(0.7, 0.02, n_items)
    seen[-1, -1] = True
    user, item = np.nonzero(seen)
    order = rng.permutation(len(user))
    rows = np.column_stack([user + 1, item + 1, stars[user, item], 880_000_000 + np.arange(len(user))])
    return _lines(rows[order], "\t")
