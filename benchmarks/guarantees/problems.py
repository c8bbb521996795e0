"""What is asked in which world, of how many rows, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CONFIDENCE = 0.95
SIZES = (500, 1_000, 4_000, 20_000, 100_000)
FLOORS = (0.8, 0.9, 0.95)
DRAWS = {500: 2_000, 1_000: 2_000, 4_000: 2_000, 20_000: 500, 100_000: 100}  # half an hour on two cores
BLOCK = 100  # draws that are measured, stored and skipped together


@dataclass(frozen=True)
class Problem:
    """A world, the metric that is maximised in it, and constraints that are asked for one after the other."""

    world: str
    aim: str
    constraints: tuple[str, ...]
    sizes: tuple[int, ...] = SIZES
    slowness: int = 1  # other ways than ours are measured in so many times fewer draws
    abstains: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """What is passed to `optimize` besides rows, metric and constraints."""
        return {"abstain": True} if self.abstains else {}


PRECISION_FLOORS = tuple(f"precision >= {floor:g}" for floor in FLOORS)
JOINT = ("precision >= 0.8 and recall >= 0.35",)
PROBLEMS = {
    **{world: Problem(world, "recall", PRECISION_FLOORS) for world in ("monotone", "bumpy", "tied", "tempered")},
    "joint": Problem("monotone", "recall", JOINT),
    "classes": Problem("classes", "accuracy", ("recall[1] >= 0.65 and recall[2] >= 0.65",), SIZES, 4),
    "coverage": Problem("classes", "coverage", tuple(f"accuracy >= {floor:g}" for floor in FLOORS), abstains=True),
}


def bounds(text: str) -> list[tuple[str, float]]:
    """Return names and lower bounds of constraints."""
    return [(part.split()[0], float(part.split()[2])) for part in text.split(" and ")]


def keeps(text: str, truth: dict[str, float], slack: float = 1e-9) -> bool:
    return all(truth[name] >= bound - slack for name, bound in bounds(text))
