# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Compiled twins of the row passes: the same functions as `_numpy`, over threads, without a copy of the big array.

Rows are cut into parts by their number alone, each part keeps sums of its own, and the parts are added in order: the
result does not depend on the number of threads. Within a part, tiles of rows are read class by class and worked on in
cache by the loops of `_loops.h`. What the twin handles and this does not (float16, swapped bytes, unaligned arrays) is
passed on to the twin.
"""

import os

import numpy as np

from . import _numpy
from ._numpy import constant_slopes, slope_lines, slope_noise

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc

cdef extern from "_loops.h" nogil:
    enum: MW_ROWS
    enum: MW_STEP
    ctypedef struct mw_envelope:
        int64_t line[MW_ROWS]
        int64_t next[MW_ROWS]
        int64_t code[MW_ROWS]
        int64_t next_code[MW_ROWS]
        double last[MW_ROWS]
        int32_t bin[MW_ROWS]
        int32_t kind[MW_ROWS]
    int mw_max_threads()
    int mw_has_openmp()
    double *mw_aligned(size_t numbers, void **held)
    void mw_load_f32(const char *base, ptrdiff_t row, ptrdiff_t cls, int n, int k, double *tile)
    void mw_load_f64(const char *base, ptrdiff_t row, ptrdiff_t cls, int n, int k, double *tile)
    void mw_complement(int n, double *tile, const double *positive)
    void mw_cells_i8(const char *base, ptrdiff_t row, int n, int64_t k, int64_t *cell)
    void mw_cells_i32(const char *base, ptrdiff_t row, int n, int64_t k, int64_t *cell)
    void mw_cells_i64(const char *base, ptrdiff_t row, int n, int64_t k, int64_t *cell)
    void mw_line(const double *eta, double d, double v, double *out)
    void mw_dot(int k, const double *tile, const double *column, ptrdiff_t step, double *out)
    void mw_total(int width, const double *tile, double *total)
    void mw_divide(const double *total, double *out)
    void mw_fill(int64_t value, int64_t *out)
    void mw_lower_line(const double *eta, double d, double v, int64_t j, double *best, int64_t *code)
    void mw_lower(const double *score, int64_t j, double *best, int64_t *code)
    void mw_decide_diagonal(int k, const double *tile, const double *d, const double *v, double *best, int64_t *code)
    void mw_count_two(int n, const int64_t *cell, const int64_t *code, int64_t *counts)
    void mw_decide_and_count_two(int n, const double *tile, const double *d, const double *v, const int64_t *cell,
                                 int64_t *counts)
    void mw_two_f32(const char *base, ptrdiff_t row, int n, double d0, double v0, double d1, double v1, int flip,
                    double fall, double begin, double per_unit, int32_t n_bins, mw_envelope *e)
    void mw_two_f64(const char *base, ptrdiff_t row, int n, double d0, double v0, double d1, double v1, int flip,
                    double fall, double begin, double per_unit, int32_t n_bins, mw_envelope *e)
    void mw_count_by_label(int n, const char *codes, ptrdiff_t row, const int32_t *bin, const uint8_t *which,
                           int32_t *counts, int64_t *labels)
    void mw_expect_two(int n, const int64_t *code, const double *m0, const double *m1, double *sums)
    void mw_scale(int n, const double *factor, double *out)
    void mw_multiply(int n, const double *a, const double *b, double *out)
    void mw_begin(const double *lowest, const int64_t *owner, double slope, mw_envelope *e)
    void mw_look(mw_envelope *e)
    void mw_meet(int64_t q, const double *other, const int64_t *whose, double slope, mw_envelope *e)
    void mw_met(mw_envelope *e)
    int mw_go(int n, int lines, mw_envelope *e)
    void mw_cross(const double *source, const double *to, double fall, mw_envelope *e)
    void mw_bins(double begin, double per_unit, int32_t n_bins, mw_envelope *e)
    void mw_kinds(int32_t k, const int64_t *cell, const int64_t *old, const int64_t *new, int32_t *kind)
    void mw_no_kind(const int64_t *next, int32_t *kind)
    int mw_pick(int n, const int32_t *bin, const uint8_t *wanted, int32_t first, int32_t last, int32_t *picked)
    void mw_add(int n, const mw_envelope *e, const double *table, double *sums, int64_t *counts)
    void mw_count_kinds(int n, const mw_envelope *e, const uint8_t *which, int32_t *counts)
    void mw_range_i8(const char *base, ptrdiff_t n, int64_t *low, int64_t *high)
    void mw_range_i32(const char *base, ptrdiff_t n, int64_t *low, int64_t *high)
    void mw_range_i64(const char *base, ptrdiff_t n, int64_t *low, int64_t *high)
    void mw_narrow_8_32(const char *base, ptrdiff_t n, char *out)
    void mw_narrow_32_8(const char *base, ptrdiff_t n, char *out)
    void mw_narrow_64_8(const char *base, ptrdiff_t n, char *out)
    void mw_narrow_64_32(const char *base, ptrdiff_t n, char *out)
    void mw_tally_two(ptrdiff_t m, const int8_t *codes, int32_t *zeros, int32_t *ones)
    int mw_within(int n, const double *values, double top)
    int mw_sums_to_one(int n, int k, const double *tile, double *total, double tolerance)

cdef Py_ssize_t _MOST_PARTS = 16  # and so threads
cdef Py_ssize_t _PART_WORK = 1 << 17  # numbers that a part should at least read
cdef Py_ssize_t _LEAST_WORK = 1 << 19  # below this a pass is over before another thread is awake
cdef Py_ssize_t _LARGEST_TABLE = 1 << 18  # entries; beyond, changes are computed one by one
cdef Py_ssize_t _TOGETHER = 8  # outputs that a thread takes at a time: their float64 fill a line of the cache
cdef Py_ssize_t _SIDE_BY_SIDE = 1024  # bytes that are counted together
cdef bint _forked = False


def _after_fork():
    """A child of a process that has run threads has none of them, and the runtime does not know: go on alone."""
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def max_threads():
    """Return how many threads a large pass would use now."""
    return 1 if _forked else mw_max_threads()


def has_openmp():
    """Say whether the passes were compiled with threads."""
    return bool(mw_has_openmp())


# ------------------------------------------------------------------------------------------------ arrays, as they lie


cdef struct Source:
    # Probabilities of M outputs, or the codes or masses of theirs (class_step unused).
    const char *data
    Py_ssize_t rows, outputs, width
    Py_ssize_t row_step, output_step, class_step
    int size  # bytes of an entry
    bint positive  # the probability of class 1 is given alone


cdef class _Held:
    """A buffer of an array, held while a pass runs."""
    cdef Py_buffer buffer
    cdef bint held

    def __cinit__(self, array):
        PyObject_GetBuffer(array, &self.buffer, PyBUF_STRIDED_RO)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.buffer)

    cdef Source source(self):
        cdef Source out
        out.data = <const char *> self.buffer.buf
        out.size = <int> self.buffer.itemsize
        out.rows = self.buffer.shape[0]
        out.outputs = self.buffer.shape[1]
        out.row_step = self.buffer.strides[0]
        out.output_step = self.buffer.strides[1]
        out.positive = self.buffer.ndim == 2
        out.width = 2 if out.positive else self.buffer.shape[2]
        out.class_step = 0 if out.positive else self.buffer.strides[2]
        return out


cdef object _PLAIN = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
cdef object _CODES = frozenset((np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.int64)))


cdef bint _ours(eta):
    """Whether this module reads such probabilities; the twin reads all."""
    return eta.dtype in _PLAIN and eta.flags.aligned


def _codes(codes):
    return codes if codes.dtype in _CODES and codes.flags.aligned else codes.astype(np.int64)


def _mass(observed):
    """Masses as bytes or aligned float64."""
    if observed.dtype == np.bool_:
        return observed.view(np.int8)
    return observed if observed.dtype == np.float64 and observed.flags.aligned else observed.astype(np.float64)


cdef inline void _read(const Source *s, Py_ssize_t row, Py_ssize_t m, int n, double *tile) noexcept nogil:
    """Write rows row..row+n of output m to a tile."""
    cdef const char *base = s.data + row * s.row_step + m * s.output_step
    cdef double *to = tile + MW_STEP if s.positive else tile
    cdef int k = 1 if s.positive else <int> s.width
    if s.size == 4:
        mw_load_f32(base, s.row_step, s.class_step, n, k, to)
    else:
        mw_load_f64(base, s.row_step, s.class_step, n, k, to)
    if s.positive:
        mw_complement(n, tile, to)


cdef inline void _read_cells(
    const Source *s, Py_ssize_t row, Py_ssize_t m, int n, int64_t k, int64_t *cell
) noexcept nogil:
    """Write (code + 1) * k of rows of output m: where the counts of the true class begin, 0 for a missing label."""
    cdef const char *base = s.data + row * s.row_step + m * s.output_step
    if s.size == 1:
        mw_cells_i8(base, s.row_step, n, k, cell)
    elif s.size == 4:
        mw_cells_i32(base, s.row_step, n, k, cell)
    else:
        mw_cells_i64(base, s.row_step, n, k, cell)


cdef inline void _read_mass(const Source *s, Py_ssize_t row, Py_ssize_t m, int n, double *out) noexcept nogil:
    """Write what the rows of output m count for: bool or float64."""
    cdef const char *base = s.data + row * s.row_step + m * s.output_step
    cdef int b
    if s.size == 1:
        for b in range(n):
            out[b] = <double> (base + b * s.row_step)[0]
    else:
        for b in range(n):
            out[b] = (<const double *> (base + b * s.row_step))[0]


# ------------------------------------------------------------------------------------------------- parts and threads


cdef struct Cut:
    Py_ssize_t rows, tiles, parts
    int threads


cdef Cut _cut(Py_ssize_t rows, Py_ssize_t work, Py_ssize_t kept):
    """Cut rows into parts: by the numbers that are read and those that each part keeps, never by threads."""
    cdef Cut cut
    cdef Py_ssize_t room = max(work // 16, <Py_ssize_t> 1 << 18) // max(kept, <Py_ssize_t> 1)
    cut.rows = rows
    cut.tiles = (rows + MW_ROWS - 1) // MW_ROWS
    cut.parts = max(min(min(_MOST_PARTS, work // _PART_WORK), min(room, cut.tiles)), <Py_ssize_t> 1)
    cut.threads = 1 if _forked or work < _LEAST_WORK else min(<Py_ssize_t> mw_max_threads(), cut.parts)
    return cut


cdef inline Py_ssize_t _begin(const Cut *cut, Py_ssize_t part) noexcept nogil:
    return min(cut.tiles * part // cut.parts * MW_ROWS, cut.rows)


# -------------------------------------------------------------------------------------------------- losses, decisions


cdef struct Rule:
    const double *first  # full, or diagonal
    const double *offset  # NULL for a full loss
    Py_ssize_t step, offset_step  # from one output to the next, 0 where all share


cdef class _Rules:
    """Several losses as pointers; holds the arrays."""
    cdef Rule *rules
    cdef list kept
    cdef Py_ssize_t number

    def __cinit__(self, losses):
        self.number = len(losses)
        self.kept = []
        self.rules = <Rule *> malloc(max(self.number, 1) * sizeof(Rule))
        if self.rules == NULL:
            raise MemoryError
        cdef Py_ssize_t r
        cdef const double[:, ::1] two
        cdef const double[:, :, ::1] three
        for r in range(self.number):
            arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in losses[r]]
            self.kept.append(arrays)
            if len(arrays) == 1:
                three = arrays[0]
                self.rules[r].first = &three[0, 0, 0]
                self.rules[r].offset = NULL
                self.rules[r].step = 0 if three.shape[0] == 1 else three.shape[1] * three.shape[2]
            else:
                two = arrays[0]
                self.rules[r].first = &two[0, 0]
                self.rules[r].step = 0 if two.shape[0] == 1 else two.shape[1]
                two = arrays[1]
                self.rules[r].offset = &two[0, 0]
                self.rules[r].offset_step = 0 if two.shape[0] == 1 else two.shape[1]

    def __dealloc__(self):
        free(self.rules)


cdef inline void _decide(
    const Rule *rule, Py_ssize_t m, int width, int k, const double *tile, double *score, double *best, int64_t *code
) noexcept nogil:
    """Class of least score among the first k, for a tile of output m."""
    cdef const double *first = rule.first + m * rule.step
    cdef int j, b
    if rule.offset != NULL:
        mw_decide_diagonal(k, tile, first, rule.offset + m * rule.offset_step, best, code)
        return
    mw_dot(width, tile, first, width, best)
    for b in range(MW_ROWS):
        code[b] = 0
    for j in range(1, k):
        mw_dot(width, tile, first + j, width, score)
        mw_lower(score, j, best, code)


cdef struct Scratch:
    # Working memory of one part.
    void *held
    double *tile
    double *mass
    double *score
    double *best
    double *row_mass
    int64_t *code
    int64_t *cell


cdef int _allocate(Scratch *s, Py_ssize_t width, bint two_tiles) noexcept nogil:
    s.tile = mw_aligned(((2 * width if two_tiles else width) + 5) * MW_STEP, &s.held)
    if s.tile == NULL:
        return -1
    s.mass = s.tile + width * MW_STEP if two_tiles else s.tile
    s.score = s.mass + width * MW_STEP
    s.best = s.score + MW_STEP
    s.row_mass = s.best + MW_STEP
    s.code = <int64_t *> (s.row_mass + MW_STEP)
    s.cell = s.code + MW_STEP
    return 0


def decide(eta, n_classes, loss):
    """Predict the class of least score; see the NumPy twin."""
    if not _ours(eta):
        return _numpy.decide(eta, n_classes, loss)
    cdef _Held held = _Held(eta)
    cdef Source source = held.source()
    cdef _Rules rules = _Rules([loss])
    cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(n_classes, dtype=np.intp)
    out = np.empty((source.rows, source.outputs), dtype=np.intp)
    if source.rows == 0:
        return out
    cdef Py_ssize_t[:, ::1] codes = out
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs * source.width, 1)
    cdef Py_ssize_t part
    cdef int failed = 0
    if cut.parts == 1:
        with nogil:
            failed = _decide_rows(&source, rules.rules, &counts[0], 0, source.rows, &codes[0, 0])
    else:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _decide_rows(
                &source, rules.rules, &counts[0], _begin(&cut, part), _begin(&cut, part + 1), &codes[0, 0]
            )
    if failed:
        raise MemoryError
    return out


cdef int _decide_rows(
    const Source *source, const Rule *rule, const Py_ssize_t *counts, Py_ssize_t begin, Py_ssize_t end,
    Py_ssize_t *out
) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m
    cdef int n, b
    if _allocate(&s, source.width, False):
        return 1
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read(source, row, m, n, s.tile)
            _decide(rule, m, <int> source.width, <int> counts[m], s.tile, s.score, s.best, s.code)
            for b in range(n):
                out[(row + b) * source.outputs + m] = s.code[b]
        row += n
    free(s.held)
    return 0


# ----------------------------------------------------------------------------------------------------------- counting


def count_labels(eta, codes, weight, n_classes, losses):
    """Count true against predicted classes for several losses in one pass; see the NumPy twin."""
    if not _ours(eta):
        return _numpy.count_labels(eta, codes, weight, n_classes, losses)
    cdef _Held held = _Held(eta), held_codes = _Held(_codes(codes))
    cdef Source source = held.source(), labels = held_codes.source()
    cdef _Rules rules = _Rules(losses)
    cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(n_classes, dtype=np.intp)
    cdef const double[::1] weights = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    cdef const double *w = NULL if weight is None or source.rows == 0 else &weights[0]
    cdef Py_ssize_t k = source.width
    cdef Py_ssize_t kept = rules.number * source.outputs * (k + 1) * k
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs * k, kept)
    # Weights are summed as float64, rows without as integers: both have 8 bytes.
    partial = np.zeros((cut.parts, kept), dtype=np.int64 if weight is None else np.float64)
    cdef _Held held_sums = _Held(partial)
    cdef char *sums = <char *> held_sums.buffer.buf
    cdef Py_ssize_t part
    cdef int failed = 0
    if cut.parts == 1:
        with nogil:
            failed = _count_rows(&source, &labels, w, &counts[0], rules.rules, rules.number, 0, source.rows, sums)
    else:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _count_rows(
                &source, &labels, w, &counts[0], rules.rules, rules.number, _begin(&cut, part),
                _begin(&cut, part + 1), sums + part * kept * 8
            )
    if failed:
        raise MemoryError
    total = partial[0] if cut.parts == 1 else _in_order(partial)
    return total.reshape(rules.number, source.outputs, k + 1, k)[:, :, 1:].astype(np.float64)


cdef int _count_rows(
    const Source *source, const Source *labels, const double *weight, const Py_ssize_t *counts, const Rule *rules,
    Py_ssize_t n_rules, Py_ssize_t begin, Py_ssize_t end, char *sums
) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m, r, k = source.width, size = (source.width + 1) * source.width
    cdef int n, b
    cdef int64_t *number
    cdef double *total
    if _allocate(&s, k, False):
        return 1
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read(source, row, m, n, s.tile)
            _read_cells(labels, row, m, n, k, s.cell)
            for r in range(n_rules):
                if k == 2 and weight == NULL and rules[r].offset != NULL and counts[m] == 2:
                    mw_decide_and_count_two(
                        n, s.tile, rules[r].first + m * rules[r].step, rules[r].offset + m * rules[r].offset_step, s.cell,
                        <int64_t *> sums + (r * source.outputs + m) * size
                    )
                    continue
                _decide(rules + r, m, <int> k, <int> counts[m], s.tile, s.score, s.best, s.code)
                if weight != NULL:
                    total = <double *> sums + (r * source.outputs + m) * size
                    for b in range(n):
                        total[s.cell[b] + s.code[b]] += weight[row + b]
                    continue
                number = <int64_t *> sums + (r * source.outputs + m) * size
                if k == 2:
                    mw_count_two(n, s.cell, s.code, number)
                else:
                    for b in range(n):
                        number[s.cell[b] + s.code[b]] += 1
        row += n
    free(s.held)
    return 0


def count_expected(eta, observed, weight, n_classes, losses):
    """Sum probabilities of the true class against predicted classes; see the NumPy twin."""
    if not _ours(eta):
        return _numpy.count_expected(eta, observed, weight, n_classes, losses)
    cdef _Held held = _Held(eta), held_mass
    cdef Source source = held.source(), mass
    cdef Source *seen = NULL
    if observed is not None:
        held_mass = _Held(_mass(observed))
        mass = held_mass.source()
        seen = &mass
    cdef _Rules rules = _Rules(losses)
    cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(n_classes, dtype=np.intp)
    cdef const double[::1] weights = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    cdef const double *w = NULL if weight is None or source.rows == 0 else &weights[0]
    cdef Py_ssize_t k = source.width
    cdef Py_ssize_t kept = rules.number * source.outputs * k * k
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs * k, kept)
    partial = np.zeros((cut.parts, kept))
    cdef double[:, ::1] sums = partial
    cdef Py_ssize_t part
    cdef int failed = 0
    if kept == 0:
        return np.zeros((0, source.outputs, k, k))
    if cut.parts == 1:
        with nogil:
            failed = _expect_rows(
                &source, seen, w, &counts[0], rules.rules, rules.number, 0, source.rows, &sums[0, 0]
            )
    else:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _expect_rows(
                &source, seen, w, &counts[0], rules.rules, rules.number, _begin(&cut, part), _begin(&cut, part + 1),
                &sums[part, 0]
            )
    if failed:
        raise MemoryError
    total = partial[0] if cut.parts == 1 else _in_order(partial)
    # Kept by predicted class, whose sums over the true classes are then neighbours.
    return np.ascontiguousarray(np.moveaxis(total.reshape(rules.number, source.outputs, k, k), 3, 2))


def _in_order(partial):
    """Add the parts one after the other, which NumPy's sum over a long axis does not promise."""
    total = partial[0].copy()
    for part in partial[1:]:
        total += part
    return total


cdef int _expect_rows(
    const Source *source, const Source *seen, const double *weight, const Py_ssize_t *counts, const Rule *rules,
    Py_ssize_t n_rules, Py_ssize_t begin, Py_ssize_t end, double *sums
) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m, r, i, k = source.width
    cdef int n, b
    cdef double *total
    cdef double *at
    if _allocate(&s, k, seen != NULL or weight != NULL):
        return 1
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read(source, row, m, n, s.tile)
            _weigh(source, seen, weight, row, m, n, &s)
            for r in range(n_rules):
                _decide(rules + r, m, <int> k, <int> counts[m], s.tile, s.score, s.best, s.code)
                total = sums + (r * source.outputs + m) * k * k
                if k == 2:
                    mw_expect_two(n, s.code, s.mass, s.mass + MW_STEP, total)
                    continue
                for b in range(n):
                    at = total + s.code[b] * k
                    for i in range(k):
                        at[i] += s.mass[i * MW_STEP + b]
        row += n
    free(s.held)
    return 0


cdef inline void _weigh(
    const Source *source, const Source *seen, const double *weight, Py_ssize_t row, Py_ssize_t m, int n, Scratch *s
) noexcept nogil:
    """Write probabilities times what the row counts for; the tile itself where all count alike."""
    cdef Py_ssize_t i
    if weight != NULL:
        for i in range(source.width):
            mw_multiply(n, s.tile + i * MW_STEP, weight + row, s.mass + i * MW_STEP)
    if seen != NULL:
        _read_mass(seen, row, m, n, s.row_mass)
        for i in range(source.width):
            if weight != NULL:
                mw_scale(n, s.row_mass, s.mass + i * MW_STEP)
            else:
                mw_multiply(n, s.tile + i * MW_STEP, s.row_mass, s.mass + i * MW_STEP)


# ------------------------------------------------------------------------------------------ changes along a line


cdef struct Event:
    double g
    double change[2]
    int64_t segment


cdef struct Log:
    # What a part has found.
    double *start  # (G, 2): functionals at g = -inf, where rows have weights
    int64_t *first  # (M, K + 1, K): rows by true class and class at g = -inf, where they have none
    double *sums  # (G, B + 2, 4): change of both functionals, and its size
    int64_t *counts  # (G, B + 2)
    int32_t *kinds  # (G, B + 2, 8): the same, by kind of change; NULL where there are too many kinds
    Event *events
    Py_ssize_t n_events, room
    bint failed


cdef struct Line:
    # What is walked, shared by all parts.
    const Source *source
    const Source *labels  # NULL: probabilities are counted
    const Source *seen
    const double *weight
    const Py_ssize_t *counts
    const Py_ssize_t *group
    const Rule *constant
    const Rule *slope
    bint flat  # slopes do not depend on the row
    const Py_ssize_t *order  # (M, K): classes, line by line
    const Py_ssize_t *line  # (M, K): line of each of these
    const double *steep  # (M, K): slope of each line
    const Py_ssize_t *n_lines  # (M,)
    double noise
    const double *worth  # (M, K + 1, K, 2)
    const double *table  # (M, K + 1, K, K, 4): changes by true, old and new class; NULL where that is too large
    const uint8_t *which  # (K + 1, K, K): which of eight changes each kind makes; NULL where there are more
    const double *grid  # (G, 2): where bins begin, bins per unit
    Py_ssize_t n_bins
    const uint8_t *wanted  # (G, B + 2): segments whose events are listed; NULL: none
    const int32_t *hull  # (G, 2): the first and the last wanted bin
    bint summed  # whether bins are summed
    bint two  # two classes, two lines, int8 labels that all count alike: the shortest way


cdef struct Walker:
    # Working memory of one part, besides what counting needs.
    Scratch s
    void *held
    double *height  # (K, MW_STEP), where slopes depend on the row
    double *incline  # (K, MW_STEP), where slopes depend on the row
    double *lowest  # (K, MW_STEP): height of each line
    int64_t *owner  # (K, MW_STEP): class of each line of several classes
    int64_t *same  # (K, MW_STEP): the class itself, for lines of one
    int64_t *first  # class at g = -inf, where slopes depend on the row
    mw_envelope *envelope
    int32_t *picked  # rows whose change is wanted
    const double **low  # (K,): height and class of each line
    const int64_t **own


cdef int _allocate_walker(Walker *w, const Line *line) noexcept nogil:
    cdef Py_ssize_t k = line.source.width, j, b
    if _allocate(&w.s, k, line.seen != NULL or line.weight != NULL):
        return -1
    w.height = mw_aligned((5 * k + 2) * MW_STEP + sizeof(mw_envelope) // 8 + 2 * k, &w.held)
    if w.height == NULL:
        free(w.s.held)
        return -1
    w.incline = w.height + k * MW_STEP
    w.lowest = w.incline + k * MW_STEP
    w.owner = <int64_t *> (w.lowest + k * MW_STEP)
    w.same = w.owner + k * MW_STEP
    w.first = w.same + k * MW_STEP
    w.envelope = <mw_envelope *> (w.first + MW_STEP)
    w.picked = <int32_t *> (w.envelope + 1)
    w.low = <const double **> (w.picked + 2 * MW_STEP)
    w.own = <const int64_t **> (w.low + k)
    for j in range(k):
        for b in range(MW_ROWS):
            w.same[j * MW_STEP + b] = j
    return 0


cdef inline void _scores(
    const Rule *rule, Py_ssize_t which, int width, int k, const double *tile, double *out
) noexcept nogil:
    cdef const double *first = rule.first + which * rule.step
    cdef int j
    for j in range(k):
        if rule.offset != NULL:
            mw_line(tile + j * MW_STEP, first[j], (rule.offset + which * rule.offset_step)[j], out + j * MW_STEP)
        else:
            mw_dot(width, tile, first + j, width, out + j * MW_STEP)


cdef inline void _worth(const Line *line, const Walker *w, Py_ssize_t m, Py_ssize_t row, int b, Py_ssize_t j,
                        double *out) noexcept nogil:
    """What row b of the tile adds to both functionals if it is decided as j."""
    cdef Py_ssize_t k = line.source.width, i
    cdef const double *at
    if line.labels != NULL:
        at = line.worth + ((m * (k + 1) * k) + w.s.cell[b] + j) * 2
        out[0] = at[0]
        out[1] = at[1]
        if line.weight != NULL:
            out[0] *= line.weight[row + b]
            out[1] *= line.weight[row + b]
        return
    out[0] = out[1] = 0.0
    at = line.worth + ((m * (k + 1) + 1) * k + j) * 2
    for i in range(k):
        out[0] += w.s.mass[i * MW_STEP + b] * at[0]
        out[1] += w.s.mass[i * MW_STEP + b] * at[1]
        at += 2 * k


cdef inline void _change(
    const Line *line, const Walker *w, Py_ssize_t m, Py_ssize_t row, int b, Py_ssize_t old, Py_ssize_t new, double *out
) noexcept nogil:
    """How both functionals change, and by how much, if row b of the tile goes from old to new."""
    cdef double before[2]
    cdef double after[2]
    _worth(line, w, m, row, b, old, before)
    _worth(line, w, m, row, b, new, after)
    out[0], out[1] = after[0] - before[0], after[1] - before[1]
    out[2], out[3] = fabs(out[0]), fabs(out[1])


cdef inline void _list(Log *log, Py_ssize_t segment, double g, const double *change) noexcept nogil:
    """Note a change at g."""
    cdef Event *event
    if change[2] == 0.0 and change[3] == 0.0:
        return
    if log.n_events == log.room:
        event = <Event *> realloc(log.events, max(2 * log.room, <Py_ssize_t> 256) * sizeof(Event))
        if event == NULL:
            log.failed = True
            return
        log.events = event
        log.room = max(2 * log.room, <Py_ssize_t> 256)
    event = log.events + log.n_events
    event.g = g
    event.change[0], event.change[1] = change[0], change[1]
    event.segment = segment
    log.n_events += 1


cdef inline void _sum(Log *log, Py_ssize_t segment, const double *change) noexcept nogil:
    """Add a change to its bin."""
    cdef double *sums = log.sums + 4 * segment
    cdef int f
    for f in range(4):
        sums[f] += change[f]
    log.counts[segment] += (change[2] != 0.0) | (change[3] != 0.0)


cdef inline void _note(
    const Line *line, Walker *w, Log *log, Py_ssize_t m, Py_ssize_t group, Py_ssize_t row, int n, const int64_t *old,
    const int64_t *new, const int64_t *next
) noexcept nogil:
    """Note the change from old to new that each row of the tile is at: in its bin, and in the list if that is wanted.

    Where next is given and negative, there is no change.
    """
    cdef Py_ssize_t k = line.source.width, begin = group * (line.n_bins + 2)
    cdef mw_envelope *e = w.envelope
    cdef const uint8_t *wanted = NULL if line.wanted == NULL else line.wanted + begin
    cdef double change[4]
    cdef int at, b, picked = n
    mw_bins(line.grid[2 * group], line.grid[2 * group + 1], <int32_t> line.n_bins, e)
    if line.summed and line.table != NULL:
        mw_kinds(<int32_t> k, w.s.cell, old, new, e.kind)
        if next != NULL:
            mw_no_kind(next, e.kind)
        if log.kinds != NULL:
            mw_count_kinds(n, e, line.which, log.kinds + 8 * begin)
        else:
            mw_add(n, e, line.table + m * (k + 1) * k * k * 4, log.sums + 4 * begin, log.counts + begin)
    elif line.summed:
        for b in range(n):
            if next == NULL or next[b] >= 0:
                _change(line, w, m, row, b, old[b], new[b], change)
                _sum(log, begin + e.bin[b], change)
    if wanted == NULL:
        return
    picked = mw_pick(n, e.bin, wanted, line.hull[2 * group], line.hull[2 * group + 1], w.picked)
    for at in range(picked):
        b = w.picked[at]
        if next == NULL or next[b] >= 0:
            _change(line, w, m, row, b, old[b], new[b], change)
            _list(log, begin + e.bin[b], e.last[b], change)


cdef inline void _flat_lines(const Line *line, Walker *w, Py_ssize_t m, Py_ssize_t group, int k) noexcept nogil:
    """Of the classes of one slope, keep the lowest in each row: one line for all of them."""
    cdef int width = <int> line.source.width
    cdef const Py_ssize_t *order = line.order + m * width
    cdef const Py_ssize_t *which = line.line + m * width
    cdef const double *first = line.constant.first + group * line.constant.step
    cdef const double *offset = NULL
    cdef Py_ssize_t at, q, j
    cdef double *lowest
    cdef int64_t *owner
    if line.constant.offset != NULL:
        offset = line.constant.offset + group * line.constant.offset_step
    for at in range(k):
        q, j = which[at], order[at]
        lowest, owner = w.lowest + q * MW_STEP, w.owner + q * MW_STEP
        if at == 0 or which[at - 1] != q:
            w.low[q], w.own[q] = lowest, w.same + j * MW_STEP
            if offset != NULL:
                mw_line(w.s.tile + j * MW_STEP, first[j], offset[j], lowest)
            else:
                mw_dot(width, w.s.tile, first + j, width, lowest)
            continue
        if w.own[q] != owner:
            mw_fill(order[at - 1], owner)
            w.own[q] = owner
        if offset != NULL:
            mw_lower_line(w.s.tile + j * MW_STEP, first[j], offset[j], j, lowest, owner)
        else:
            mw_dot(width, w.s.tile, first + j, width, w.s.score)
            mw_lower(w.s.score, j, lowest, owner)
    if line.slope.offset == NULL:  # slopes of a full loss are per unit of the row's sum
        mw_total(width, w.s.tile, w.s.score)
        for q in range(line.n_lines[m]):
            mw_divide(w.s.score, w.lowest + q * MW_STEP)


cdef inline void _walk_flat(
    const Line *line, Walker *w, Log *log, Py_ssize_t m, Py_ssize_t group, Py_ssize_t row, int n
) noexcept nogil:
    """Walk rows whose lines have slopes that fall from one to the next, the same in every row: all rows in step."""
    cdef int lines = <int> line.n_lines[m], left = lines > 1, q
    cdef const double *steep = line.steep + m * line.source.width
    cdef mw_envelope *e = w.envelope
    if lines == 2:
        mw_cross(w.low[0], w.low[1], steep[0] - steep[1], e)
        _note(line, w, log, m, group, row, n, w.own[0], w.own[1], NULL)
        return
    mw_begin(w.low[0], w.own[0], steep[0], e)
    while left:
        mw_look(e)
        for q in range(1, lines):
            mw_meet(q, w.low[q], w.own[q], steep[q], e)
        mw_met(e)
        _note(line, w, log, m, group, row, n, e.code, e.next_code, e.next)
        left = mw_go(n, lines, e)


cdef inline Py_ssize_t _bin(const Line *line, Py_ssize_t group, double g) noexcept nogil:
    cdef double at = (g - line.grid[2 * group]) * line.grid[2 * group + 1]
    if at < 0.0:
        return 0
    return line.n_bins + 1 if at >= <double> line.n_bins else <Py_ssize_t> at + 1


cdef inline void _walk_general(
    const Line *line, Walker *w, Log *log, Py_ssize_t m, Py_ssize_t group, Py_ssize_t row, int k, int n
) noexcept nogil:
    """Walk rows whose lines have slopes of their own, one by one; w.first holds the classes at g = -inf."""
    cdef double noise = line.noise, nearest, last, crossing, h, s, sj, fall, least
    cdef double change[4]
    cdef Py_ssize_t segment
    cdef int b, j, current, target
    for b in range(n):
        current, last = <int> w.first[b], -INFINITY
        while True:
            h, s = w.height[current * MW_STEP + b], w.incline[current * MW_STEP + b]
            nearest, target, least = INFINITY, -1, INFINITY
            for j in range(k):
                sj = w.incline[j * MW_STEP + b]
                fall = s - sj
                if fall > noise:
                    crossing = (w.height[j * MW_STEP + b] - h) / fall
                    if crossing < nearest or (crossing == nearest and sj < least and crossing < INFINITY):
                        nearest, target, least = crossing, j, sj
            if target < 0:
                break
            last = max(nearest, last)
            segment = group * (line.n_bins + 2) + _bin(line, group, last)
            if line.summed or (line.wanted != NULL and line.wanted[segment]):
                _change(line, w, m, row, b, current, target, change)
                if line.summed:
                    _sum(log, segment, change)
                if line.wanted != NULL and line.wanted[segment]:
                    _list(log, segment, last, change)
            current = target


cdef inline void _first_general(const Line *line, Walker *w, int k, int n) noexcept nogil:
    """Class of each row at g = -inf: the line that rises most, the lowest of those."""
    cdef double noise = line.noise, h, s, hj, sj
    cdef int b, j
    for b in range(n):
        w.first[b], h, s = 0, w.height[b], w.incline[b]
        for j in range(1, k):
            hj, sj = w.height[j * MW_STEP + b], w.incline[j * MW_STEP + b]
            if sj > s + noise or (fabs(sj - s) <= noise and hj < h):
                w.first[b], h, s = j, hj, sj


cdef inline void _begin_walk(
    const Line *line, const Walker *w, Log *log, Py_ssize_t m, Py_ssize_t row, int n, const int64_t *first
) noexcept nogil:
    """Add what the rows are worth at g = -inf, or count them where equal ones are worth the same."""
    cdef Py_ssize_t k = line.source.width
    cdef int64_t *counts = log.first + m * (k + 1) * k
    cdef double *start = log.start + 2 * line.group[m]
    cdef double worth[2]
    cdef int b
    if line.labels != NULL and line.weight == NULL:
        if k == 2:
            mw_count_two(n, w.s.cell, first, counts)
        else:
            for b in range(n):
                counts[w.s.cell[b] + first[b]] += 1
        return
    for b in range(n):
        _worth(line, w, m, row, b, first[b], worth)
        start[0] += worth[0]
        start[1] += worth[1]


cdef inline void _walk_two(
    const Line *line, Walker *w, Log *log, Py_ssize_t m, Py_ssize_t group, Py_ssize_t row, int n
) noexcept nogil:
    """Walk rows of two classes and two lines, of which the probability of one is given and int8 labels are counted."""
    cdef const Source *source = line.source
    cdef const char *at = source.data + row * source.row_step + m * source.output_step
    cdef const char *codes = line.labels.data + row * line.labels.row_step + m * line.labels.output_step
    cdef const double *d = line.constant.first + group * line.constant.step
    cdef const double *v = line.constant.offset + group * line.constant.offset_step
    cdef const double *grid = line.grid + 2 * group
    cdef Py_ssize_t begin = group * (line.n_bins + 2)
    cdef int flip = <int> line.order[2 * m], picked, i, b
    cdef double fall = line.steep[2 * m] - line.steep[2 * m + 1]
    cdef mw_envelope *e = w.envelope
    cdef int64_t labels[3]
    cdef uint8_t which[3]
    cdef double change[4]
    if source.size == 4:
        mw_two_f32(at, source.row_step, n, d[0], v[0], d[1], v[1], flip, fall, grid[0], grid[1],
                   <int32_t> line.n_bins, e)
    else:
        mw_two_f64(at, source.row_step, n, d[0], v[0], d[1], v[1], flip, fall, grid[0], grid[1],
                   <int32_t> line.n_bins, e)
    if line.summed:
        for i in range(3):  # from class `flip` to the other
            labels[i] = 0
            which[i] = line.which[(2 * i + flip) * 2 + 1 - flip]
        mw_count_by_label(n, codes, line.labels.row_step, e.bin, which, log.kinds + 8 * begin, labels)
        for i in range(3):
            log.first[m * 6 + 2 * i + flip] += labels[i]
    if line.wanted == NULL:
        return
    picked = mw_pick(n, e.bin, line.wanted + begin, line.hull[2 * group], line.hull[2 * group + 1], w.picked)
    for i in range(picked):
        b = w.picked[i]
        w.s.cell[b] = ((<const int8_t *> (codes + b * line.labels.row_step))[0] + 1) * 2
        _change(line, w, m, row, b, flip, 1 - flip, change)
        _list(log, begin + e.bin[b], e.last[b], change)


cdef int _walk_rows(
    const Line *line, Log *log, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t first_output, Py_ssize_t last_output
) noexcept nogil:
    cdef Walker w
    cdef const Source *source = line.source
    cdef Py_ssize_t row = begin, m, group, width = source.width
    cdef int n, k
    if _allocate_walker(&w, line):
        return 1
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(first_output, last_output):
            group, k = line.group[m], <int> line.counts[m]
            if group < 0:
                continue
            if line.two:
                _walk_two(line, &w, log, m, group, row, n)
                continue
            _read(source, row, m, n, w.s.tile)
            if line.labels != NULL:
                _read_cells(line.labels, row, m, n, width, w.s.cell)
            else:
                _weigh(source, line.seen, line.weight, row, m, n, &w.s)
            if line.flat:
                _flat_lines(line, &w, m, group, k)
                if line.summed:
                    _begin_walk(line, &w, log, m, row, n, w.own[0])
                _walk_flat(line, &w, log, m, group, row, n)
            else:
                _scores(line.constant, group, <int> width, k, w.s.tile, w.height)
                _scores(line.slope, group, <int> width, k, w.s.tile, w.incline)
                _first_general(line, &w, k, n)
                if line.summed:
                    _begin_walk(line, &w, log, m, row, n, w.first)
                _walk_general(line, &w, log, m, group, row, k, n)
        row += n
    free(w.held)
    free(w.s.held)
    if line.n_bins:  # where everything is listed, it is sorted together
        _sort(log.events, log.n_events)
    return 1 if log.failed else 0


cdef inline bint _before(const Event *one, const Event *other) noexcept nogil:
    return one.segment < other.segment or (one.segment == other.segment and one.g < other.g)


cdef void _sort(Event *events, Py_ssize_t n) noexcept nogil:
    """Sort by segment and g: the parts do so side by side, and leave little to do for who puts them together."""
    cdef Event pivot, moved
    cdef Py_ssize_t i, j
    while n > 24:
        # The median of three, which for sorted input is the middle.
        i, j = n // 2, n - 1
        if _before(events + i, events):
            events[0], events[i] = events[i], events[0]
        if _before(events + j, events + i):
            events[i], events[j] = events[j], events[i]
            if _before(events + i, events):
                events[0], events[i] = events[i], events[0]
        pivot = events[i]
        i, j = 0, n - 1
        while i <= j:
            while _before(events + i, &pivot):
                i += 1
            while _before(&pivot, events + j):
                j -= 1
            if i <= j:
                events[i], events[j] = events[j], events[i]
                i += 1
                j -= 1
        if j + 1 < n - i:  # the smaller side by itself, so that the depth stays small
            _sort(events, j + 1)
            events += i
            n -= i
        else:
            _sort(events + i, n - i)
            n = j + 1
    for i in range(1, n):
        moved = events[i]
        j = i
        while j > 0 and _before(&moved, events + j - 1):
            events[j] = events[j - 1]
            j -= 1
        events[j] = moved


cdef class _Walk:
    """One pass along a line of losses: every argument as pointers, held while it runs."""
    cdef list kept
    cdef Line line
    cdef Source source, labels, seen
    cdef _Rules constant, slope
    cdef Py_ssize_t n_groups
    cdef object changes  # (8, 2): the changes that kinds make, where they are few

    def __init__(self, eta, codes, observed, weight, n_classes, group, constant, slope, worth, grid, n_bins, wanted):
        cdef _Held held = _Held(eta), held_seen
        cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(n_classes, dtype=np.intp)
        cdef const Py_ssize_t[::1] groups = np.ascontiguousarray(group, dtype=np.intp)
        cdef const double[::1] weights
        cdef const double[:, :, :, ::1] value = np.ascontiguousarray(worth, dtype=np.float64)
        cdef const double[:, ::1] places = np.ascontiguousarray(grid, dtype=np.float64)
        cdef const uint8_t[:, ::1] listed
        cdef int32_t[:, ::1] between
        self.kept = [held, counts, groups, value, places]
        self.source = held.source()
        self.line.source = &self.source
        self.line.labels = self.line.seen = NULL
        self.line.weight, self.line.wanted = NULL, NULL
        self.line.table, self.line.which = NULL, NULL
        self.changes = None
        if weight is not None:
            weights = np.ascontiguousarray(weight, dtype=np.float64)
            self.line.weight = &weights[0]
            self.kept.append(weights)
        self.constant, self.slope = _Rules([constant]), _Rules([slope])
        self.n_groups = places.shape[0]
        self.line.counts, self.line.group = &counts[0], &groups[0]
        self.line.constant, self.line.slope = self.constant.rules, self.slope.rules
        self.line.worth, self.line.grid, self.line.n_bins = &value[0, 0, 0, 0], &places[0, 0], n_bins
        if wanted is not None:
            listed = np.ascontiguousarray(wanted, dtype=np.uint8)
            self.line.wanted = &listed[0, 0]
            hull = np.full((self.n_groups, 2), (0, n_bins + 1), dtype=np.int32)
            if n_bins:
                hull[:, 0], hull[:, 1] = wanted.argmax(axis=1), n_bins + 1 - wanted[:, ::-1].argmax(axis=1)
            between = hull
            self.line.hull = &between[0, 0]
            self.kept += [listed, hull]
        self._slopes(slope, n_classes, group)
        if codes is not None:
            self._labels(_codes(codes), np.asarray(value), group, weight is None and n_bins > 0)
        elif observed is not None:
            held_seen = _Held(_mass(observed))
            self.seen = held_seen.source()
            self.line.seen = &self.seen
            self.kept.append(held_seen)

    cdef _slopes(self, slope, n_classes, group):
        cdef const Py_ssize_t[:, ::1] order, which
        cdef const double[:, ::1] steep
        cdef const Py_ssize_t[::1] n_lines
        slopes = constant_slopes(slope, self.source.positive)
        self.line.flat = slopes is not None
        if slopes is None:
            self.line.noise = slope_noise(slope)
        else:
            order, which, steep, n_lines = slope_lines(slopes, n_classes, group)
            self.line.order, self.line.line = &order[0, 0], &which[0, 0]
            self.line.steep, self.line.n_lines = &steep[0, 0], &n_lines[0]
            self.kept += [order, which, steep, n_lines]

    cdef bint is_two(self, n_classes, group):
        """Whether rows can be walked by the shortest way."""
        cdef Py_ssize_t m
        if not (self.source.positive and self.line.flat and self.line.which != NULL and self.labels.size == 1):
            return False
        for m in range(self.source.outputs):
            if self.line.group[m] >= 0 and self.line.n_lines[m] != 2:
                return False
        return self.line.constant.offset != NULL

    cdef _labels(self, codes, worth, group, alike):
        """Take labels; where all rows count alike, tabulate the changes."""
        cdef _Held held = _Held(codes)
        cdef const double[:, ::1] table
        cdef const uint8_t[::1] which
        self.labels = held.source()
        self.line.labels = &self.labels
        self.kept.append(held)
        if not alike or not self.line.flat or worth.size * worth.shape[2] > _LARGEST_TABLE:
            return
        changes = _numpy.change_table(worth)
        table = changes
        self.line.table = &table[0, 0]
        self.kept.append(table)
        found = _numpy.few_changes(changes.reshape(len(worth), -1, 4), group)
        if found is not None and self.source.rows * self.source.outputs < 1 << 31:
            which, self.changes = found
            self.line.which = &which[0]
            self.kept.append(which)


def changes(eta, codes, observed, weight, n_classes, group, constant, slope, worth, grid, n_bins, wanted=None, summed=True):
    """Follow decisions along a line of losses: bins of changes, and a list of those wanted; see the NumPy twin."""
    if not _ours(eta):
        return _numpy.changes(
            eta, codes, observed, weight, n_classes, group, constant, slope, worth, grid, n_bins, wanted, summed
        )
    cdef _Walk walk = _Walk(
        eta, codes, observed, weight, n_classes, group, constant, slope, worth, grid, n_bins, wanted
    )
    walk.line.summed = summed
    walk.line.two = walk.is_two(np.asarray(n_classes), group)
    cdef Py_ssize_t groups = walk.n_groups, segments = walk.n_groups * (n_bins + 2), part
    cdef Py_ssize_t rows = walk.source.rows, outputs = walk.source.outputs, width = walk.source.width
    cdef Py_ssize_t firsts = outputs * (width + 1) * width
    cdef bint few = walk.line.which != NULL
    cdef Cut cut = _cut(rows, rows * outputs * width, (4 if few else 5) * segments + firsts if summed else 1)
    # Groups of one output each keep their sums apart: outputs are shared out instead of rows, with one set of sums.
    cdef bint apart = groups >= 2 * _TOGETHER and len(np.unique(group[group >= 0])) == (group >= 0).sum()
    if apart:
        cut.parts = (outputs + _TOGETHER - 1) // _TOGETHER
        cut.threads = 1 if _forked or rows * outputs < _LEAST_WORK else min(<Py_ssize_t> mw_max_threads(), cut.parts)
    cdef Py_ssize_t copies = cut.parts if summed and not apart else 1
    start, first = np.zeros((copies, groups, 2)), np.zeros((copies, firsts), dtype=np.int64)
    sums = np.zeros((1 if few else copies, segments, 4))
    counts = np.zeros((1 if few else copies, segments), dtype=np.int64)
    kinds = np.zeros((copies if few else 1, segments if few else 1, 8), dtype=np.int32)
    cdef double[:, :, ::1] starts = start, totals = sums
    cdef int64_t[:, ::1] numbers = counts, begins = first
    cdef int32_t[:, :, ::1] tallies = kinds
    cdef Log *logs = <Log *> calloc(cut.parts, sizeof(Log))
    if logs == NULL:
        raise MemoryError
    cdef int failed = 0
    cdef Py_ssize_t copy
    for part in range(cut.parts):
        copy = part if copies > 1 else 0
        logs[part].start, logs[part].first = &starts[copy, 0, 0], &begins[copy, 0]
        if few:
            logs[part].kinds = &tallies[copy, 0, 0]
        else:
            logs[part].sums, logs[part].counts = &totals[copy, 0, 0], &numbers[copy, 0]
    if cut.parts == 1:
        with nogil:
            failed = _walk_rows(&walk.line, logs, 0, rows, 0, outputs)
    elif apart:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _walk_rows(
                &walk.line, logs + part, 0, rows, part * _TOGETHER, min((part + 1) * _TOGETHER, outputs)
            )
    else:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _walk_rows(
                &walk.line, logs + part, _begin(&cut, part), _begin(&cut, part + 1), 0, outputs
            )
    listed = _events(logs, cut.parts)
    free(logs)
    if failed:
        raise MemoryError
    begin = _in_order(start)
    if codes is not None and weight is None:
        _add_firsts(&walk.line, first[0] if copies == 1 else first.sum(axis=0), begin)
    shape = (groups, n_bins + 2)
    if few:
        if summed:
            _sum_kinds(tallies, walk.changes, numbers, totals)
        return begin, counts.reshape(shape), sums.reshape(*shape, 4), *listed
    return begin, counts.sum(axis=0).reshape(shape), _in_order(sums).reshape(*shape, 4), *listed


cdef void _add_firsts(const Line *line, const int64_t[::1] first, double[:, ::1] start):
    """Add what the rows that were counted at g = -inf are worth."""
    cdef Py_ssize_t cells = (line.source.width + 1) * line.source.width, m, at
    for m in range(line.source.outputs):
        if line.group[m] >= 0:
            for at in range(m * cells, (m + 1) * cells):
                start[line.group[m], 0] += first[at] * line.worth[2 * at]
                start[line.group[m], 1] += first[at] * line.worth[2 * at + 1]


cdef void _sum_kinds(
    const int32_t[:, :, ::1] kinds, const double[:, ::1] changes, int64_t[:, ::1] counts, double[:, :, ::1] sums
):
    """Turn the numbers of eight changes, part by part, into the number and the sums of all changes of each segment."""
    cdef Py_ssize_t segment, part, i
    cdef int64_t number
    with nogil:
        for segment in range(kinds.shape[1]):
            for i in range(8):
                number = 0
                for part in range(kinds.shape[0]):
                    number += kinds[part, segment, i]
                if number and (changes[i, 0] != 0.0 or changes[i, 1] != 0.0):
                    counts[0, segment] += number
                    sums[0, segment, 0] += number * changes[i, 0]
                    sums[0, segment, 1] += number * changes[i, 1]
                    sums[0, segment, 2] += number * fabs(changes[i, 0])
                    sums[0, segment, 3] += number * fabs(changes[i, 1])


cdef _events(Log *logs, Py_ssize_t parts):
    """Return the events of all parts in order, and free them."""
    cdef Py_ssize_t part, total = 0, done = 0, e
    for part in range(parts):
        total += logs[part].n_events
    segment, g, change = np.empty(total, dtype=np.intp), np.empty(total), np.empty((total, 2))
    cdef Py_ssize_t[::1] segments = segment
    cdef double[::1] points = g
    cdef double[:, ::1] steps = change
    for part in range(parts):
        for e in range(logs[part].n_events):
            segments[done] = logs[part].events[e].segment
            points[done] = logs[part].events[e].g
            steps[done, 0] = logs[part].events[e].change[0]
            steps[done, 1] = logs[part].events[e].change[1]
            done += 1
        free(logs[part].events)
    return segment, g, change


# ------------------------------------------------------------------------------------------------- reading and checks


def check_rows(eta, n_classes, tolerance):
    """Say whether all rows are probabilities; see the NumPy twin."""
    if not _ours(eta) or eta.size == 0 or (eta.ndim == 3 and (n_classes < eta.shape[2]).any()):
        return _numpy.check_rows(eta, n_classes, tolerance)
    if eta.flags.c_contiguous:  # every output is checked alike: one long column of them
        eta = eta.reshape(-1, 1) if eta.ndim == 2 else eta.reshape(-1, 1, eta.shape[2])
    cdef _Held held = _Held(eta)
    cdef Source source = held.source()
    cdef double off = tolerance
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs * source.width, 1)
    cdef Py_ssize_t part
    cdef int failed = 0
    if cut.parts == 1:
        with nogil:
            failed = _check_part(&source, off, 0, source.rows)
    else:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _check_part(&source, off, _begin(&cut, part), _begin(&cut, part + 1))
    return failed == 0


cdef int _check_part(const Source *source, double tolerance, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m, j
    cdef int n, fine = 1
    if _allocate(&s, source.width, False):
        return 1
    while row < end and fine:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read(source, row, m, n, s.tile)
            if source.positive:
                fine &= mw_within(n, s.tile + MW_STEP, 1.0)
                continue
            for j in range(source.width):
                fine &= mw_within(n, s.tile + j * MW_STEP, 2.0)
            fine &= mw_sums_to_one(n, <int> source.width, s.tile, s.score, tolerance)
        row += n
    free(s.held)
    return 0 if fine else 1


def encode(labels, n_classes, width):
    """Return labels that are codes already as small integers; see the NumPy twin."""
    cdef Py_ssize_t n = labels.size
    if labels.dtype not in _CODES or not labels.flags.c_contiguous or not labels.flags.aligned or n == 0:
        return _numpy.encode(labels, n_classes, width)
    if (n_classes != n_classes[0]).any():
        return _numpy.encode(labels, n_classes, width)
    dtype = np.dtype(np.int8 if width <= 127 else np.int32)
    out = labels if labels.dtype == dtype else np.empty(labels.shape, dtype=dtype)
    cdef _Held held = _Held(labels), held_out = _Held(out)
    cdef const char *source = <const char *> held.buffer.buf
    cdef char *into = NULL if out is labels else <char *> held_out.buffer.buf
    cdef int size = <int> held.buffer.itemsize, out_size = <int> held_out.buffer.itemsize
    cdef int64_t k = n_classes[0]
    cdef Cut cut = _cut(n, n, 1)
    cdef Py_ssize_t part
    cdef int outside = 0
    if cut.parts == 1:
        with nogil:
            outside = _encode_part(source, size, into, out_size, k, 0, n)
    else:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            outside += _encode_part(source, size, into, out_size, k, _begin(&cut, part), _begin(&cut, part + 1))
    return None if outside else out


cdef int _encode_part(
    const char *source, int size, char *into, int out_size, int64_t k, Py_ssize_t begin, Py_ssize_t end
) noexcept nogil:
    """Whether a label lies outside 0..k-1; copy them to codes of out_size bytes, if into is given."""
    cdef int64_t low = 0, high = 0
    cdef Py_ssize_t at = begin, n
    while at < end:  # bit by bit, so that a label is in cache when it is copied
        n = min(<Py_ssize_t> 4096, end - at)
        if size == 1:
            mw_range_i8(source + at, n, &low, &high)
        elif size == 4:
            mw_range_i32(source + at * 4, n, &low, &high)
        else:
            mw_range_i64(source + at * 8, n, &low, &high)
        if into != NULL:
            if size == 1:
                mw_narrow_8_32(source + at, n, into + at * 4)
            elif size == 4:
                mw_narrow_32_8(source + at * 4, n, into + at)
            elif out_size == 1:
                mw_narrow_64_8(source + at * 8, n, into + at)
            else:
                mw_narrow_64_32(source + at * 8, n, into + at * 4)
        at += n
    return low < 0 or high >= k


def tally(codes, weight, width):
    """Sum the weights of each true class of each output; see the NumPy twin."""
    codes = _codes(codes)
    cdef _Held held = _Held(codes)
    cdef Source source = held.source()
    cdef const double[::1] weights = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    cdef const double *w = NULL if weight is None or source.rows == 0 else &weights[0]
    cdef Py_ssize_t kept = source.outputs * (width + 1), k = width
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs, kept)
    partial = np.zeros((cut.parts, kept), dtype=np.int64 if weight is None else np.float64)
    cdef _Held held_sums = _Held(partial)
    cdef char *sums = <char *> held_sums.buffer.buf
    cdef Py_ssize_t part
    if cut.parts == 1:
        with nogil:
            _tally_part(&source, w, k, 0, source.rows, sums)
    else:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            _tally_part(&source, w, k, _begin(&cut, part), _begin(&cut, part + 1), sums + part * kept * 8)
    total = partial[0] if cut.parts == 1 else _in_order(partial)
    return total.reshape(source.outputs, width + 1)[:, 1:].astype(np.float64)


cdef void _tally_part(
    const Source *source, const double *weight, Py_ssize_t k, Py_ssize_t begin, Py_ssize_t end, char *sums
) noexcept nogil:
    cdef int64_t cell[MW_ROWS]
    cdef int64_t none[MW_ROWS]
    cdef int64_t two[6]
    cdef int64_t *number
    cdef double *total
    cdef Py_ssize_t row = begin, m
    cdef int n, b
    if k == 2 and weight == NULL and source.size == 1 and _tally_bytes(source, begin, end, <int64_t *> sums):
        return
    for b in range(MW_ROWS):
        none[b] = 0
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            if weight != NULL:
                _read_cells(source, row, m, n, 1, cell)
                total = <double *> sums + m * (k + 1)
                for b in range(n):
                    total[cell[b]] += weight[row + b]
                continue
            number = <int64_t *> sums + m * (k + 1)
            if k == 2:
                _read_cells(source, row, m, n, 2, cell)
                two[2] = two[3] = two[4] = two[5] = 0
                mw_count_two(n, cell, none, two)
                number[1] += two[2]
                number[2] += two[4]
                continue
            _read_cells(source, row, m, n, 1, cell)
            for b in range(n):
                number[cell[b]] += 1
        row += n


cdef bint _tally_bytes(const Source *source, Py_ssize_t begin, Py_ssize_t end, int64_t *sums) noexcept nogil:
    """Count labels 0 and 1 in bytes that lie side by side, those of a row or all of one output, many at once."""
    cdef bint alone = source.outputs == 1 and source.row_step == 1
    cdef Py_ssize_t width = _SIDE_BY_SIDE if alone else source.outputs, row = begin, m, n
    cdef int32_t *pair
    if not alone and (source.output_step != 1 or source.outputs < 8):
        return False
    pair = <int32_t *> calloc(2 * width, sizeof(int32_t))
    if pair == NULL:
        return False
    while row < end:
        n = min(width, end - row) if alone else width
        mw_tally_two(n, <const int8_t *> (source.data + row * source.row_step), pair, pair + width)
        row += n if alone else 1
    for m in range(width):
        sums[1 if alone else 3 * m + 1] += pair[m]
        sums[2 if alone else 3 * m + 2] += pair[width + m]
    free(pair)
    return True
