"""Without PyTorch, which is optional."""

import sys

import pytest

import metricwise as mw


def test_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "metricwise.export.torch_layers", raising=False)
    monkeypatch.delattr(sys.modules["metricwise.export"], "torch_layers", raising=False)
    with pytest.raises(ImportError, match="to_torch: needs PyTorch, which is not installed: pip install torch"):
        mw.export.to_torch(mw.WeightedRule.from_thresholds(0.5))
