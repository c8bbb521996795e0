"""Reports: everything that is known of a rule on one page, for people who do not program.

Owns what a report says (:func:`summarize`, a dict that JSON can hold) and how it looks (a template). The page is one
file that fetches nothing. Jinja is imported when a page is made (``pip install 'metricwise[report]'``). Must not count
rows: :mod:`metricwise.inspection.details` does.
"""

from .page import render, write
from .summary import summarize

__all__ = ["render", "summarize", "write"]
