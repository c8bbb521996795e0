"""Passes over more than 2^31 numbers, in a sparse file that is mapped into memory: of 8 GB few pages are on the disk.

Everything is 0 but some entries, among them the last ones and those around 2^31: what passes count is known exactly.
"""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from endurance.scale import IS_FULL, record
from metricwise import kernels

MIN_MEMORY = 4 << 30  # bytes that must be free: pages of the file may be dropped at any time
MIN_DISK = 12 << 30  # a file system without holes stores all of it
ENTRIES = 1 << 31
AROUND = (0, 12345, ENTRIES // 4 + 1, ENTRIES - 1, ENTRIES, ENTRIES + 1)


in_full = pytest.mark.skipif(not IS_FULL, reason="left to make endurance")


def free_memory():
    if not Path("/proc/meminfo").exists():
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    (line,) = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable")]
    return int(line.split()[1]) << 10


@pytest.fixture
def sparse(tmp_path):
    """Return arrays of zeros in sparse files."""
    if kernels.in_use() != "compiled":
        pytest.skip("the NumPy kernels take NumPy's indices")
    if free_memory() < MIN_MEMORY:
        pytest.skip(f"passes over 2^31 numbers: less than {MIN_MEMORY >> 30} GB of memory are free")
    if shutil.disk_usage(tmp_path).free < MIN_DISK:
        pytest.skip(f"passes over 2^31 numbers: less than {MIN_DISK >> 30} GB of disk are free")
    paths = []

    def make(shape, dtype):
        paths.append(tmp_path / f"{len(paths)}.npy")
        return np.memmap(paths[-1], dtype=dtype, mode="w+", shape=shape)

    yield make
    for path in paths:
        path.unlink()


def argmax_loss(k):
    return (-np.ones((1, k)), np.zeros((1, k)))


def note(case, n_entries, begin):
    record("more than 2^31 numbers", case, numbers=n_entries, seconds=round(time.monotonic() - begin, 1), wrong=0)


@in_full
def test_counts_of_binary_outputs(sparse):
    """With labels, expected, and both in pieces."""
    n_rows = ENTRIES // 2 + 5
    eta, codes = sparse((n_rows, 2), np.float32), sparse((n_rows, 2), np.int8)
    places = np.array([*AROUND, eta.size - 1])
    eta.reshape(-1)[places], codes.reshape(-1)[places[1:]] = 0.75, 1
    expected = np.zeros((2, 2, 2))
    expected[:, 0, 0] = n_rows
    for i, place in enumerate(places):
        expected[place % 2, 0, 0] -= 1
        expected[place % 2, int(i > 0), 1] += 1
    block, begin = kernels.Block(eta, np.array([2, 2]), codes), time.monotonic()
    np.testing.assert_array_equal(kernels.count_labels(block, [argmax_loss(2)])[0], expected)
    note("count_labels", eta.size, begin)
    begin, summed = time.monotonic(), np.zeros((2, 2, 2))
    for at in range(0, n_rows, 1 << 28):
        part = slice(at, at + (1 << 28))
        summed += kernels.count_labels(block._replace(eta=eta[part], codes=codes[part]), [argmax_loss(2)])[0]
    np.testing.assert_array_equal(summed, expected)
    note("count_labels, in pieces", eta.size, begin)
    begin, totals = time.monotonic(), expected.sum(axis=(1, 2))
    sums = kernels.count_expected(kernels.Block(eta, np.array([2, 2])), [argmax_loss(2)])[0]
    decided = np.array([[n_rows - np.sum(places % 2 == m), np.sum(places % 2 == m)] for m in range(2)])
    np.testing.assert_array_equal(sums[:, 1, 1], 0.75 * decided[:, 1])
    np.testing.assert_array_equal(sums.sum(axis=(1, 2)), totals)
    note("count_expected", eta.size, begin)


@in_full
def test_decisions_of_many_classes(sparse):
    n_classes = 1024
    n_rows = ENTRIES // n_classes + 3
    eta = sparse((n_rows, 1, n_classes), np.float32)
    rows = np.array([place // n_classes for place in AROUND] + [n_rows - 1])
    eta[rows, 0, n_classes - 1] = 1.0
    begin = time.monotonic()
    decided = kernels.decide(kernels.Block(eta, np.array([n_classes])), argmax_loss(n_classes))
    assert np.flatnonzero(decided[:, 0]).tolist() == sorted(set(rows.tolist()))
    assert set(decided[rows, 0]) == {n_classes - 1}
    note("decide", eta.size, begin)


def test_labels_are_tallied(sparse):
    codes = sparse((ENTRIES + 10, 1), np.int8)
    codes[[*AROUND, ENTRIES + 9], 0] = 1
    begin = time.monotonic()
    np.testing.assert_array_equal(kernels.tally(codes, None, 2), [[ENTRIES + 3, 7]])
    note("tally", codes.size, begin)


@in_full
def test_sums_and_counts_of_very_many_labels(sparse):
    n_labels = 4096
    n_rows = ENTRIES // n_labels + 1
    values = sparse((n_rows * n_labels,), np.float32)
    places = np.array([*AROUND, len(values) - 1])
    values[places] = -0.75  # the sign of a true label
    block = kernels.LabelBlock(values, None, np.arange(n_rows + 1, dtype=np.int64) * n_labels, n_labels)
    expected = np.bincount(places % n_labels, minlength=n_labels)
    begin = time.monotonic()
    sums = kernels.label_sums(block)
    np.testing.assert_array_equal(sums, np.column_stack([0.75 * expected, expected]))
    note("label_sums", len(values), begin)
    begin = time.monotonic()
    counts = kernels.label_count(block, [(np.ones(1), np.full(1, -0.5))], 0, -1, None)
    np.testing.assert_array_equal(counts[0], np.column_stack([0.75 * expected, expected, expected]))
    note("label_count", len(values), begin)
