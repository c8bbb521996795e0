"""``predict_table``: from a table of probabilities to a table of decisions, batch by batch.

Owns the way from one to the other, of which little is in memory at a time. Must not know metrics.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, InvalidType, entry_point, shown
from ..core.progress import Progress, read_verbose
from ..data.arrays import PieceReader
from ..data.columns import ProbabilityColumns
from ..data.frames import has_lists
from ..data.logits import OTHER_RULE
from ..data.row_spec import Piece
from ..data.sources.tables import arrow_labels, proba_of, rule_columns
from ..data.tables.formats import Csv, arrow, file_format
from ..data.tables.label_lists import ListColumns
from ..data.tables.reading import Table, TableReader, batch_rows, closed, open_table
from ..data.tables.writing import TableWriter, arrow_column, check_target
from ..rules.base import Rule, RuleRows
from ..rules.label_base import LabelRuleBase
from ..rules.load import as_rule

__all__ = ["predict_table"]


@entry_point("predict_table")
def predict_table(
    rule: Rule,
    table: Any,
    output: str | os.PathLike[str],
    *,
    keep: Sequence[str] = (),
    column: str | Sequence[str] | None = None,
    force: bool = False,
    verbose: bool | None = None,
) -> int:
    """Apply a rule to every row of a table, and write the decisions to a file.

    The table is read in batches. The file is written completely or not at all: if an error occurs, no partial file is
    left, and an existing file is unchanged.

    Parameters
    ----------
    rule : Rule
        The rule to apply, which decides by probabilities alone.
    table : Table, or what :class:`metricwise.Table` takes for data
        Its columns of probabilities are named as in :func:`metricwise.optimize`. If rows hold lists of labels, the
        decision about a row is the list of the numbers of its predicted labels, in ascending order.
    output : path
        The file to write; its extension determines the format: .parquet, .feather, .arrow, .csv or .tsv. CSV cannot
        hold lists.
    keep : sequence of str
        Further columns of the table to write.
    column : str or list of str, optional
        Name of the column of decisions, one per output; by default the names of the rule's outputs, or "decision". A
        column of lists has one name, "decision" by default.
    force : bool, default=False
        Whether an existing file may be overwritten.
    verbose : bool, optional
        Whether to report progress, as in :func:`metricwise.optimize`.

    Returns
    -------
    int
        Number of rows.

    See Also
    --------
    metricwise.optimize : Find the rule, also from tables.
    metricwise.WeightedRule.predict : Predict from arrays and Dask collections.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import metricwise as mw
    >>> import pyarrow as pa
    >>> rule = mw.WeightedRule.from_weights([1.0, 3.0], classes=["no", "yes"])
    >>> frame = pa.table({"id": [7, 8], "no": [0.7, 0.9], "yes": [0.3, 0.1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n_rows = mw.predict_table(rule, frame, Path(folder) / "decisions.csv", keep=["id"])
    ...     print((Path(folder) / "decisions.csv").read_text().strip())
    "id","decision"
    7,"yes"
    8,"no"

    Rows that store few of 1,000 labels, of which at most two are predicted:

    >>> import pyarrow.parquet as pq
    >>> rule = mw.LabelRule.from_thresholds(0.3, n_labels=1_000, labels_per_row=2)
    >>> frame = pa.table({"label": [[3, 17, 500], [999]], "p": [[0.5, 0.7, 0.4], [0.2]]})
    >>> table = mw.Table(frame, indices="label", values="p")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n_rows = mw.predict_table(rule, table, Path(folder) / "decisions.parquet")
    ...     pq.read_table(Path(folder) / "decisions.parquet")["decision"].to_pylist()
    [[3, 17], []]
    """
    if not isinstance(rule, Rule):
        raise InvalidType("rule", "be a rule", shown(rule))
    rule = as_rule(rule, inputs=())
    table, target = table if isinstance(table, Table) else Table(table), os.fspath(output)
    of_lists, shown_progress = has_lists(table), read_verbose(verbose)
    names = _names(column, ["decision"], "column of lists") if of_lists else _names(column, *_outputs(rule))
    taken = [name for name in names if name in keep]
    if taken:
        raise InvalidParameter("column", "not be the name of a column in keep", shown(taken[0]))
    check_target(target, force=force)
    if of_lists:
        batches, title = _decided_lists(rule, table, target, keep, names[0])
    else:
        batches, title = _decided_columns(rule, table, keep, names)
    with (
        closed(batches),
        Progress("predict_table", 1, shown_progress) as progress,
        TableWriter(target, table.separator) as writer,
    ):
        n_rows = 0
        progress.stage("deciding")
        for decided in batches:
            writer.write(decided)
            n_rows += len(decided[names[0]])
            progress.tick()
        if n_rows == 0:
            raise InvalidParameter("", problem="the table must have at least one row, got none", owner=title)
    return n_rows


def _decided_lists(
    rule: Rule, table: Table, target: str, keep: Sequence[str], name: str
) -> tuple[Iterator[dict[str, Any]], str]:
    """Return batches of the columns that are kept and the lists of predicted labels, and what is read."""
    if not isinstance(rule, LabelRuleBase):
        raise InvalidType(
            "rule",
            "be for very many labels to decide rows that hold lists of labels",
            f"a {type(rule).__name__}",
            "fit it to sparse probabilities or to such a table",
        )
    if isinstance(file_format(target, written=True), Csv):
        raise InvalidParameter(
            "output", problem="CSV cannot hold lists of labels", remedy="write .parquet or .feather", owner=target
        )
    columns = ListColumns.open(table, rule.input, rule.n_labels)
    columns.reader.check(keep)

    def decided() -> Iterator[dict[str, Any]]:
        pa = arrow()
        with closed(columns.batches(keep)) as batches:
            for start, batch in batches:
                labels = rule.predict(columns.stored(batch, start).csr(columns.n_labels))
                lists = pa.ListArray.from_arrays(labels.indptr.astype(np.int32), labels.indices.astype(np.int32))
                yield {**{kept: batch.column(kept) for kept in keep}, name: lists}

    return decided(), columns.reader.title


def _decided_columns(
    rule: Rule, table: Table, keep: Sequence[str], names: Sequence[str]
) -> tuple[Iterator[dict[str, Any]], str]:
    """Return batches of the columns that are kept and those of decisions, and what is read."""
    reader, schema = open_table(table), rule.schema
    classes = [arrow_labels(labels) for labels in schema.classes]
    outputs = schema.output_names or ([None] if schema.n_outputs == 1 else names)
    columns = rule_columns(reader, table, outputs, classes, graded=rule.schema.input.graded)
    return _decided(rule, columns, keep, names, reader, table.memory_limit), reader.title


def _decided(
    rule: Rule,
    columns: Sequence[ProbabilityColumns],
    keep: Sequence[str],
    names: Sequence[str],
    reader: TableReader,
    memory_limit: int,
) -> Iterator[dict[str, Any]]:
    """Yield the columns that are kept and those of decisions, batch by batch."""
    schema = rule.schema
    classes = list(schema.classes) if schema.multioutput else schema.classes[0]
    pieces = PieceReader(schema, schema.multioutput, classes, None, remedies=OTHER_RULE)
    read = {**dict.fromkeys(keep, False), **{name: True for output in columns for name in output.columns}}
    labels, start = [arrow_column(decisions) for decisions in schema.decisions], 0
    with closed(reader.batches(read, batch_rows(8 * len(read), memory_limit))) as batches:
        for batch in batches:
            proba = pieces.rows(Piece(proba_of(batch, columns, pieces)), start).proba
            codes = rule.decide(RuleRows(proba, start))
            decided = [column_labels.take(arrow().array(codes[:, m])) for m, column_labels in enumerate(labels)]
            yield {**{name: batch.column(name) for name in keep}, **dict(zip(names, decided, strict=True))}
            start += batch.num_rows


def _outputs(rule: Rule) -> tuple[list[str], str]:
    """Return the names of the columns of decisions about the outputs, and what they are names for."""
    n_outputs = rule.schema.n_outputs
    default = ["decision"] if n_outputs == 1 else [f"decision_{m}" for m in range(n_outputs)]
    return list(rule.schema.output_names or default), f"of the {n_outputs} outputs"


def _names(column: str | Sequence[str] | None, default: list[str], what: str) -> list[str]:
    if column is None:
        return default
    names = [column] if isinstance(column, str) else list(column)
    if len(names) != len(default) or len(set(names)) < len(names):
        raise InvalidParameter("column", f"have one distinct name for each {what}", shown(names))
    return names
