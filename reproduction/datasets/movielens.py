"""MovieLens 100K: who gave which film how many stars."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .fetch import fetch
from .sources import SOURCES

__all__ = ["Ratings", "load_movielens"]


@dataclass(frozen=True, eq=False)
class Ratings:
    """Observed entries of a rating matrix.

    Parameters
    ----------
    user, item : integer ndarray of shape (n,)
        From 0.
    rating : integer ndarray of shape (n,)
        From 1 to `n_stars`.
    n_users, n_items, n_stars : int
    """

    user: NDArray[np.intp]
    item: NDArray[np.intp]
    rating: NDArray[np.intp]
    n_users: int
    n_items: int
    n_stars: int = 5

    def __len__(self) -> int:
        return len(self.rating)

    def __repr__(self) -> str:
        return f"Ratings({len(self)} ratings of {self.n_items} items by {self.n_users} users)"


def load_movielens(folder: Path | str | None = None, *, verify: bool = True) -> Ratings:
    """Load MovieLens 100K: 100,000 ratings of 1682 films by 943 users, 1 to 5 stars.

    GroupLens allows research use with acknowledgement; the data may not be redistributed, nor used commercially
    without permission. Neither the University of Minnesota nor the researchers involved guarantee the correctness of
    the data, or endorse results based on them.

    Parameters
    ----------
    folder : path, optional
        A local folder laid out as ``ml-100k/u.data``; None takes ``METRICWISE_DATA``, the cache, or downloads.
    verify : bool, default=True
        Compare the sha256.

    Returns
    -------
    Ratings

    References
    ----------
    .. [1] Harper, Konstan (2015), "The MovieLens Datasets: History and Context", ACM TiiS 5(4),
           doi:10.1145/2827872.
    """
    path = fetch(SOURCES["movielens"], folder, verify=verify)
    data = np.loadtxt(path, dtype=np.intp, delimiter="\t")
    user, item = data[:, 0] - 1, data[:, 1] - 1
    return Ratings(user, item, data[:, 2], int(user.max()) + 1, int(item.max()) + 1)
