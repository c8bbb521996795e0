"""``predict_table``: from a table of probabilities to a table of decisions, batch by batch.

Owns the way from one to the other, of which little is in memory at a time. Must not know metrics.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.errors import InvalidParameter, InvalidType, entry_point, shown
from ..core.labels import python_labels
from ..core.progress import Progress, read_verbose
from ..data.arrays import PieceReader
from ..data.columns import ProbabilityColumns
from ..data.logits import OTHER_RULE
from ..data.row_spec import Piece
from ..data.sources.tables import proba_of, rule_columns
from ..data.tables.formats import arrow
from ..data.tables.reading import Table, TableReader, batch_rows, open_table
from ..data.tables.writing import TableWriter, arrow_column, check_target
from ..rules.base import Rule, RuleRows
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
        Its columns of probabilities are named as in :func:`metricwise.optimize`.
    output : path
        The file to write; its extension determines the format: .parquet, .feather, .arrow, .csv or .tsv.
    keep : sequence of str
        Further columns of the table to write.
    column : str or list of str, optional
        Name of the column of decisions, one per output; by default the names of the rule's outputs, or "decision".
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
    """
    if not isinstance(rule, Rule):
        raise InvalidType("rule", "be a rule", shown(rule))
    rule = as_rule(rule, inputs=())
    table, target, schema = table if isinstance(table, Table) else Table(table), os.fspath(output), rule.schema
    names, shown_progress = _names(column, rule), read_verbose(verbose)
    taken = [name for name in names if name in keep]
    if taken:
        raise InvalidParameter("column", "not be the name of a column in keep", shown(taken[0]))
    check_target(target, force=force)
    reader = open_table(table)
    classes = [python_labels(labels) for labels in schema.classes]
    outputs = schema.output_names or ([None] if schema.n_outputs == 1 else names)
    columns = rule_columns(reader, table, outputs, classes, keep, graded=rule.schema.input.graded)
    with Progress("predict_table", 1, shown_progress) as progress, TableWriter(target, table.separator) as writer:
        n_rows = 0
        progress.stage("deciding")
        for decided in _decided(rule, columns, keep, names, reader, table.memory_limit):
            writer.write(decided)
            n_rows += len(decided[names[0]])
            progress.tick()
        if n_rows == 0:
            raise InvalidParameter("", problem="the table must have at least one row, got none", owner=reader.title)
    return n_rows


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
    for batch in reader.batches(read, batch_rows(8 * len(read), memory_limit)):
        proba = pieces.rows(Piece(proba_of(batch, columns, pieces)), start).proba
        codes = rule.decide(RuleRows(proba, start))
        decided = [column_labels.take(arrow().array(codes[:, m])) for m, column_labels in enumerate(labels)]
        yield {**{name: batch.column(name) for name in keep}, **dict(zip(names, decided, strict=True))}
        start += batch.num_rows


def _names(column: str | Sequence[str] | None, rule: Rule) -> list[str]:
    n_outputs = rule.schema.n_outputs
    if column is None:
        default = ["decision"] if n_outputs == 1 else [f"decision_{m}" for m in range(n_outputs)]
        return list(rule.schema.output_names or default)
    names = [column] if isinstance(column, str) else list(column)
    if len(names) != n_outputs or len(set(names)) < len(names):
        raise InvalidParameter("column", f"have one distinct name for each of the {n_outputs} outputs", shown(names))
    return names
