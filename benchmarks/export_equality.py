"""Compare the decisions of exported rules with `rule.predict`: a million rows, every format, every target.

    python -m benchmarks.export_equality                    writes export_equality.csv and export_equality.md beside it
    python -m benchmarks.export_equality --output folder
    python -m benchmarks.export_equality --rows 10000       a quick look; writes nothing unless given a folder

Needs ``pip install --group test`` (onnxruntime, DuckDB, sqlglot) and, for their columns, ``pip install --group torch``
and PostgreSQL (Debian: ``apt-get install postgresql``; the script starts and stops a server). Rows are smooth, rounded
to two decimals, tied, and next to thresholds. With recalibration, decisions may differ if the scores of the two
decisions are within 1e-9, because exp, log and powers differ in the last bit between libraries: these are counted
separately. Any other difference makes the script fail.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from metricwise.rules.mixture import uniforms_at

from .export_cases import Case, cases
from .export_engines import (
    in_duckdb,
    in_exported_torch,
    in_onnxruntime,
    in_python,
    in_sqlite,
    in_torch,
    in_torchscript,
    postgres,
    torch_is_installed,
)
from .machine import facts, installed
from .tables import table, write_csv, write_text

HERE = Path(__file__).parent
CLOSE = 1e-9
ON_TORCH = {"PyTorch": in_torch, "TorchScript": in_torchscript, "torch.export": in_exported_torch}
ON_TENSORS = ("onnxruntime", *ON_TORCH)  # where rules by group are refused


def score_gaps(case: Case, ours: np.ndarray, theirs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the differences of the scores of two decisions, computed with NumPy; of parts, by the one that decides."""
    decisive = deciding(case, rows)
    gaps = np.empty(len(rows))
    for rule in {id(rule): rule for rule in decisive}.values():
        own = np.array([other is rule for other in decisive])
        gaps[own] = gaps_of(rule, case, ours[rows[own]], theirs[rows[own]], rows[own])
    return gaps


def deciding(case: Case, rows: np.ndarray) -> list[Any]:
    """Return the weighted rule that decides each row."""
    rules = [case.rule] * len(rows)
    if case.groups is not None:
        known = case.rule.known
        places = known.codes(case.groups[rows], len(rows), others=case.rule.decides_others)
        rules = [case.rule.parts[place] for place in places.tolist()]
    drawn = [
        uniforms_at(rule.seed, rows[[i]], 1)[0, 0] if hasattr(rule, "edges") else None for i, rule in enumerate(rules)
    ]
    return [
        rule if number is None else rule.rules[int((number >= rule.edges[0]).sum())]
        for rule, number in zip(rules, drawn, strict=True)
    ]


def probabilities(rule: Any, case: Case, rows: np.ndarray) -> np.ndarray:
    """Return what a rule compares, (N, M, K)."""
    numbers = case.proba[rows].astype(np.float64)
    of_logits = rule.input != "probabilities"
    if case.positive:
        numbers = np.stack([np.zeros_like(numbers) if of_logits else 1 - numbers, numbers], axis=-1)
    numbers = numbers if rule.multioutput else numbers[:, None, :]
    if rule.link is None:
        return numbers
    real = np.arange(rule.width) < rule.n_classes[:, None]
    numbers = np.clip(numbers, -1e200, 1e200) if of_logits else np.log(np.maximum(numbers, rule.link.floor))
    logits = np.where(real, rule.link.temperature[:, None] * numbers + rule.link.bias, -np.inf)
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def gaps_of(rule: Any, case: Case, ours: np.ndarray, theirs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the differences of the scores of two decisions of a weighted rule."""
    eta = probabilities(rule, case, rows)
    wide = rule.schema.decision_width
    tensor = np.broadcast_to(rule.loss.tensor(), (rule.n_outputs, wide, wide))[:, : rule.width]
    scores = np.einsum("nmi,mij->nmj", eta, tensor)
    gaps = np.zeros(len(rows))
    for m, labels in enumerate(rule.schema.decisions):
        place = {label: j for j, label in enumerate(labels.tolist())}
        one, other = ([place.get(x) for x in (a[:, m] if rule.multioutput else a)] for a in (ours, theirs))
        gaps = np.maximum(
            gaps, [np.inf if b is None else abs(s[a] - s[b]) for s, a, b in zip(scores[:, m], one, other, strict=True)]
        )
    return gaps


def compare(case: Case, where: str, run: Any) -> dict[str, Any]:
    """Return one row of the table."""
    ours = case.ours
    start = time.perf_counter()
    theirs = run(case)
    seconds = time.perf_counter() - start
    other = ours != theirs
    rows = np.flatnonzero(other.any(axis=1) if other.ndim == 2 else other)
    beyond = (
        int((score_gaps(case, ours, theirs, rows) > CLOSE).sum())
        if case.linked and len(rows)
        else 0
        if case.linked
        else len(rows)
    )
    return {
        "target": case.target,
        "rule": case.decides,
        "where": where,
        "precision": "single" if case.proba.dtype == np.float32 else "double",
        "rows": len(case.proba),
        "rows that differ": len(rows),
        "of these beyond 1e-9": beyond,
        "seconds": round(seconds, 2),
    }


def single(case: Case) -> Case:
    return replace(case, proba=case.proba.astype(np.float32))


def run_all(n_rows: int, server: Any) -> list[dict[str, Any]]:
    """Yield every case in every engine, in both precisions where supported."""
    places: list[tuple[str, Any, bool]] = [
        ("Python", in_python, False),
        ("onnxruntime", in_onnxruntime, True),
        *((where, run, True) for where, run in ON_TORCH.items() if torch_is_installed()),
        ("DuckDB", in_duckdb, True),
        ("SQLite", in_sqlite, False),
    ]
    if server is not None:
        places.append(("PostgreSQL", server.decide, True))
    lines = []
    for case in cases(n_rows):
        for where, run, both in places:
            if case.groups is not None and where in ON_TENSORS:
                continue
            # Scores that are normalised in single precision are rounded to it, which SQL has no word for.
            in_both = both and not (case.rule.schema.normalize and where not in ON_TENSORS)
            for given in [case, single(case)] if in_both else [case]:
                lines.append(compare(given, where, run))
                print(lines[-1], flush=True)
    return lines


def markdown(lines: list[dict[str, Any]], server: Any) -> str:
    """Return the page: a row for each kind of rule, a column for each engine."""
    known = facts()
    versions = [f"metricwise {known['metricwise']}", f"Python {known['Python']}", f"NumPy {known['numpy']}"]
    libraries = ["onnx", "onnxruntime", *(["torch"] if torch_is_installed() else []), "duckdb", "sqlglot"]
    versions += [f"{name} {installed(name)}" for name in libraries]
    versions += [f"SQLite {sqlite3.sqlite_version}", *([] if server is None else [f"PostgreSQL {server.version()}"])]
    heads = list(dict.fromkeys((line["where"], line["precision"]) for line in lines))
    titles = {head: head[0] if head[1] == "double" else f"{head[0]}, single" for head in heads}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        row = found.setdefault(
            (line["target"], line["rule"]),
            {"target": line["target"], "rule": line["rule"]} | dict.fromkeys(titles.values(), "–"),
        )
        row[titles[line["where"], line["precision"]]] = f"{line['rows that differ']:,}"
    beyond = sum(line["of these beyond 1e-9"] for line in lines)
    total = sum(line["rows"] for line in lines)
    missing = [
        name for name, there in (("PyTorch", torch_is_installed()), ("PostgreSQL", server is not None)) if not there
    ]
    absent = "".join(f" {name} was not installed where this was run, so it is not in the table." for name in missing)
    return f"""# Exports decide as the rule does

Made by `python -m benchmarks.export_equality`. The table shows how many of {lines[0]["rows"]:,} rows an export
decides differently from `rule.predict`; {total:,} rows are compared in all. Rows are smooth, rounded to two decimals,
tied, and next to thresholds; logits are up to 1e6, or infinite.{absent}

{table(list(found.values()), left=2)}

Without recalibration no row may differ. With recalibration, and on logits, rows may differ if the scores of the two
decisions are within 1e-9, because libraries differ in the last bit of exp, log and powers, and differences of logits
are rounded. Rows that differ beyond that:
**{beyond}**. If only the number of one of two classes is given, one row in twenty is at the threshold of the rule,
or at a neighbouring double. A dash: not supported (SQL normalises scores in double precision only, and ONNX and PyTorch
have no rules by group).

{", ".join(versions)}; {known["processor"]}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    given = parser.parse_args()
    with postgres() as server:
        lines = run_all(given.rows, server)
        text = markdown(lines, server)
    output = given.output or (HERE if given.rows >= 1_000_000 else None)
    print(text)
    if output is not None:
        write_csv(output / "export_equality.csv", lines)
        write_text(output / "export_equality.md", text)
    if any(line["of these beyond 1e-9"] for line in lines):
        sys.exit("An export decides otherwise than the rule does.")


if __name__ == "__main__":
    main()
