"""Texts that were edited, cut or damaged: JSON, and any other."""

import copy
import json

JUNK = (
    None, True, 0, 1, -1, 7, 1.5, 1e100, "", "x", [], {}, [[]], [None], [["a"]], [[1.0]], [[[1.0]]], [0, 1], ["a", "b"],
    [[0, 1], [0, 1]], {"a": 1}, {"full": []}, 2**70, "weighted", "mixture", "metricwise-rule",
)  # fmt: skip


def places(node, path=()):
    """Every place of a document, as a path of keys and positions."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def edited(text, rng):
    """The text with one value replaced, dropped or doubled."""
    document = copy.deepcopy(json.loads(text))
    known = list(places(document))
    *parents, last = known[rng.integers(len(known))]
    node = document
    for key in parents:
        node = node[key]
    action = rng.integers(4)
    if action == 0:
        del node[last]
    elif action == 1 and isinstance(node, list):
        node.append(node[last])
    else:
        node[last] = JUNK[rng.integers(len(JUNK))]
    return json.dumps(document)


def damaged(text, rng):
    """The text with some characters dropped, doubled or replaced."""
    start, length = rng.integers(1, len(text)), rng.integers(1, 20)
    middle = ["", text[start : start + length] * 2, "".join(rng.choice(list('{}[]",:019eE.-tfn\\\u0000é'), size=4))]
    return text[:start] + middle[rng.integers(3)] + text[start + length :]
