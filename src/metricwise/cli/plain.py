"""Commands that need no extra."""

from __future__ import annotations

__all__ = ["demo", "versions"]


def demo() -> None:
    """Compare argmax with the optimal rule on scikit-learn's example data.

    Argmax against the optimal rule on three problems; takes some ten seconds.
    """
    from .demo import main

    main()


def versions() -> None:
    """Print what a bug report should say.

    System, packages, and which kernels serve.
    """
    from ..api.versions import show_versions

    show_versions()
