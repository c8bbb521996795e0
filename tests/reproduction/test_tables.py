"""What the columns mean: counts, classes in natural order, features as numbers."""

from __future__ import annotations

import numpy as np
import pytest

from reproduction.datasets import UCI_LOADERS, load_movielens, local_folder, make_table, paper_coding, write_made_up
from reproduction.reports.paper_numbers import TABLE_2

real = pytest.mark.skipif(local_folder() is None, reason="METRICWISE_DATA is not set")


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    return write_made_up(tmp_path_factory.mktemp("made-up"))


@real
@pytest.mark.parametrize("name", list(TABLE_2))
def test_table_2(name):
    table = UCI_LOADERS[name]()
    found = (table.n_rows, table.features.shape[1], table.y.shape[1], len(table.classes))
    paper = TABLE_2[name]
    assert found[1:] == paper[1:]
    assert found[0] == (1728 if name == "car" else paper[0])  # the paper misses one car


@real
def test_classes_are_in_natural_order():
    car, nursery = UCI_LOADERS["car"](), UCI_LOADERS["nursery"]()
    assert car.classes == ("low", "med", "high", "vhigh")
    assert car.y[0].tolist() == [3, 3]  # the file starts with the dearest
    assert nursery.y[:3, 1].tolist() == [0, 1, 2]  # recommended, priority, not_recom
    for table in (car, nursery):
        assert len(np.unique([np.bincount(column) for column in table.y.T])) == 1  # a full factorial


@real
def test_the_papers_coding():
    """Integers in natural order: the first cars are the worst, and health goes from not_recom to recommended."""
    X, y = paper_coding(UCI_LOADERS["car"]())
    assert X[:4].tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 2, 0], [0, 0, 1, 0, 0]]
    assert X.max(axis=0).tolist() == [3, 2, 2, 2, 3]
    assert y[0].tolist() == [3, 3]
    X, y = paper_coding(UCI_LOADERS["nursery"]())
    assert y[:3].tolist() == [[0, 2], [0, 1], [0, 0]]
    assert X[:3, -1].tolist() == [1, 3, 0]  # recommend, priority, not_recom
    X, _ = paper_coding(UCI_LOADERS["student"]())
    assert X.shape == (649, 30)
    assert X[0, 2] == 18  # ages are as in the file


@pytest.mark.parametrize("name", list(TABLE_2))
def test_the_papers_coding_is_of_integers(made_up, name):
    table = UCI_LOADERS[name](made_up, verify=False)
    X, y = paper_coding(table)
    assert X.shape == table.features.shape
    assert np.array_equal(X, np.round(X))
    assert y.shape == table.y.shape
    assert set(y.ravel()) <= set(range(len(table.classes)))
    for column, coded in zip(table.features.T, X.T, strict=True):  # one code for one word
        assert len({*zip(column, coded, strict=True)}) == len(set(column)) == len(set(coded))


@real
def test_labels_of_the_last_two_sets():
    assert UCI_LOADERS["student"]().label_names == ("goout", "Dalc", "Walc")
    wiki = UCI_LOADERS["wiki4he"]()
    assert wiki.label_names == ("Vis3", "Im1", "Im2")
    assert (wiki.y == -1).sum(axis=0).tolist() == [8, 22, 20]


@real
def test_movielens():
    ratings = load_movielens()
    assert (len(ratings), ratings.n_users, ratings.n_items) == (100_000, 943, 1682)
    assert np.bincount(ratings.rating)[1:].tolist() == [6110, 11370, 27145, 34174, 21201]
    assert "943 users" in repr(ratings)


@pytest.mark.parametrize("name", list(UCI_LOADERS))
def test_made_up_files_have_the_layout(made_up, name):
    table = UCI_LOADERS[name](made_up, verify=False)
    paper = TABLE_2.get(name, (0, 50, 3, 5))
    assert (table.features.shape[1], table.y.shape[1], len(table.classes)) == paper[1:]
    matrix = table.matrix()
    assert matrix.shape[0] == table.n_rows
    assert np.isfinite(matrix).all()
    for column in table.y.T:
        assert set(range(len(table.classes))) <= set(column)


def test_made_up_ratings(made_up, tmp_path):
    ratings = load_movielens(made_up, verify=False)
    assert set(ratings.rating) == {1, 2, 3, 4, 5}
    again = load_movielens(write_made_up(tmp_path), verify=False)
    assert np.array_equal(ratings.rating, again.rating)


def test_missing_numbers_become_the_mean_and_a_flag():
    rows = [["a", "1", "x"], ["b", "?", "y"], ["?", "3", "z"]]
    table = make_table("toy", rows, ["label", "number", "word"], ["label"], ["a", "b"], ["number"])
    assert table.y.tolist() == [[0], [1], [-1]]
    assert table.matrix().tolist() == [[1, 0, 1, 0, 0], [2, 1, 0, 1, 0], [3, 0, 0, 0, 1]]
    assert repr(table) == "Table(toy: 3 rows, 2 features, 1 labels, 2 classes)"


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="toy: each row must have 2 values, row 1 has 1"):
        make_table("toy", [["a", "1"], ["b"]], ["label", "x"], ["label"], ["a", "b"])
    with pytest.raises(ValueError, match=r"toy: labels must be among \['a', 'b'\], got \['c'\]"):
        make_table("toy", [["c", "1"]], ["label", "x"], ["label"], ["a", "b"])
