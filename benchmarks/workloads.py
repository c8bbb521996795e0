"""The workloads W1 to W10: data, metrics, and the evaluation of decisions.

Data and metrics are plain NumPy, so that all methods are evaluated by the same independent code. Must not know the
methods.

Labels are drawn from the probabilities, which are therefore calibrated; priors decrease, so that argmax neglects some
classes. Fresh rows come from the same distribution with another seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Workload:
    """One workload.

    Parameters
    ----------
    key, title : str
    metric : str
        A name in `METRICS`, which is also its name in metricwise.
    law : str
        A name in `LAWS`.
    rows, outputs, classes : int
    average : str
        Over outputs.
    options : dict
        Fields of the strategy.
    expected : bool
        Whether the fitted rows are counted with the probabilities in place of the labels, for everyone.
    rounds : int
        How often each contestant is timed, at most.
    passes, ratio : float, optional
        The aims: at most so many passes, at least so many times faster than the fastest peer that reaches the value.
    aim_of : str
        The contestant whose passes the aim is about.
    safe_peer : str, optional
        The peer that is run with folds of its own as well, the fastest that comes near the value.
    """

    key: str
    title: str
    metric: str
    law: str
    rows: int
    outputs: int = 1
    classes: int = 2
    average: str = "micro"
    options: dict[str, Any] = field(default_factory=dict)
    expected: bool = False
    rounds: int = 7
    passes: float | None = None
    ratio: float | None = None
    aim_of: str = "metricwise"
    safe_peer: str | None = None

    @property
    def several(self) -> bool:
        return self.law in ("multilabel", "multioutput")


LABELS = {"confusion": "labels", "recalibrate": False}
EXPECTED = {"confusion": "expected", "recalibrate": False, "randomized": True, "tol": 1e-4}
MILLION = {"rows": 1_000_000, "classes": 10, "law": "multiclass"}
MULTILABEL = {"rows": 100_000, "outputs": 100, "law": "multilabel"}
MULTIOUTPUT = {"rows": 100_000, "outputs": 10, "classes": 5, "law": "multioutput"}

WORKLOADS = (
    Workload(
        "W1",
        "binary F1, N=1e6",
        "f1",
        "binary",
        1_000_000,
        safe_peer="SciPy bounded",
        options=LABELS,
        passes=20,
        ratio=12,
        aim_of="metricwise path",
    ),
    Workload(
        "W2",
        "micro-F1, N=1e6, K=10",
        "micro_f1",
        **MILLION,
        safe_peer="xcolumns from top, coarse",
        options=LABELS,
        passes=20,
        ratio=20,
    ),
    Workload(
        "W3",
        "macro-F1, N=1e6, K=10",
        "macro_f1",
        **MILLION,
        safe_peer="xcolumns from top, coarse",
        options=LABELS,
        passes=20,
        ratio=20,
    ),
    Workload(
        "W4-micro",
        "multilabel F1, micro, N=1e5, M=100",
        "f1",
        **MULTILABEL,
        safe_peer="SciPy bounded",
        options=LABELS,
        passes=15,
        ratio=20,
    ),
    Workload(
        "W4-macro",
        "multilabel F1, macro, N=1e5, M=100",
        "f1",
        **MULTILABEL,
        average="macro",
        safe_peer="SciPy bounded",
        options=LABELS,
        passes=20,
        ratio=20,
    ),
    Workload(
        "W5-micro",
        "multioutput micro-F1, micro, N=1e5, M=10, K=5",
        "micro_f1",
        **MULTIOUTPUT,
        safe_peer="xcolumns from top, coarse",
        options=LABELS,
        passes=45,
        ratio=20,
    ),
    Workload(
        "W5-macro",
        "multioutput micro-F1, macro, N=1e5, M=10, K=5",
        "micro_f1",
        **MULTIOUTPUT,
        average="macro",
        safe_peer="xcolumns from top, coarse",
        options=LABELS,
        passes=85,
        ratio=20,
    ),
    Workload(
        "W6",
        "G-mean, N=1e6, K=10",
        "g_mean",
        **MILLION,
        safe_peer="xcolumns from top, coarse",
        options=LABELS,
        passes=35,
        ratio=20,
    ),
    Workload(
        "W7",
        "smallest recall, N=1e6, K=10, mixture, gap 1e-4",
        "min_recall",
        **MILLION,
        options=EXPECTED,
        expected=True,
        passes=120,
    ),
    Workload(
        "W9",
        "micro-F1, N=1000, K=4",
        "micro_f1",
        "multiclass",
        1_000,
        classes=4,
        safe_peer="SciPy Nelder-Mead, weights",
        options=LABELS,
        rounds=50,
    ),
    Workload(
        "W10",
        "quadratic kappa, N=1e6, K=6",
        "quadratic_kappa",
        "ordinal",
        1_000_000,
        classes=6,
        safe_peer="SciPy Nelder-Mead, rounding",
        options=LABELS,
        passes=45,
        ratio=20,
    ),
)

SPARSE = ("W8", "sparse, N=2e5, M=1e5, 20 per row", "measured by benchmarks/many_labels")


def find(key: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.key == key)


def chosen(only: str | None) -> list[Workload]:
    """Return those of a comma-separated list; ``W4`` means both of its averages."""
    if not only:
        return list(WORKLOADS)
    wanted = [part.strip() for part in only.split(",")]
    known = {workload.key for workload in WORKLOADS} | {workload.key.split("-")[0] for workload in WORKLOADS}
    if unknown := sorted(set(wanted) - known):
        raise SystemExit(f"--only must name workloads out of {sorted(known)}, got {unknown}.")
    return [one for one in WORKLOADS if one.key in wanted or one.key.split("-")[0] in wanted]


# ---------------------------------------------------------------------------------------------------------------------
# laws


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(scores: np.ndarray) -> np.ndarray:
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def draw_classes(rng: np.random.Generator, proba: np.ndarray) -> np.ndarray:
    """One label per distribution on the last axis."""
    height = rng.random((*proba.shape[:-1], 1))
    return (height > proba[..., :-1].cumsum(axis=-1)).sum(axis=-1).astype(np.int32)


def binary(rng: np.random.Generator, rows: int, *_: int) -> tuple[np.ndarray, np.ndarray]:
    """About 14 % positives."""
    proba = sigmoid(1.7 * rng.standard_normal(rows) - 2.6)
    return proba, (rng.random(rows) < proba).astype(np.int32)


def multiclass(rng: np.random.Generator, rows: int, _: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Priors of ten classes from 22 % down to 3 %."""
    proba = softmax(2.75 * rng.standard_normal((rows, classes)) - 0.4 * np.arange(classes))
    return proba, draw_classes(rng, proba)


def multilabel(rng: np.random.Generator, rows: int, outputs: int, *_: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels from common (about 30 %) to rare (about 1 %)."""
    base = np.geomspace(0.25, 0.004, outputs)
    proba = sigmoid(1.7 * rng.standard_normal((rows, outputs)) + np.log(base / (1 - base)))
    return proba, (rng.random((rows, outputs)) < proba).astype(np.int8)


def multioutput(rng: np.random.Generator, rows: int, outputs: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """From nearly even classes to a first class that dominates."""
    slope = np.linspace(0.1, 1.0, outputs)[:, None]
    proba = softmax(2.0 * rng.standard_normal((rows, outputs, classes)) - slope * np.arange(classes))
    return proba, draw_classes(rng, proba)


def ordinal(rng: np.random.Generator, rows: int, _: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Grades from a latent score with noise; low grades are the common ones."""
    cuts = np.linspace(-1.5, 3.0, classes - 1)
    below = sigmoid((cuts - 1.6 * rng.standard_normal((rows, 1))) / 0.6)
    proba = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return proba, draw_classes(rng, proba)


LAWS = {
    "binary": binary,
    "multiclass": multiclass,
    "multilabel": multilabel,
    "multioutput": multioutput,
    "ordinal": ordinal,
}
SEEDS = {"fitted": 0, "fresh": 1}


def draw(workload: Workload, part: str, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw fitted or fresh rows: float64 probabilities, and int32 labels (int8 for multilabel ones)."""
    rows = max(200, round(workload.rows * scale))
    rng = np.random.default_rng([SEEDS[part], *workload.law.encode()])
    proba, y = LAWS[workload.law](rng, rows, workload.outputs, workload.classes)
    return np.ascontiguousarray(proba), np.ascontiguousarray(y)


def save(workload: Workload, folder: Path, scale: float) -> int:
    """Draw both parts into a folder and return the bytes of the fitted one."""
    size = 0
    for part in SEEDS:
        proba, y = draw(workload, part, scale)
        np.save(folder / f"{part}_proba.npy", proba)
        np.save(folder / f"{part}_y.npy", y)
        size = size or proba.nbytes + y.nbytes
    return size


def load(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    return np.load(folder / f"{part}_proba.npy"), np.load(folder / f"{part}_y.npy")


# ---------------------------------------------------------------------------------------------------------------------
# values


def confusion(codes: np.ndarray, truth: np.ndarray, classes: int) -> np.ndarray:
    """Confusion tensor (M, K, K) of decisions, in shares of the rows.

    Parameters
    ----------
    codes : integer ndarray of shape (N,) or (N, M)
    truth : ndarray
        Labels shaped like codes, or probabilities (N, K) in their place.
    """
    if truth.dtype.kind == "f":
        columns = [np.bincount(codes, weights=share, minlength=classes) for share in truth.T]
        return (np.array(columns) / len(truth))[None]
    codes, truth = codes.reshape(len(codes), -1), truth.reshape(len(truth), -1)
    cells = truth.astype(np.int64) * classes + codes
    counts = [np.bincount(column, minlength=classes**2) for column in cells.T]
    return np.array(counts).reshape(-1, classes, classes) / len(truth)


def f1(C: np.ndarray) -> np.ndarray:
    hit = C[..., 1, 1]
    return 2 * hit / (C[..., 1, :].sum(-1) + C[..., :, 1].sum(-1))


def micro_f1(C: np.ndarray) -> np.ndarray:
    """Return F1 of all classes but the first together."""
    hit = np.trace(C, axis1=-2, axis2=-1) - C[..., 0, 0]
    return 2 * hit / (2 * C.sum((-2, -1)) - C[..., 0, :].sum(-1) - C[..., :, 0].sum(-1))


def recalls(C: np.ndarray) -> np.ndarray:
    return np.diagonal(C, axis1=-2, axis2=-1) / C.sum(-1)


def macro_f1(C: np.ndarray) -> np.ndarray:
    return (2 * np.diagonal(C, axis1=-2, axis2=-1) / (C.sum(-1) + C.sum(-2))).mean(-1)


def g_mean(C: np.ndarray) -> np.ndarray:
    return np.prod(recalls(C), axis=-1) ** (1 / C.shape[-1])


def min_recall(C: np.ndarray) -> np.ndarray:
    return recalls(C).min(-1)


def quadratic_kappa(C: np.ndarray) -> np.ndarray:
    grades = np.arange(C.shape[-1])
    W = (grades[:, None] - grades) ** 2
    chance = C.sum(-1)[..., :, None] * C.sum(-2)[..., None, :] / C.sum((-2, -1))[..., None, None]
    return 1 - (W * C).sum((-2, -1)) / (W * chance).sum((-2, -1))


METRICS = {
    "f1": f1,
    "micro_f1": micro_f1,
    "macro_f1": macro_f1,
    "g_mean": g_mean,
    "min_recall": min_recall,
    "quadratic_kappa": quadratic_kappa,
}


def value(workload: Workload, C: np.ndarray) -> float:
    """The metric of a confusion tensor (M, K, K): of the mean, or the mean over outputs."""
    metric = METRICS[workload.metric]
    return float(metric(C.mean(axis=0)) if workload.average == "micro" else metric(C).mean())
