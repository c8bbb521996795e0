"""Export of rules: ONNX graphs, PyTorch modules, SQL expressions, Python source.

Exported rules decide as here: scores in float64, summed in the same order. Extras are imported where they are used.
Must not know metrics, solvers or rows.
"""

from ..rules.load import rule_schema
from .converters import register_converters
from .onnx_graph import to_onnx
from .python_source import to_python
from .sql import to_sql
from .torch_module import to_torch

__all__ = ["register_converters", "rule_schema", "to_onnx", "to_python", "to_sql", "to_torch"]
