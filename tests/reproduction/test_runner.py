"""Long work behaves: it continues, it loses at most the repetition in hand, and numbers do not depend on the jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from reproduction.protocol import RunSettings, task_rng
from reproduction.reports.pages import markdown_table, to_html
from reproduction.running.runner import run_experiment
from reproduction.running.store import Store


class Toy:
    """Draws a number per task, and notes in a file that it did."""

    name = "toy"
    keys = ("set", "repetition")

    def __init__(self, log: Path, stop_at=None):
        self.log, self.stop_at = log, stop_at

    def tasks(self, settings):
        return [(name, r) for name in ("a", "b") for r in range(settings.repetitions or 3)]

    def order(self, tasks):
        return sorted(tasks, key=lambda task: task[1])

    def run(self, task, settings):
        if task == self.stop_at:
            raise KeyboardInterrupt
        with self.log.open("a") as file:
            file.write(f"{task}\n")
        return {"value": float(task_rng("toy", settings, *task).random()), "half": 0.5}

    def report(self, rows, settings, folder):
        return {"Values": markdown_table(["set", "value"], [[row["set"], row["value"]] for row in rows])}


def quiet(line):
    pass


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.txt"
    path.touch()
    return path


def runs(log):
    return log.read_text().splitlines()


def test_results_do_not_depend_on_jobs(tmp_path, log):
    for jobs in (1, 2):
        run_experiment(Toy(log), RunSettings(), tmp_path / str(jobs), jobs=jobs, say=quiet)
    one, two = ((tmp_path / str(jobs) / "toy.csv").read_bytes() for jobs in (1, 2))
    assert one == two
    assert len(runs(log)) == 12


def test_another_seed_gives_other_numbers(tmp_path, log):
    for seed in (0, 1):
        run_experiment(Toy(log), RunSettings(seed=seed), tmp_path / str(seed), say=quiet)
    assert (tmp_path / "0" / "toy.csv").read_bytes() != (tmp_path / "1" / "toy.csv").read_bytes()


def test_finished_work_is_not_run_again(tmp_path, log):
    out = tmp_path / "out"
    run_experiment(Toy(log), RunSettings(), out, say=quiet)
    before = (out / "toy.csv").read_bytes()
    said = []
    run_experiment(Toy(log), RunSettings(), out, say=said.append)
    assert len(runs(log)) == 6
    assert (out / "toy.csv").read_bytes() == before
    assert "all 6 repetitions are there" in said[0]


def test_more_repetitions_add_to_what_is_there(tmp_path, log):
    out = tmp_path / "out"
    run_experiment(Toy(log), RunSettings(repetitions=2), out, say=quiet)
    run_experiment(Toy(log), RunSettings(repetitions=3), out, say=quiet)
    assert len(runs(log)) == 6
    run_experiment(Toy(log), RunSettings(repetitions=3), tmp_path / "fresh", say=quiet)
    assert (out / "toy.csv").read_bytes() == (tmp_path / "fresh" / "toy.csv").read_bytes()


def test_interrupt_keeps_what_is_finished(tmp_path, log):
    out = tmp_path / "out"
    said = []
    with pytest.raises(KeyboardInterrupt):
        run_experiment(Toy(log, stop_at=("b", 1)), RunSettings(), out, say=said.append)
    assert said[-1] == "toy: stopped; 3 of 6 repetitions are kept, the same command continues"
    run_experiment(Toy(log), RunSettings(), out, say=quiet)
    assert len(runs(log)) == 6
    run_experiment(Toy(log), RunSettings(), tmp_path / "fresh", say=quiet)
    assert (out / "toy.csv").read_bytes() == (tmp_path / "fresh" / "toy.csv").read_bytes()


def test_kill_in_the_middle_of_a_line(tmp_path, log):
    out = tmp_path / "out"
    run_experiment(Toy(log), RunSettings(), out, say=quiet)
    whole = (out / "toy.csv").read_bytes()
    (out / "toy.csv").write_bytes(whole[:-7])
    run_experiment(Toy(log), RunSettings(), out, say=quiet)
    assert len(runs(log)) == 7
    assert (out / "toy.csv").read_bytes() == whole


def test_results_of_other_settings_are_not_mixed(tmp_path, log):
    run_experiment(Toy(log), RunSettings(), tmp_path / "out", say=quiet)
    with pytest.raises(ValueError, match=r"holds results of other settings \(\{'seed': 0\}\); choose another --output"):
        run_experiment(Toy(log), RunSettings(seed=1), tmp_path / "out", say=quiet)
    (tmp_path / "out" / "toy.json").unlink()
    with pytest.raises(ValueError, match=r"holds results of other settings \(unknown\)"):
        run_experiment(Toy(log), RunSettings(), tmp_path / "out", say=quiet)


def test_pages(tmp_path, log):
    path = run_experiment(Toy(log), RunSettings(made_up=True), tmp_path / "out", say=quiet, command="python <toy>")
    text = path.read_text()
    assert text.startswith("# toy\n\nMade by `python <toy>` with seed 0")
    assert "**Made-up data**" in text
    page = path.with_suffix(".html").read_text()
    assert "<code>python &lt;toy&gt;</code>" in page
    assert "<td>a</td>" in page


def read_record(folder):
    return json.loads((folder / "toy.json").read_text(encoding="utf-8"))


def test_record_of_what_made_the_results(tmp_path, log):
    path = run_experiment(Toy(log), RunSettings(), tmp_path, jobs=1, say=quiet, command="python -m toy")
    record = read_record(tmp_path)
    assert record["command"] == "python -m toy"
    assert record["jobs"] == record["threads"] == 1
    assert record["cores"] >= 1
    assert record["seconds"] > 0
    assert record["blas"] == ", ".join(sorted(set(blas_libraries())))
    assert "continued" not in record
    text = path.read_text()
    assert f"{record['processor']} ({record['cores']} cores; 1 processes, BLAS threads in each: 1)" in text
    assert record["blas"] in text


def blas_libraries():
    for info in threadpool_info():
        if info["user_api"] == "blas":
            yield f"{info['internal_api']} {info['version']} {info['architecture']}"


def test_record_says_who_continued(tmp_path, log):
    """The same command on the same machine adds its time; another command is named."""
    run_experiment(Toy(log), RunSettings(repetitions=1), tmp_path, say=quiet, command="python -m toy 1")
    first = read_record(tmp_path)
    path = run_experiment(Toy(log), RunSettings(repetitions=2), tmp_path, jobs=2, say=quiet, command="python -m toy 2")
    run_experiment(
        Toy(log), RunSettings(repetitions=2), tmp_path, say=quiet, command="python -m toy 3"
    )  # nothing to do
    record = read_record(tmp_path)
    assert record["command"] == "python -m toy 1"
    assert [(run["command"], run["jobs"]) for run in record["continued"]] == [("python -m toy 2", 2)]
    assert record["seconds"] > first["seconds"]
    assert "Continued by `python -m toy 2` on " in path.read_text()
    stop = Toy(log, stop_at=("b", 3))
    with pytest.raises(KeyboardInterrupt):
        run_experiment(stop, RunSettings(repetitions=4), tmp_path, say=quiet, command="python -m toy 1")
    run_experiment(Toy(log), RunSettings(repetitions=4), tmp_path, say=quiet, command="python -m toy 1")
    assert len(read_record(tmp_path)["continued"]) == 1


def test_results_with_other_columns_are_not_mixed(tmp_path, log):
    class Wider(Toy):
        def run(self, task, settings):
            return super().run(task, settings) | {"more": 1.0}

    run_experiment(Toy(log), RunSettings(repetitions=1), tmp_path, say=quiet)
    before = (tmp_path / "toy.csv").read_bytes()
    with pytest.raises(ValueError, match="holds results with other columns, of another version"):
        run_experiment(Wider(log), RunSettings(repetitions=2), tmp_path, say=quiet)
    assert (tmp_path / "toy.csv").read_bytes() == before


def test_links_lead_to_pages_of_their_kind():
    assert '<a href="uci_paper.html">coding</a>' in to_html("See [coding](uci_paper.md).", "title")


def test_to_html():
    page = to_html("## Two\n\nSome **words**\nand more.\n\n- one\n- two\n\n![alt](a.png)", "title")
    assert "<h2>Two</h2>" in page
    assert "<p>Some <strong>words</strong> and more.</p>" in page
    assert "<ul><li>one</li><li>two</li></ul>" in page
    assert '<img src="a.png" alt="alt">' in page


def test_store_of_nothing(tmp_path):
    store = Store(tmp_path / "x.csv", ("a",))
    store.sort([(1,)])
    assert not (tmp_path / "x.csv").exists()
    (tmp_path / "x.csv").write_text("a,b")  # killed while writing the header
    assert Store(tmp_path / "x.csv", ("a",)).rows == {}
