"""The same array in every way that NumPy has to keep it in memory."""

import numpy as np


def spread(array):
    """Every second row and entry of something larger."""
    wide = np.full(tuple(2 * size for size in array.shape), array.flat[0] if array.size else 0, dtype=array.dtype)
    wide[tuple(slice(None, None, 2) for _ in array.shape)] = array
    return wide[tuple(slice(None, None, 2) for _ in array.shape)]


def backwards(array):
    """Every axis the other way round in memory."""
    flip = tuple(slice(None, None, -1) for _ in array.shape)
    return array[flip].copy()[flip]


def outputs_first(array):
    return np.moveaxis(np.moveaxis(array, 1, 0).copy(), 0, 1)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array):
    """One byte behind where the numbers of its type should begin."""
    memory = np.empty(array.nbytes + 1, dtype=np.uint8)
    out = memory[1:].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def swapped(array):
    return array.astype(array.dtype.newbyteorder())


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "spread": spread,
    "backwards": backwards,
    "outputs first": outputs_first,
    "read-only": read_only,
    "unaligned": unaligned,
    "swapped": swapped,
}
