"""How long the tests of endurance are: a minute or so within ``make test-slow``, all of it by ``make endurance``.

``METRICWISE_ENDURANCE=full`` is set by ``python -m tests.endurance``, and so is ``METRICWISE_ENDURANCE_LOG``, the file
that counts are added to, from which the page "How it is tested" is made.
"""

import json
import os
from pathlib import Path

IS_FULL = os.environ.get("METRICWISE_ENDURANCE") == "full"
LOG = os.environ.get("METRICWISE_ENDURANCE_LOG")


def repeats(full: int, short: int) -> int:
    """Return how often something is tried."""
    return full if IS_FULL else short


def record(topic: str, case: str, **counts: float) -> None:
    """Add the counts of one test to the log, if one is kept."""
    if LOG:
        with Path(LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"topic": topic, "case": case, "counts": counts}) + "\n")
