# Best label sets of rows, for metrics that are averaged over rows; part of `_compiled.pyx`.

cdef object _LABELS = frozenset((np.dtype(np.int32), np.dtype(np.int64)))
cdef Py_ssize_t _ENTRY_WORK = 16  # an entry of a row takes as long as so many numbers that are read


cdef bint _our_entries(values, indices):
    """Whether this module reads such entries; the twin reads all."""
    if not (_ours(values) and values.flags.c_contiguous):
        return False
    return indices is None or indices.dtype in _LABELS and indices.flags.aligned and indices.flags.c_contiguous


cdef struct LabelRows:
    mw_label_entries entries
    const int64_t *indptr
    const int64_t *rows  # those that are read; NULL for all
    const double *rate  # of missing labels
    Py_ssize_t rate_step  # 0 where all rows have the same
    double highest_rate
    Py_ssize_t number, longest
    Cut cut


cdef list _put_rows(LabelRows *source, values, indices, indptr, rows, factor, missing):
    """Let a source point to these arrays; returns what has to be held meanwhile."""
    cdef _Held entries = _Held(values), labels
    cdef const int64_t[::1] begin = np.ascontiguousarray(indptr, dtype=np.int64), read
    cdef const double[::1] factors, rates = np.ascontiguousarray(np.atleast_1d(missing), dtype=np.float64)
    kept = [entries, begin, rates]
    _label_sets.check_missing(np.asarray(missing, dtype=np.float64), begin.shape[0] - 1)
    source.entries.values, source.entries.value_size = <const char *> entries.buffer.buf, <int> entries.buffer.itemsize
    source.entries.indices, source.entries.index_size, source.entries.factor = NULL, 0, NULL
    if indices is not None:
        labels = _Held(indices)
        source.entries.indices = <const char *> labels.buffer.buf
        source.entries.index_size = <int> labels.buffer.itemsize
        kept.append(labels)
    if factor is not None:
        factors = np.ascontiguousarray(factor, dtype=np.float64)
        source.entries.factor = &factors[0]
        kept.append(factors)
    source.indptr, source.rows = &begin[0], NULL
    length = np.diff(begin)
    if rows is not None:
        read = np.ascontiguousarray(rows, dtype=np.int64)
        source.rows = &read[0]
        length = length[read]
        kept.append(read)
    source.rate, source.rate_step, source.highest_rate = &rates[0], min(np.ndim(missing), 1), np.max(rates, initial=0.0)
    source.number, source.longest = len(length), length.max(initial=0)
    source.cut = _cut(source.number, _ENTRY_WORK * (<Py_ssize_t> length.sum() + source.number), 1)
    return kept


cdef inline Py_ssize_t _row_of(const LabelRows *source, Py_ssize_t i) noexcept nogil:
    return i if source.rows == NULL else source.rows[i]


cdef mw_set_metric _set_metric(beta2, jaccard, zero_division):
    cdef mw_set_metric metric
    metric.beta2, metric.jaccard, metric.zero_division = beta2, bool(jaccard), zero_division
    return metric


def label_set_sizes(values, indices, indptr, rows, beta2, jaccard, zero_division, missing, low, high, factor):
    """Return how many of its most probable labels each row predicts; see the NumPy twin."""
    if not _our_entries(values, indices):
        return _numpy.label_set_sizes(
            values, indices, indptr, rows, beta2, jaccard, zero_division, missing, low, high, factor
        )
    cdef LabelRows source
    cdef list held = _put_rows(&source, values, indices, indptr, rows, factor, missing)
    cdef mw_set_metric metric = _set_metric(beta2, jaccard, zero_division)
    cdef Py_ssize_t least = low, most = high, part
    cdef int failed = 0
    out = np.empty(source.number, dtype=np.int64)
    cdef int64_t[::1] sizes = out
    for part in prange(source.cut.parts, nogil=True, schedule="dynamic", num_threads=source.cut.threads):
        failed += _sizes_part(&source, &metric, least, most, part, &sizes[0])
    if failed:
        raise MemoryError
    return out


cdef int _sizes_part(
    const LabelRows *source, const mw_set_metric *metric, Py_ssize_t low, Py_ssize_t high, Py_ssize_t part, int64_t *out
) noexcept nogil:
    cdef mw_set_room room
    cdef Py_ssize_t i, row, begin
    if mw_set_allocate(&room, source.longest, source.highest_rate, 1.0 if metric.jaccard else metric.beta2):
        return 1
    for i in range(_begin(&source.cut, part), _begin(&source.cut, part + 1)):
        row = _row_of(source, i)
        begin = source.indptr[row]
        out[i] = mw_set_size(
            &source.entries, begin, source.indptr[row + 1] - begin, metric, source.rate[row * source.rate_step],
            low, high, &room
        )
    free(room.held)
    return 0


def label_set_values(values, indices, indptr, rows, sizes, beta2, jaccard, zero_division, missing, factor):
    """Return the expected value of each row at a size; see the NumPy twin."""
    if not _our_entries(values, indices):
        return _numpy.label_set_values(
            values, indices, indptr, rows, sizes, beta2, jaccard, zero_division, missing, factor
        )
    cdef LabelRows source
    cdef list held = _put_rows(&source, values, indices, indptr, rows, factor, missing)
    cdef mw_set_metric metric = _set_metric(beta2, jaccard, zero_division)
    cdef const int64_t[::1] size = np.ascontiguousarray(sizes, dtype=np.int64)
    cdef Py_ssize_t part
    cdef int failed = 0
    _label_sets.check_sizes(sizes, source.number)
    out = np.empty(source.number)
    cdef double[::1] value = out
    for part in prange(source.cut.parts, nogil=True, schedule="dynamic", num_threads=source.cut.threads):
        failed += _values_part(&source, &metric, &size[0], part, &value[0])
    if failed:
        raise MemoryError
    return out


cdef int _values_part(
    const LabelRows *source, const mw_set_metric *metric, const int64_t *size, Py_ssize_t part, double *out
) noexcept nogil:
    cdef mw_set_room room
    cdef Py_ssize_t i, row, begin
    if mw_set_allocate(&room, source.longest, source.highest_rate, 1.0 if metric.jaccard else metric.beta2):
        return 1
    for i in range(_begin(&source.cut, part), _begin(&source.cut, part + 1)):
        row = _row_of(source, i)
        begin = source.indptr[row]
        out[i] = mw_set_value(
            &source.entries, begin, source.indptr[row + 1] - begin, metric, source.rate[row * source.rate_step],
            size[i], &room
        )
    free(room.held)
    return 0


def label_set_choose(values, indices, indptr, n_labels, rows, sizes, factor):
    """Return the most probable labels of each row; see the NumPy twin."""
    if not _our_entries(values, indices):
        return _numpy.label_set_choose(values, indices, indptr, n_labels, rows, sizes, factor)
    cdef LabelRows source
    cdef list held = _put_rows(&source, values, indices, indptr, rows, factor, 0.0)
    _label_sets.check_sizes(sizes, source.number)
    out_ptr = np.zeros(source.number + 1, dtype=np.int64)
    np.cumsum(np.minimum(sizes, n_labels), out=out_ptr[1:])
    out = np.empty(out_ptr[source.number], dtype=np.int64 if indices is None else indices.dtype)
    cdef _Held held_out = _Held(out)
    cdef const int64_t[::1] begin = out_ptr
    cdef char *labels = <char *> held_out.buffer.buf
    cdef int label_size = <int> held_out.buffer.itemsize, failed = 0
    cdef Py_ssize_t part
    for part in prange(source.cut.parts, nogil=True, schedule="dynamic", num_threads=source.cut.threads):
        failed += _choose_part(&source, &begin[0], part, labels, label_size)
    if failed:
        raise MemoryError
    return out_ptr, out


cdef int _choose_part(
    const LabelRows *source, const int64_t *out_ptr, Py_ssize_t part, char *labels, int label_size
) noexcept nogil:
    cdef Py_ssize_t i, row, begin
    cdef double *p = <double *> malloc(2 * (source.longest + 1) * sizeof(double))
    if p == NULL:
        return 1
    for i in range(_begin(&source.cut, part), _begin(&source.cut, part + 1)):
        row = _row_of(source, i)
        begin = source.indptr[row]
        mw_set_labels(
            &source.entries, begin, source.indptr[row + 1] - begin, out_ptr[i + 1] - out_ptr[i], p,
            p + source.longest + 1, labels, label_size, out_ptr[i]
        )
    free(p)
    return 0
