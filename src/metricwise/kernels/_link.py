"""Exponential and logarithm of the NumPy kernels, with the same bits as those of `_link.h` on every machine.

Libraries differ in the last bit of exp and log, and a bit decides a tie. These follow fdlibm's formulas, in exactly
rounded operations of a fixed order; the error is less than one unit in the last place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # times an exponent this is exact
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LOG2_E = float.fromhex("0x1.71547652b82fep+0")
_TO_WHOLE = 1.5 * 2.0**52  # added and taken away again, it rounds to a whole number
_LEAST_EXPONENT = -746.0  # exp is 0 from here on down
_SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)
_ONE = np.uint64(0x3FF0000000000000)
_MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_EXPONENT_BITS = np.uint64(52)
_TWO_EXPONENTS = np.uint64(2046)
_LAST_BITS = np.uint64(0xFFF)
_SHIFT_ONE = np.uint64(1)
_TWO_TO_52 = np.uint64(0x4330000000000000)


def log(x: FloatArray) -> FloatArray:
    """Return the logarithm of 5e-324 <= x <= 2^900: x = 2^e * m with m between sqrt(1/2) and sqrt(2)."""
    bits = (x * 2.0**54).view(np.uint64)  # scaled up, no number is subnormal
    bits += _ONE - _SQRT_HALF
    e = ((bits >> _EXPONENT_BITS) | _TWO_TO_52).view(np.float64)
    e -= 2.0**52 + 1077.0
    bits &= _MANTISSA
    bits += _SQRT_HALF
    f = bits.view(np.float64)
    f -= 1.0
    half = 0.5 * f
    half *= f
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = _horner(w, 1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01)
    even *= w
    odd = _horner(
        w, 1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01
    )
    odd *= z
    odd += even
    odd += half
    s *= odd
    s += e * _LN2_LOW
    s -= half
    s += f
    s += e * _LN2_HIGH
    return s


def exp(x: FloatArray) -> FloatArray:
    """Return the exponential of x <= 0: x = e * ln 2 + r with r between -ln 2 / 2 and ln 2 / 2."""
    at = np.maximum(x, _LEAST_EXPONENT)
    shifted = at * _LOG2_E
    shifted += _TO_WHOLE
    e = shifted - _TO_WHOLE
    at -= e * _LN2_HIGH
    e *= _LN2_LOW
    r = at - e
    z = r * r
    c = _horner(
        z,
        4.13813679705723846039e-08,
        -1.65339022054652515390e-06,
        6.61375632143793436117e-05,
        -2.77777777770155933842e-03,
        1.66666666666666019037e-01,
    )
    c *= z
    c = r - c
    r *= c
    r /= 2.0 - c
    e -= r
    e -= at
    y = 1.0 - e
    both = shifted.view(np.uint64)  # 2^e as two factors, for it may be no normal number
    both += _TWO_EXPONENTS
    both &= _LAST_BITS
    half = both >> _SHIFT_ONE
    both -= half
    for part in (half, both):
        part <<= _EXPONENT_BITS
        y *= part.view(np.float64)
    return y


def _horner(x: FloatArray, first: float, *others: float) -> FloatArray:
    """Polynomial of these coefficients, the highest first."""
    out: FloatArray = x * first
    out += others[0]
    for coefficient in others[1:]:
        out *= x
        out += coefficient
    return out
