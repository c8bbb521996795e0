"""``metricwise reproduce``: the paper's experiments."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["reproduce"]


class Name(StrEnum):
    """Experiments by name."""

    uci = "uci"
    synthetic = "synthetic"
    movielens = "movielens"
    consistency = "consistency"
    all = "all"


def reproduce(
    experiment: Annotated[Name, typer.Argument(help="Which experiment.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path("reproduction"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, in about two minutes.")] = False,
    repetitions: Annotated[
        int | None, typer.Option(min=1, help="Repetitions; the paper's number if not given.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes. Numbers do not depend on it.")] = 1,
) -> None:
    """Run the paper's experiments and put their results next to the paper's.

    Results are appended as they come: stop with Ctrl-C whenever you like, the same command continues, and what is
    finished is not run again. Data come from METRICWISE_DATA, from the cache, or from their owners.
    """
    from ..datasets import DataError
    from ..experiments import EXPERIMENTS
    from ..experiments import reproduce as run

    names = list(EXPERIMENTS) if experiment is Name.all else [experiment.value]
    command = shlex.join(["metricwise", *sys.argv[1:]])
    try:
        run(
            names,
            output,
            seed=seed,
            quick=quick,
            repetitions=repetitions,
            jobs=jobs,
            say=lambda line: typer.echo(line, err=True),
            command=command,
        )
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (DataError, ValueError, ImportError) as error:
        typer.echo(f"metricwise: {error}", err=True)
        raise typer.Exit(1) from None
