"""Rows in a data frame of Spark.

Rows are records of bytes, which Spark keeps until the call ends. A pass is a query: the records of every partition are
read where they lie, its answer is a row, and answers are added in the order of partitions, those of many partitions in
blocks first. Must not know what is counted.
"""

from __future__ import annotations

import math
import operator
import pickle
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._version import __version__
from ...core.rows import Rows
from ...core.schema import Schema
from ...kernels import work_alone
from .base import ClusterSource, Passes, TakenRows, changed, join_rows
from .spark_records import RecordFormat

__all__ = [
    "Partitions",
    "Question",
    "SparkSource",
    "collect_answers",
    "items_of",
    "marked",
    "named_batches",
    "numbered_columns",
    "quoted",
]

IntArray = NDArray[np.intp]
T = TypeVar("T")

_MAX_ANSWERS = 64  # that the driver adds up by itself
_ANSWER = "block int, place int, answer binary"
_LOST = "The Spark session was lost during a pass. Start a session and call again."
_SIGNS_OF_LOSS = (
    r"SparkContext (was|has been) (shut down|stopped)|stopped SparkContext|Connection refused|Answer from Java side is "
    r"empty|Error while sending or receiving"
)
_PACKAGES = ("metricwise", "numpy", "pyarrow", "scipy", "sklearn", "narwhals")


@dataclass(frozen=True, eq=False)
class Partitions:
    """What was counted of the partitions of a data frame, by which a later pass knows them.

    Parameters
    ----------
    starts : ndarray of shape (P + 1,), int
        How many rows come before each partition; the last is N.
    marks : ndarray of shape (P,), int
        A checksum of some columns of each, which depends on the order of its rows.
    """

    starts: IntArray
    marks: IntArray

    def start(self, place: int) -> int:
        """Return how many rows come before a partition; the last ones may be empty, and were not counted."""
        return int(self.starts[min(place, len(self.marks))])

    def check(self, place: int, n_rows: int, mark: int) -> None:
        """Refuse a partition that holds other rows than it did, or the same in another order."""
        counted = (
            (self.starts[place + 1] - self.starts[place], self.marks[place]) if place < len(self.marks) else (0, 0)
        )
        if (n_rows, mark) != counted:
            raise RuntimeError(
                f"Partition {place} of the Spark data frame does not hold the same rows in the same order in every "
                "pass: sort it within partitions, call persist(), or write the result of the query to a file first."
            )


@dataclass(frozen=True, eq=False)
class SparkSource(ClusterSource):
    """Rows in the partitions of a data frame of Spark.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Of records.
    format : RecordFormat
    partitions : Partitions
    schema : Schema
    has_labels, has_weights : bool
    passes : Passes, optional
    changes : tuple of callables
        What becomes of rows when they have been read.
    partition : Partition, optional
        The sensitive groups.

    See Also
    --------
    metricwise.optimize : takes data frames of Spark.
    """

    frame: Any
    format: RecordFormat
    partitions: Partitions
    schema: Schema
    has_labels: bool = False
    has_weights: bool = False
    passes: Passes = field(default_factory=Passes)
    changes: tuple[Callable[[Rows], Rows], ...] = ()
    partition: Any = None

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.partitions.starts[-1])

    def map_reduce(self, ask: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Ask every partition where it lies, and add up in order."""
        if ask is not Rows.tally:
            self._known()  # before the question is packed: what it holds of this source travels with it
        question = Question(self.format, self.partitions, self.changes, ask, add)
        answers: list[T] = collect_answers(self.frame, question, add, len(self.partitions.marks))
        return reduce(add, answers)

    def take(self, rows: IntArray) -> Rows:
        """Return the rows at ascending positions, in memory."""
        return join_rows(self.map_reduce(TakenRows(rows), operator.add))

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels with a question: all but rows, samples of them, and who listens to passes."""
        return {**self._travelling("partitions"), "frame": None, "format": None}


# ------------------------------------------------------------------------------------ what workers do with a partition


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of the rows of a partition, in order, once they have been changed.

    Parameters
    ----------
    format : RecordFormat
    partitions : Partitions
    changes : tuple of callables
    ask, add : callable
    """

    format: RecordFormat
    partitions: Partitions
    changes: tuple[Callable[[Rows], Rows], ...]
    ask: Callable[[Rows], Any]
    add: Callable[[Any, Any], Any]

    def __call__(self, place: int, batches: Iterator[Any]) -> Any:
        """Return the answer of partition `place`, None if it is empty."""
        start, n_rows, mark, answer = self.partitions.start(place), 0, 0, None
        for rows in self.format.rows(batches):
            if rows is None:  # rows that were distributions when they were counted
                n_rows = -1
                break
            n_rows, mark = n_rows + rows.n_rows, marked(rows, mark)
            part = self.ask(changed(replace(rows, start=start + rows.start), self.changes))
            answer = part if answer is None else self.add(answer, part)
        self.partitions.check(place, n_rows, mark)
        return answer


def marked(rows: Rows, mark: int = 0) -> int:
    """Return a checksum of the first numbers and labels of rows, and of the mark of those before them."""
    block = rows.proba.blocks[0]
    columns = [block.reshape(len(block), -1)[:, 0], *([] if rows.codes is None else [rows.codes[:, 0]])]
    for column in columns:
        mark = zlib.crc32(column.tobytes(), mark)
    return mark


class _Failure:
    """An error that a worker met in what it was asked: Spark would try again, and tell of it in its own words."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@dataclass(frozen=True, eq=False)
class _Worker:
    """Answers for one partition, which Spark gives it as Arrow batches."""

    question: Callable[[int, Iterator[Any]], Any]
    width: int
    version: str = __version__

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        work_alone()  # a task has one core
        task: Any = TaskContext.get()
        place = task.partitionId()
        answer = self._answer(place, batches)
        if answer is not None:
            yield _record(place // self.width, place, answer)

    def _answer(self, place: int, batches: Iterator[Any]) -> Any:
        if self.version != __version__:
            return _Failure(
                RuntimeError(
                    f"The executors of Spark have metricwise {__version__}, and the driver {self.version}: install "
                    "the same version."
                )
            )
        try:
            return self.question(place, batches)
        except (ValueError, TypeError, RuntimeError) as error:
            return _Failure(error)


class _Adder:
    """Adds up the answers of the blocks of partitions that Spark has brought together, each in order."""

    def __init__(self, add: Callable[[Any, Any], Any]) -> None:
        self.add = add

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        records = [record for batch in batches for record in batch.to_pylist()]
        for block in sorted({record["block"] for record in records}):
            answers = _in_order(record for record in records if record["block"] == block)
            failure = next((answer for answer in answers if isinstance(answer, _Failure)), None)
            yield _record(0, block, reduce(self.add, answers) if failure is None else failure)


def _record(block: int, place: int, answer: Any) -> Any:
    import pyarrow as pa

    types = pa.schema([("block", pa.int32()), ("place", pa.int32()), ("answer", pa.binary())])
    return pa.RecordBatch.from_pylist([{"block": block, "place": place, "answer": pickle.dumps(answer)}], types)


def _in_order(records: Iterable[Any]) -> list[Any]:
    """Return the answers of records in the order of their places."""
    ordered = sorted(records, key=operator.itemgetter("place"))
    return [pickle.loads(record["answer"]) for record in ordered]  # noqa: S301  workers of this very pass wrote them


# ------------------------------------------------------------------------------------------------- what the driver does


def collect_answers(
    frame: Any,
    question: Callable[[int, Iterator[Any]], Any],
    add: Callable[[Any, Any], Any] = operator.add,
    n_partitions: int = 0,
) -> list[Any]:
    """Ask all partitions of a data frame, and return answers in their order, those of many added up in blocks.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    question : callable
        From the number of a partition and its Arrow batches to an answer, None if there is none.
    add : callable
        Adds two answers.
    n_partitions : int, default=0
        0 if it is not known: answers are small.
    """
    width = math.isqrt(n_partitions - 1) + 1 if n_partitions > _MAX_ANSWERS else 1
    try:
        answers = frame.mapInArrow(_Worker(question, width), _ANSWER)
        if width > 1:
            answers = answers.repartition(-(-n_partitions // width), "block").mapInArrow(_Adder(add), _ANSWER)
        collected = _in_order(answers.collect())
    except Exception as error:
        problem = _LOST if _is_stopped(frame) else _problem(" ".join(_messages(error)))
        if problem is None:
            raise
        raise RuntimeError(f"{problem} Nothing has been written, and the input is unchanged.") from error
    for answer in collected:
        if isinstance(answer, _Failure):
            raise answer.error
    return collected


def items_of(frame: Any, column: str) -> Any | None:
    """Return a column of arrays or of vectors of Spark ML as a column of arrays, None if it is neither.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    column : str
    """
    kind = next((type(field.dataType).__name__ for field in frame.schema.fields if field.name == column), None)
    if kind == "VectorUDT":
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(frame[quoted(column)])
    return frame[quoted(column)] if kind == "ArrayType" else None


def numbered_columns(frame: Any, names: Iterable[str]) -> Any:
    """Return some columns under other names, because `mapInArrow` does not take all names; see `named_batches`."""
    return frame.selectExpr(*(f"{quoted(name)} AS c{number}" for number, name in enumerate(names)))


def named_batches(batches: Iterator[Any], names: Iterable[str]) -> Iterator[Any]:
    """Yield Arrow batches of numbered columns by their names."""
    import pyarrow as pa

    titles = list(names)
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, titles)


def quoted(name: str) -> str:
    """Return the name of a column as Spark reads it, which may have a dot."""
    return f"`{name.replace('`', '``')}`"


def _messages(error: BaseException | None) -> Iterator[str]:
    """Yield the message of an error and of those that it came after: PySpark fails anew when it cleans up."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


def _problem(message: str) -> str | None:
    """Say what became of Spark, if that is what the message of an error is about; what rows are like is not."""
    missing = re.search(r"No module named '(\w+)", message)
    if missing is not None and missing[1] in _PACKAGES:
        return (
            f"The Python of Spark's executors has no module {missing[1]}: install metricwise and pyarrow there, or "
            "name a Python that has them by the environment variable PYSPARK_PYTHON before the session starts."
        )
    if re.search(r"Python worker exited unexpectedly|ExecutorLostFailure|Python worker.*crashed", message):
        return (
            "A Spark task failed repeatedly because its worker was killed, usually by too little memory. Use more "
            "partitions, or give the executors more spark.executor.memoryOverhead."
        )
    return _LOST if re.search(_SIGNS_OF_LOSS, message) else None


def _is_stopped(frame: Any) -> bool:
    """Whether the session of a data frame has been stopped; what fails then may have any message."""
    try:
        return bool(frame.sparkSession._jsparkSession.sparkContext().isStopped())
    except Exception:  # Java is lost, which messages tell, or far away
        return False
