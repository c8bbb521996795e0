"""A command parses the CSV that it is given exactly once, however many columns it uses."""

import pyarrow.csv
import pyarrow.dataset
import pytest

from cli.shared import MULTICLASS, done, table, write


@pytest.fixture
def parses(monkeypatch):
    """The CSV files that are opened by a parser: pyarrow's, or that of its datasets."""
    opened = []

    def counted(function):
        def call(source, *args, **kwargs):
            opened.append(source)
            return function(source, *args, **kwargs)

        return call

    for module, name in ((pyarrow.csv, "open_csv"), (pyarrow.csv, "read_csv"), (pyarrow.dataset, "dataset")):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    return opened


def test_one_parse_per_command(tmp_path, parses):
    frame, _ = table(MULTICLASS, 80)
    frame = frame.assign(w=1, group=["f", "m"] * 40, time=range(80), site=[row // 4 for row in range(80)])
    other = frame.rename(columns={name: f"q_{name}" for name in ("low", "mid", "urgent")})
    path = write(frame.join(other[["q_low", "q_mid", "q_urgent"]]), tmp_path / "rows.csv")
    options = ["--target", "truth", "--weight", "w"]
    fit = ["fit", path, *options, "--metric", "macro_f1", "--groups", "site", "--proba-prefix"]
    commands = [
        [*fit, "", "-o", tmp_path / "rule.json"],
        [*fit, "q_", "-o", tmp_path / "other.json"],
        ["apply", tmp_path / "rule.json", path, "--keep-all", "--column", "call", "-o", tmp_path / "calls.csv"],
        ["evaluate", tmp_path / "rule.json", path, *options, "--metric", "accuracy", "--time", "time"],
        ["compare", tmp_path / "rule.json", path, *options, "--against", tmp_path / "other.json"],
        ["report", tmp_path / "rule.json", path, *options, "-o", tmp_path / "rule.html"],
        ["trade-off", path, "-t", "truth", "-m", "accuracy", "--against", "macro_recall", "--points", "2"],
    ]
    for command in commands:
        parses.clear()
        result = done(*command)
        assert len(parses) == 1, command
    assert result.out
