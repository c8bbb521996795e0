"""Output of pages: words are compared exactly, numbers up to what another processor may change."""

import pytest

from pages import same_output


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("f1  0.5645 [0.5284, 0.6007]", "f1 0.5583 [0.5311, 0.5950]"),
        ("weights 5.287, 11.51", "weights 5.100, 11.50"),
        ("1,349 rows,\n 0.4 of them", "1,340 rows, 0.41 of them"),
        ("first\nsecond\n0.512", "first\n...\n0.51"),
        ("", ""),
    ],
)
def test_the_same_output(shown, expected):
    assert same_output(shown, expected)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("f1 0.56", "f2 0.56"),
        ("f1 0.56", "f1 0.60"),
        ("f1 0.5600", "f1 0.6000"),
        ("177 rows", "200 rows"),
        ("3 classes", "4 classes"),
        ("recall -0.31", "recall +0.31"),
        ("first\nsecond", "first"),
        ("f1 0.56", ""),
    ],
)
def test_another_output(shown, expected):
    assert not same_output(shown, expected)
