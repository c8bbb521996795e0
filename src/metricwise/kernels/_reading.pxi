# Probabilities checked, labels encoded and counted; part of `_compiled.pyx`.

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
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        failed += _check_part(&source, off, _begin(&cut, part), _begin(&cut, part + 1))
    return failed == 0


cdef int _check_part(const Source *source, double tolerance, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m, j
    cdef int n, fine = 1
    if _allocate(&s, source.width, False, False):
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
    dtype = np.dtype(_numpy.code_type(width))
    out = labels if labels.dtype == dtype else np.empty(labels.shape, dtype=dtype)
    cdef _Held held = _Held(labels), held_out = _Held(out)
    cdef const char *source = <const char *> held.buffer.buf
    cdef char *into = NULL if out is labels else <char *> held_out.buffer.buf
    cdef int size = <int> held.buffer.itemsize, out_size = <int> held_out.buffer.itemsize
    cdef int64_t k = n_classes[0]
    cdef Cut cut = _cut(n, n, 1)
    cdef Py_ssize_t part
    cdef int outside = 0
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
    if weight is not None and weight.ndim == 2:
        return np.stack([tally(codes, one, width) for one in weight])
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
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        _tally_part(&source, w, k, _begin(&cut, part), _begin(&cut, part + 1), sums + part * kept * 8)
    total = partial[0] if cut.parts == 1 else _in_order(partial)
    return total.reshape(source.outputs, width + 1)[:, 1:].astype(np.float64)


cdef void _tally_part(
    const Source *source, const double *weight, Py_ssize_t k, Py_ssize_t begin, Py_ssize_t end, char *sums
) noexcept nogil:
    cdef int64_t cell[MW_ROWS]
    cdef int64_t *number
    cdef double *total
    cdef Py_ssize_t row = begin, m
    cdef int n, b
    if k == 2 and weight == NULL and source.size == 1 and _tally_bytes(source, begin, end, <int64_t *> sums):
        return
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read_cells(source, row, m, n, 1, cell)
            if weight != NULL:
                total = <double *> sums + m * (k + 1)
                for b in range(n):
                    total[cell[b]] += weight[row + b]
                continue
            number = <int64_t *> sums + m * (k + 1)
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
    if end - begin >= _MOST_COUNTED:
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
