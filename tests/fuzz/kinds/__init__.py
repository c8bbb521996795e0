"""Kinds of inputs, one module each: a draw from a seed, and an independent answer that gives the verdict."""

from fuzz.kinds import arrays, commands, engines, exports, rule_files, tables, texts
from fuzz.verdicts import Kind

KINDS = {
    kind.name: kind
    for kind in (
        Kind("arrays", arrays.draw, "values against scikit-learn, optima against enumeration, wrong arguments"),
        Kind("engines", engines.draw, "chunks, Parquet, Dask and both kernels against rows in memory"),
        Kind("exports", exports.draw, "Python, ONNX and SQL against `predict`"),
        Kind("tables", tables.draw, "files of all formats against arrays; types, nulls, encodings, truncated files"),
        Kind("rule files", rule_files.draw, "edited, cut and damaged JSON"),
        Kind("commands", commands.draw, "command lines, right ones against the Python calls, and mangled ones"),
        Kind("texts", texts.draw, "metrics and constraints as text, against scikit-learn and what was written"),
    )
}
