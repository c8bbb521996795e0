"""Where rows lie: in arrays in memory, in chunks that are read one by one, in a Dask collection.

Owns one pass over all rows, a map and a sum, and samples of rows. An engine is a source: whatever can do these two
things serves every oracle, and through it every solver. Must not know metrics, rules or what is counted.
"""

from .base import Source, SourceBase
from .chunked import ChunkedSource
from .memory import MemorySource
from .passes import Passes, in_passes

__all__ = ["ChunkedSource", "MemorySource", "Passes", "Source", "SourceBase", "in_passes"]
