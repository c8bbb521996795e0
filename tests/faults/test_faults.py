"""The catalogue of seeded faults applies to the source, and a fault is found where it stands."""

import ast

import pytest

from tests.faults import catalogue, killing, suite
from tests.faults.__main__ import main
from tests.faults.catalogue import Fault, MisaimedError

SOURCE = """
def outside(x):
    return x + 1


class Sum:
    @property
    def total(self):
        return (
            self.x + 1
        )
"""


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "src" / "some"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text(SOURCE)
    (folder / "kernel.h").write_text("a + b; a - b;\n")
    return tmp_path


def fault(old, where="some.module:Sum.total", new="self.x - 1"):
    return Fault("name", "area", where, old, new, "the sign is wrong")


def test_all_faults_apply(capsys):
    assert main(["check"]) == 0, capsys.readouterr().out


def test_all_faults_leave_valid_python_that_differs():
    for one in catalogue.read():
        assert one.old != one.new
        if not one.compiled:
            place = catalogue.locate(one)
            text = (catalogue.ROOT / place.path).read_text()
            changed = text[: place.start] + one.new + text[place.start + len(one.old) :]
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), one.id


def test_a_fault_is_found_in_its_function_alone(tree):
    place = catalogue.locate(fault("x + 1"), tree)
    assert place.path == "src/some/module.py"
    assert place.lines == (9, 10, 11)  # those of the statement
    assert SOURCE[place.start :].startswith("x + 1\n        )")
    catalogue.apply(fault("self.x + 1"), tree)
    assert (tree / place.path).read_text() == SOURCE.replace("self.x + 1", "self.x - 1")


def test_a_fault_in_a_compiled_kernel_is_found_by_its_file(tree):
    catalogue.apply(fault("a - b", "some/kernel.h", "b - a"), tree)
    assert (tree / "src/some/kernel.h").read_text() == "a + b; b - a;\n"


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (fault("x + 2"), "must occur once in some.module:Sum.total, got 0 times"),
        (fault("x", "some.module:Sum.mean"), "there is no Sum.mean in some.module"),
        (fault("x", "some.other:Sum"), "there is no file for some.other:Sum"),
        (fault("a", "some/kernel.h"), "got 2 times"),
    ],
)
def test_a_fault_that_no_longer_applies_is_named(tree, one, said):
    with pytest.raises(MisaimedError, match=f"name: .*{said}"):
        catalogue.locate(one, tree)
    assert len(catalogue.misaimed([one], tree)) == 1


def test_the_suite_is_what_make_runs():
    found = suite.commands(catalogue.ROOT)
    assert [command.name for command in found][:2] == ["test-compiled", "test-numpy"]
    assert found[1].variables == {"METRICWISE_KERNELS": "numpy"}
    assert not any("-n" in command.arguments for command in found)


def test_the_table_names_what_survives(tmp_path):
    one = fault("x")
    rows = [
        killing.Row("name", "area", "there", "no", "tests/golden/test_golden.py::t", killing.RECORDED, "no"),
        killing.Row("other", "area", "there", "yes", "tests/test_a.py::t", killing.EXECUTING, "no"),
    ]
    text = killing.table(rows, [one])
    assert "area                   1    2" in text
    assert "survives: name (the sign is wrong): recordings only" in text
    path = tmp_path / "results.csv"
    killing.write_results(rows, path)
    assert list(killing.read_results(path).values()) == rows
