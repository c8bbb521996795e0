"""Run experiments by name on the available data.

Has the table of experiments and chooses the data. Must not know the command line.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from .datasets import SOURCES, fetch, local_folder, write_made_up
from .experiments.consistency import ConsistencyExperiment
from .experiments.movielens import MovieLensExperiment
from .experiments.synthetic import SyntheticExperiment
from .experiments.uci import UciExperiment
from .experiments.uci_paper import UciPaperExperiment
from .protocol import Experiment, RunSettings
from .running import run_experiment

__all__ = ["EXPERIMENTS", "reproduce"]

EXPERIMENTS: dict[str, type[Experiment]] = {
    "uci-paper": UciPaperExperiment,
    "uci": UciExperiment,
    "synthetic": SyntheticExperiment,
    "movielens": MovieLensExperiment,
    "consistency": ConsistencyExperiment,
}
_NEEDS_DATA = ("uci-paper", "uci", "movielens")


def reproduce(
    names: list[str],
    output: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    repetitions: int | None = None,
    jobs: int = 1,
    say: Callable[[str], None] = print,
    command: str = "",
) -> list[Path]:
    """Run experiments and write their reports.

    Parameters
    ----------
    names : list of str
        Of `EXPERIMENTS`.
    output : pathlib.Path
        Folder of the results. Finished repetitions in it are kept, and not run again.
    seed : int, default=0
    quick : bool, default=False
        A small version of everything; without the real files at hand, on made-up ones.
    repetitions : int, optional
        None is the paper's number.
    jobs : int, default=1
        Processes.
    say : callable
        Where lines go.
    command : str
        What was typed, for the record.

    Returns
    -------
    list of pathlib.Path
        The reports.
    """
    unknown = sorted(set(names) - set(EXPERIMENTS))
    if unknown:
        raise ValueError(f"reproduce: names must be among {list(EXPERIMENTS)}, got {unknown}.")
    with ExitStack() as stack:
        data, made_up = None, False
        if any(name in _NEEDS_DATA for name in names):
            data, made_up = _find_data(quick, stack, say)
        settings = RunSettings(seed, quick, repetitions, data, made_up)
        return [
            run_experiment(EXPERIMENTS[name](), settings, output, jobs=jobs, say=say, command=command) for name in names
        ]


def _find_data(quick: bool, stack: ExitStack, say: Callable[[str], None]) -> tuple[Path | None, bool]:
    """Return the folder of the data files, and whether they are synthetic."""
    folder = local_folder()
    if folder is not None:
        say(f"data: the real files in {folder}")
        return folder, False
    if quick:
        made = write_made_up(stack.enter_context(tempfile.TemporaryDirectory(prefix="metricwise-made-up-")))
        say("data: small made-up files, for METRICWISE_DATA is not set")
        return made, True
    for source in SOURCES.values():  # before many processes ask for the same file
        fetch(source)
    say("data: the real files, downloaded and checked")
    return None, False
