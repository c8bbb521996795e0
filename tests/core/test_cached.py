"""Properties that are computed once, and wait for no other instance."""

import threading

from metricwise.core.cached import cached_property


class Row:
    """A row that knows what it is read with."""

    def __init__(self, read):
        self.read, self.n_reads = read, 0

    @cached_property
    def label(self):
        self.n_reads += 1
        return self.read()


def test_what_is_computed_is_kept():
    row = Row(lambda: "low")
    assert (row.label, row.label, row.n_reads) == ("low", "low", 1)
    assert Row.label.func(row) == "low"


def test_one_instance_is_computed_while_another_waits():
    may_end, waits = threading.Event(), threading.Event()

    def wait():
        waits.set()
        return may_end.wait(20)

    first = Row(wait)
    thread = threading.Thread(target=lambda: first.label)
    thread.start()
    waits.wait(20)
    found = []
    other = threading.Thread(target=lambda: found.append(Row(lambda: "low").label))
    other.start()
    other.join(5)
    may_end.set()
    assert found == ["low"]
    thread.join()
    other.join()
    assert first.label is True
