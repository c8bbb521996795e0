"""Rules for other systems: ONNX graphs, SQL expressions, plain Python.

Owns how a rule is written down elsewhere, so that it decides there as it does here: the one definition of a score, in
float64 and in order. Knows rules and labels; must not know metrics, solvers or rows. What a format needs beyond Python
is an extra, imported where it is used.
"""

from ..rules.load import rule_schema
from .converters import register_converters
from .onnx_graph import to_onnx
from .python_source import to_python
from .sql import to_sql

__all__ = ["register_converters", "rule_schema", "to_onnx", "to_python", "to_sql"]
