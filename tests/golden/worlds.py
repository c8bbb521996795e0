"""Seeded data for the stored calls: probabilities, labels, weights, groups, costs and features.

Only uniform draws and the four operations of arithmetic are used, which are rounded alike on every processor, so that a
world has the same bits everywhere. Knows NumPy alone, and nothing of the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

N_NEW = 60  # rows that no rule is fitted to, at the end of every world

_WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibex", "jay", "kite", "lynx")
_GRADES = {2: ["no", "yes"], 3: ["low", "mid", "high"], 4: ["low", "mid", "high", "top"]}
_SIZES = {"multilabel": (2, 2, 2), "multioutput": (3, 3), "mixed": (3, 2, 4)}


@dataclass(frozen=True)
class Spec:
    """What a call says of its world.

    kind : "binary", "multiclass", "ordinal", "multilabel", "multioutput" (as many classes each) or "mixed".
    labels : "ints", "ratings" (from 1), "words", "signs" (-1 and 1), "bools" or "floats".
    trust : "calibrated", "overconfident" or "tilted", as after class weights.
    grid : probabilities are multiples of 1 / grid, a power of two, so that rows tie; 0 for none.
    absent : whether the last class has no label.
    """

    kind: str
    rows: int = 300
    seed: int = 0
    classes: int = 3
    outputs: int = 0
    labels: str = "ints"
    trust: str = "calibrated"
    grid: int = 0
    missing: float = 0.0
    rare: bool = False
    absent: bool = False
    dtype: str = "float64"
    copies: int = 1


@dataclass(frozen=True, eq=False)
class World:
    """Rows given and, behind them, rows that are new.

    eta : list of M arrays (N, K_m), classes in the sorted order of their labels; codes : ints (N, M), -1 if missing.
    """

    spec: Spec
    eta: list[np.ndarray]
    codes: np.ndarray

    @property
    def n_given(self) -> int:
        return len(self.codes) - N_NEW

    def part(self, which: str) -> slice:
        """Rows that are "given" or "new"."""
        return slice(0, self.n_given) if which == "given" else slice(self.n_given, len(self.codes))

    @property
    def several(self) -> bool:
        return self.spec.kind in _SIZES

    @cached_property
    def classes(self) -> list[list[Any]]:
        """Labels of each output in the order of its columns."""
        return [_labels(self.spec, eta.shape[1], m) for m, eta in enumerate(self.eta)]

    @property
    def order(self) -> list[Any]:
        """Labels of the first output from the lowest to the highest grade."""
        return _GRADES[self.eta[0].shape[1]] if self.spec.labels == "words" else self.classes[0]

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        return ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"][: len(self.eta)]

    def labels(self, which: str, *, missing: Any = None) -> list[np.ndarray]:
        """Labels of each output, `missing` where there is none."""
        out = []
        for m, names in enumerate(self.classes):
            codes = self.codes[self.part(which), m]
            values = np.array([missing if c < 0 else names[c] for c in codes], dtype=object)
            if (codes >= 0).all():
                values = np.array(values.tolist())
            elif self.spec.labels != "words":
                values = values.astype(float)
            out.append(values)
        return out

    # ------------------------------------------------------------------------------------ what is known of rows besides

    def _uniform(self, purpose: int, *shape: int) -> np.ndarray:
        rng = np.random.default_rng([self.spec.seed, 1000 + purpose])
        return rng.random((len(self.codes), *shape))

    @cached_property
    def weight(self) -> np.ndarray:
        """Importances, among them a few zeros."""
        return np.floor(self._uniform(0) * 64) / 16

    @cached_property
    def frequency(self) -> np.ndarray:
        """How many rows each one stands for."""
        return np.floor(self._uniform(1) * 4).astype(int) + 1

    @cached_property
    def cluster(self) -> np.ndarray:
        """Rows that belong together: some four of each."""
        n_clusters = len(self.codes) // 4
        return np.floor(self._uniform(2) * n_clusters).astype(int)

    @cached_property
    def time(self) -> np.ndarray:
        """When rows were observed, in no order."""
        return np.floor(self._uniform(3) * 10_000)

    @cached_property
    def sex(self) -> np.ndarray:
        """A sensitive feature that the label depends on."""
        lean = np.where(self.codes[:, 0] == 0, 0.35, 0.65)
        return np.where(self._uniform(4) < lean, "f", "m")

    @cached_property
    def region(self) -> np.ndarray:
        """Another one, as numbers."""
        return np.floor(self._uniform(5) * 3).astype(int) + 1

    @cached_property
    def amount(self) -> np.ndarray:
        """An amount for each row, some of them large."""
        u = self._uniform(6)
        return np.floor(100 * u / (1.03 - u)) / 4 + 1

    @cached_property
    def wrong_costs(self) -> np.ndarray:
        """(N, K): what a wrong decision costs by the true class."""
        k = self.eta[0].shape[1]
        return self.amount[:, None] * np.linspace(0.25, 2, k)

    @cached_property
    def cost_tables(self) -> np.ndarray:
        """(N, K, K): what each decision costs by the true class."""
        k = self.eta[0].shape[1]
        base = 1 + np.floor(self._uniform(7, k, k) * 8) / 2
        base[:, np.arange(k), np.arange(k)] = 0
        base[:, k - 1] *= self.amount[:, None] / 8
        return base

    @cached_property
    def features(self) -> np.ndarray:
        """(N, 3): features of a model, about a centre for each class."""
        codes = np.maximum(self.codes, 0)
        mixed = codes.sum(axis=1)[:, None] * [1.0, -0.5, 0.25] + (codes[:, :1] % 2) * [0.0, 1.0, -0.5]
        noise = self._uniform(8, 3) + self._uniform(9, 3) + self._uniform(10, 3) - 1.5
        return mixed + 1.5 * noise


@lru_cache(maxsize=64)
def _make(spec: Spec) -> World:
    rng = np.random.default_rng([spec.seed, len(spec.kind), spec.rows, spec.classes])
    n = spec.rows // spec.copies + N_NEW
    sizes = _SIZES.get(spec.kind, (2,) if spec.kind == "binary" else (spec.classes,))
    if spec.outputs:
        sizes = tuple(sizes[m % len(sizes)] for m in range(spec.outputs))
    truth = [_graded(rng, n, k) if spec.kind == "ordinal" else _spread(rng, n, k, rare=spec.rare) for k in sizes]
    codes = np.stack([_drawn(rng, eta) for eta in truth], axis=1)
    for m, k in enumerate(sizes):
        codes[:k, m] = np.arange(k)  # every class has a label
        if spec.absent:
            codes[codes[:, m] == k - 1, m] = 0
    if spec.missing:
        gone = rng.random(codes.shape) < spec.missing
        gone[: max(sizes)] = False
        codes[gone] = -1
    eta = [_reported(_distorted(part, spec.trust), spec.grid) for part in truth]
    if spec.labels == "words" and spec.kind == "ordinal":
        eta, codes = _sorted_columns(eta[0], codes)
    if spec.copies > 1:
        rows = np.concatenate([np.repeat(np.arange(n - N_NEW), spec.copies), np.arange(n - N_NEW, n)])
        eta, codes = [part[rows] for part in eta], codes[rows]
    return World(spec, [part.astype(spec.dtype) for part in eta], codes)


def make(spec: dict[str, Any]) -> World:
    """Return the world that a call names."""
    return _make(Spec(**spec))


def _sum(parts: np.ndarray) -> np.ndarray:
    """Sums of rows, one column after the other, so that no library chooses the order."""
    total = np.zeros(len(parts))
    for column in parts.T:
        total = total + column
    return total[:, None]


def _spread(rng: np.random.Generator, n: int, k: int, *, rare: bool) -> np.ndarray:
    """True probabilities of k classes, of which the later ones are less frequent."""
    u = rng.random((n, k))
    odds = u / (1.02 - u)
    share = 1 / (1 + np.arange(k) * (4.0 if rare else 0.8))
    mass = odds * odds * share
    return mass / _sum(mass)


def _graded(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """True probabilities of k grades, with one peak each."""
    place = rng.random((n, 1)) * (k + 0.5) - 1
    width = 0.3 + rng.random((n, 1))
    distance = (place - np.arange(k)) / width
    mass = 1 / (1 + distance * distance * distance * distance)
    return mass / _sum(mass)


def _drawn(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return (np.cumsum(eta, axis=1)[:, :-1] < rng.random((len(eta), 1))).sum(axis=1)


def _distorted(eta: np.ndarray, trust: str) -> np.ndarray:
    """What a model says where this is the truth."""
    if trust == "overconfident":
        eta = eta * eta
    elif trust == "tilted":
        eta = eta * (1 + 1.5 * np.arange(eta.shape[1]))
    return eta / _sum(eta)


def _reported(eta: np.ndarray, grid: int) -> np.ndarray:
    if not grid:
        return eta
    eta = np.floor(eta * grid) / grid
    eta[:, 0] = 1 - _sum(eta[:, 1:])[:, 0]
    return eta


def _sorted_columns(eta: np.ndarray, codes: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Columns of grades in the alphabetical order of their words, as a model's would be."""
    grades = _GRADES[eta.shape[1]]
    by_name = sorted(range(len(grades)), key=grades.__getitem__)
    place = np.argsort(by_name)
    return [eta[:, by_name]], np.where(codes < 0, -1, place[np.maximum(codes, 0)])


def _labels(spec: Spec, k: int, output: int) -> list[Any]:
    match spec.labels:
        case "ratings":
            return list(range(1, k + 1))
        case "words" if spec.kind == "ordinal":
            return sorted(_GRADES[k])
        case "words":
            return list(_WORDS[output : output + k])
        case "signs":
            return [-1, 1]
        case "bools":
            return [False, True]
        case "floats":
            return [c + 0.5 for c in range(k)]
        case _:
            return list(range(k))
