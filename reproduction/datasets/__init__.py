"""The paper's data: loaders that download, check and read.

Files are taken from the folder that ``METRICWISE_DATA`` names, else from the cache, else from their owners' public
addresses. Nothing is shipped with the code.
"""

from .fetch import DataError, cache_folder, fetch, local_folder
from .made_up import write_made_up
from .movielens import Ratings, load_movielens
from .paper_coding import paper_coding
from .sources import SOURCES, Source
from .table import Table, make_table
from .uci import (
    UCI_LOADERS,
    load_car,
    load_cmc,
    load_nursery,
    load_phishing,
    load_student,
    load_wiki4he,
)

__all__ = [
    "DataError",
    "Ratings",
    "SOURCES",
    "Source",
    "Table",
    "UCI_LOADERS",
    "cache_folder",
    "fetch",
    "load_car",
    "load_cmc",
    "load_movielens",
    "load_nursery",
    "load_phishing",
    "load_student",
    "load_wiki4he",
    "local_folder",
    "make_table",
    "paper_coding",
    "write_made_up",
]
