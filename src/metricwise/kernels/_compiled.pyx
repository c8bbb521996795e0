# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Compiled twins of the row passes: the same functions as `_numpy`, over threads, without a copy of the big array.

Rows are cut into parts by their number alone, each part keeps sums of its own, and the parts are added in order: the
result does not depend on the number of threads. Within a part, tiles of rows are read class by class and worked on in
cache by the loops of `_loops.h`, recalibrated first by those of `_link.h` where there is a link. What the twin handles and this does not (float16, swapped bytes, unaligned arrays) is
passed on to the twin. The passes are in the files that are included at the end.
"""

import os

import numpy as np

from . import _drawing, _label_sets, _newton, _numpy, _segments
from ._numpy import constant_slopes, slope_lines, slope_noise

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs, log as c_log, sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

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
    void mw_use_threads(int n_threads)
    int mw_has_openmp()
    double *mw_aligned(size_t numbers, void **held)
    void mw_load_f32(const char *base, ptrdiff_t row, ptrdiff_t cls, int n, int k, double *tile)
    void mw_load_f64(const char *base, ptrdiff_t row, ptrdiff_t cls, int n, int k, double *tile)
    void mw_store(int n, int k, const double *tile, ptrdiff_t row, double *out)
    void mw_complement(int n, double *tile, const double *positive)
    void mw_cells_i8(const char *base, ptrdiff_t row, int n, int64_t k, int64_t *cell)
    void mw_cells_i32(const char *base, ptrdiff_t row, int n, int64_t k, int64_t *cell)
    void mw_cells_i64(const char *base, ptrdiff_t row, int n, int64_t k, int64_t *cell)
    void mw_line(const double *eta, double d, double v, double *out)
    void mw_line_of(const double *eta, const double *total, double d, double v, double *out)
    void mw_dot(int k, const double *tile, const double *column, ptrdiff_t step, double *out)
    void mw_total(int width, const double *tile, double *total)
    void mw_divide(const double *total, double *out)
    void mw_fill(int64_t value, int64_t *out)
    void mw_lower_line(const double *eta, double d, double v, int64_t j, double *best, int64_t *code)
    void mw_lower_line_of(const double *eta, const double *total, double d, double v, int64_t j, double *best,
                          int64_t *code)
    void mw_lower(const double *score, int64_t j, double *best, int64_t *code)
    void mw_decide_diagonal(int k, const double *tile, const double *d, const double *v, double *best, int64_t *code)
    void mw_decide_offset(int k, const double *tile, const double *total, const double *d, const double *v,
                          double *best, int64_t *code)
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
    void mw_worth(int k, const double *mass, const double *worth, const int64_t *code, double *one, double *other)
    double mw_sum(int n, const double *values)
    void mw_add_changes(int n, const mw_envelope *e, const int64_t *next, const double *before, const double *after,
                        double *sums, int64_t *counts)
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

cdef extern from "_outputs.h" nogil:
    ctypedef struct mw_lanes:
        double d0[MW_ROWS]
        double v0[MW_ROWS]
        double d1[MW_ROWS]
        double v1[MW_ROWS]
        double fall[MW_ROWS]
        double begin[MW_ROWS]
        double per_unit[MW_ROWS]
        int64_t flip[MW_ROWS]
        int32_t segment[MW_ROWS]
        int32_t low[MW_ROWS]
        int32_t high[MW_ROWS]
        int32_t kind[MW_ROWS]
        int32_t zeros[MW_ROWS]
        int32_t ones[MW_ROWS]
        int8_t codes[MW_ROWS]
    void mw_load_lanes_f32(const char *base, ptrdiff_t row, const char *codes, ptrdiff_t code_row, int rows, int m,
                           mw_lanes *o)
    void mw_load_lanes_f64(const char *base, ptrdiff_t row, const char *codes, ptrdiff_t code_row, int rows, int m,
                           mw_lanes *o)
    void mw_cross_lanes(int n, const mw_lanes *o, int divided, int32_t n_bins, double *g, int32_t *segment)
    void mw_count_lanes(int n, mw_lanes *o, const int32_t *segment, const uint8_t *which, int32_t *counts)
    int mw_pick_lanes(int n, mw_lanes *o, const int32_t *segment, const uint8_t *wanted, int32_t *picked)
    void mw_decide_outputs_f32(const char *base, const int8_t *codes, int m, const double *d0, const double *v0,
                               const double *d1, const double *v1, int64_t *zeros, int64_t *ones)
    void mw_decide_outputs_f64(const char *base, const int8_t *codes, int m, const double *d0, const double *v0,
                               const double *d1, const double *v1, int64_t *zeros, int64_t *ones)

cdef extern from "_link.h" nogil:
    void mw_link(int k, int width, double t, const double *bias, double floor, int positive, double *tile)

cdef extern from "_partition.h" nogil:
    void mw_logits(int n, int k, double floor, double *tile, double *out, ptrdiff_t step)
    int mw_weighing(ptrdiff_t *row, ptrdiff_t end, const double *weight, const uint8_t *taken, int32_t *at, double *w)
    void mw_gather(int n, const double *source, const int32_t *at, double *out)
    void mw_four_products(int n, const double *x, const double *y, double *out)
    void mw_product_and_sum(int n, const double *x, const double *y, double *product, double *sum)
    void mw_softmax(int n, int k, const double *z, double t, const double *bias, const uint8_t *shown, double *p,
                    double *norm, double *mean)
    void mw_logistic(int n, const double *z, double t, double bias, double *p, double *norm, double *mean)
    void mw_shares(int n, const double *z, const double *w, const double *p, const double *mean, double *share,
                   double *away)

cdef extern from "_segments.h" nogil:
    enum: MW_POINTS
    enum: MW_FEW_CLASSES
    ctypedef struct mw_ratio:
        double above[4]
        double below[4]
        double empty
        double zero_division
    void mw_ratio_means(int n, int k, const double *length, const double *start, const double *step,
                        const double *weight, const double *prior, double total, const mw_ratio *of, double *out)

cdef extern from "_labels.h" nogil:
    enum: MW_COVERAGE
    enum: MW_GAIN
    enum: MW_DAMPED_GAIN
    enum: MW_SLOPE
    enum: MW_DAMPED_SLOPE
    ctypedef struct mw_labels:
        const void *values
        const void *indices
        const int64_t *indptr
        const int64_t *rows
        const double *weight
        int64_t n_labels
        int wide_values
        int wide_indices
    ctypedef struct mw_label_rule:
        const double *scale
        const double *offset
        ptrdiff_t scale_step
        ptrdiff_t offset_step
        const int64_t *fill
        ptrdiff_t n_fill
        int64_t low
        int64_t high
    ctypedef struct mw_label_scratch:
        void *held
        int64_t *picked
    ctypedef struct mw_label_state:
        int kind
        double numerator[4]
        double denominator[4]
        double total
        const double *factor
        const double *true_rows
        const double *weight
        double *tp
        double *predicted
        double *table
    int64_t mw_label_row(const mw_labels *b, ptrdiff_t i)
    int64_t mw_label_of(const mw_labels *b, int64_t begin, int64_t code)
    int mw_label_allocate(mw_label_scratch *s, size_t longest, size_t most)
    ptrdiff_t mw_predict(const mw_labels *b, const mw_label_rule *r, int64_t row, mw_label_scratch *s)
    int mw_label_check(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, double low, double high, int64_t *where)
    void mw_label_mark(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, const int64_t *true_begin,
                       const void *true_labels, int wide)
    void mw_calibrate_f32(ptrdiff_t n, const float *v, double t, double bias, double floor, float *out)
    void mw_calibrate_f64(ptrdiff_t n, const double *v, double t, double bias, double floor, double *out)
    void mw_label_sums(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, double *sums)
    void mw_label_count(const mw_labels *b, const mw_label_rule *r, ptrdiff_t first, ptrdiff_t last,
                        mw_label_scratch *s, double *sums)
    void mw_refresh(const mw_label_state *s, int64_t m)
    void mw_label_ascend(const mw_labels *b, const mw_label_rule *r, ptrdiff_t n_rows, const mw_label_state *state,
                         mw_label_scratch *s, int64_t *chosen)
    void mw_label_true(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, int64_t *counts)
    void mw_label_thresholds(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, int64_t *next, double *value)
    ctypedef struct mw_thresholds:
        pass
    void mw_sort_thresholds(int64_t first, int64_t last, const int64_t *label_ptr, double *value, int32_t *bins,
                            mw_thresholds *thresholds)
    void mw_label_sweep(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, const mw_thresholds *thresholds,
                        const double *value, const int32_t *bins, double *sums)

cdef extern from "_label_sets.h" nogil:
    ctypedef struct mw_label_entries:
        const char *values
        int value_size
        const char *indices
        int index_size
        const double *factor
    ctypedef struct mw_set_metric:
        double beta2, zero_division
        int jaccard
    ctypedef struct mw_set_room:
        void *held
    int mw_set_allocate(mw_set_room *room, ptrdiff_t longest, double rate, double beta2)
    int64_t mw_set_size(const mw_label_entries *entries, ptrdiff_t begin, ptrdiff_t n, const mw_set_metric *metric,
                        double rate, ptrdiff_t low, ptrdiff_t high, mw_set_room *room)
    double mw_set_value(const mw_label_entries *entries, ptrdiff_t begin, ptrdiff_t n, const mw_set_metric *metric,
                        double rate, ptrdiff_t size, mw_set_room *room)
    void mw_set_labels(const mw_label_entries *entries, ptrdiff_t begin, ptrdiff_t n, ptrdiff_t size, double *p,
                       double *heap, char *out, int out_size, ptrdiff_t at)

cdef Py_ssize_t _MOST_PARTS = 16  # and so threads
cdef Py_ssize_t _PART_WORK = 1 << 17  # numbers that a part should at least read
cdef Py_ssize_t _LEAST_WORK = 1 << 19  # below this a pass is over before another thread is awake
cdef Py_ssize_t _LARGEST_TABLE = 1 << 14  # entries; beyond, changes are computed one by one
cdef Py_ssize_t _TOGETHER = 8  # outputs that a thread takes at a time: their float64 fill a line of the cache
cdef Py_ssize_t _SIDE_BY_SIDE = 1024  # bytes that are counted together
cdef Py_ssize_t _MOST_COUNTED = <Py_ssize_t> 1 << 31  # rows that are counted in numbers of 32 bits
cdef int64_t _MOST_THRESHOLDS = <int64_t> 1 << 31  # of a label, whose positions are kept in 32 bits
cdef bint _forked = False


def _after_fork():
    """A child of a process that has run threads has none of them, and the runtime does not know: go on alone."""
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def use_threads(int n_threads):
    """Let passes that the calling thread makes from now on use so many threads."""
    mw_use_threads(n_threads)


def max_threads():
    """Return how many threads a large pass would use now."""
    return 1 if _forked else mw_max_threads()


def has_openmp():
    """Say whether the passes were compiled with threads."""
    return bool(mw_has_openmp())


include "_arrays.pxi"
include "_counting.pxi"
include "_walking.pxi"
include "_outputs.pxi"
include "_changes.pxi"
include "_reading.pxi"
include "_partition.pxi"
include "_newton.pxi"
include "_drawing.pxi"
include "_labels.pxi"
include "_label_sets.pxi"
include "_segments.pxi"
include "_few_rows.pxi"
