"""Where results go: checked before any work is done, written in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.errors import InvalidParameter

if TYPE_CHECKING:
    from ..core.progress import Progress

__all__ = ["Output", "saved"]

Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="The file to write; - is the standard output.")
]


@contextmanager
def saved(output: str, force: bool, json: bool, title: str, n_stages: int) -> Iterator[Progress]:
    """Check where the result is to go, and show how far it is.

    Parameters
    ----------
    output : str
    force : bool
        Whether a file may be replaced.
    json : bool
        Whether an object is to be printed on the standard output, which then takes nothing else.
    title : str
    n_stages : int
    """
    from ..core.progress import Progress
    from ..data.tables import check_target

    if json and output == "-":
        raise InvalidParameter(
            "json", problem="--json and --output - both write to the standard output", remedy="pass a file to --output"
        )
    check_target(output, force=force)
    with Progress(title, n_stages) as progress:
        yield progress
