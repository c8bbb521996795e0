# Decisions counted against labels or probabilities; part of `_compiled.pyx`.

# ----------------------------------------------------------------------------------------------------------- counting

cdef Py_ssize_t _WIDE_TABLE = 100  # classes, from which on a copy of all tables costs more than a call for each


def count_labels(block, losses):
    """Count true against predicted classes for several losses in one pass; see the NumPy twin."""
    eta, n_classes, codes, weight, _, link, _ = block
    if not _ours(eta):
        return _numpy.count_labels(block, losses)
    cdef _Held held = _Held(eta), held_codes = _Held(_codes(codes))
    cdef Source source = held.source(), labels = held_codes.source()
    source.width = block.width
    cdef list linked = _put_link(&source, link, n_classes)
    cdef _Rules rules = _Rules(losses)
    cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(block.decisions, dtype=np.intp)
    cdef const double[:, ::1] weights = _weights(weight)
    cdef Py_ssize_t n_weights = 1 if weight is None else weights.shape[0]
    cdef const double *w = NULL if weight is None or source.rows == 0 or n_weights == 0 else &weights[0, 0]
    cdef Py_ssize_t k = source.width
    cdef Py_ssize_t kept = n_weights * rules.number * source.outputs * (k + 1) * k
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs * k, kept)
    if cut.parts > 1 and kept > n_weights * rules.number * source.rows * source.outputs:
        return _numpy.count_decided(block, [decide(block, loss) for loss in losses])  # less than the parts would keep
    # Weights are summed as float64, rows without as integers: both have 8 bytes.
    partial = np.zeros((cut.parts, kept), dtype=np.int64 if weight is None else np.float64)
    cdef _Held held_sums = _Held(partial)
    cdef char *sums = <char *> held_sums.buffer.buf
    cdef Py_ssize_t part
    cdef int failed = 0
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        failed += _count_rows(
            &source, &labels, w, n_weights, &counts[0], rules.rules, rules.number, rules.plain, _begin(&cut, part),
            _begin(&cut, part + 1), sums + part * kept * 8
        )
    if failed:
        raise MemoryError
    total = partial[0] if cut.parts == 1 else _in_order(partial)
    total = total.reshape(n_weights, rules.number, source.outputs, k + 1, k)[:, :, :, 1:].astype(np.float64)
    return _numpy._as_weighted(block, total)


cdef int _count_rows(
    const Source *source, const Source *labels, const double *weight, Py_ssize_t n_weights, const Py_ssize_t *counts,
    const Rule *rules, Py_ssize_t n_rules, bint plain, Py_ssize_t begin, Py_ssize_t end, char *sums
) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m, r, q, k = source.width, size = (source.width + 1) * source.width
    cdef int n, b
    cdef int64_t *number
    cdef double *total
    if _counts_outputs(source, labels, weight, counts, rules, n_rules):
        return _count_outputs(source, labels, rules, n_rules, begin, end, <int64_t *> sums)
    if _allocate(&s, k, False, not (plain or source.positive)):
        return 1
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read_tile(source, row, m, n, &s)
            _read_cells(labels, row, m, n, k, s.cell)
            for r in range(n_rules):
                if (
                    k == 2 and weight == NULL and rules[r].offset != NULL and counts[m] == 2
                    and (rules[r].plain or source.positive)
                ):
                    mw_decide_and_count_two(
                        n, s.tile, rules[r].first + m * rules[r].step, rules[r].offset + m * rules[r].offset_step, s.cell,
                        <int64_t *> sums + (r * source.outputs + m) * size
                    )
                    continue
                _decide(rules + r, m, <int> k, <int> counts[m], &s)
                if weight != NULL:
                    for q in range(n_weights):
                        total = <double *> sums + ((q * n_rules + r) * source.outputs + m) * size
                        for b in range(n):
                            total[s.cell[b] + s.code[b]] += weight[q * source.rows + row + b]
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


def count_expected(block, losses):
    """Sum probabilities of the true class against predicted classes; see the NumPy twin."""
    eta, n_classes, _, weight, observed, link, _ = block
    if not _ours(eta):
        return _numpy.count_expected(block, losses)
    cdef _Held held = _Held(eta), held_mass
    cdef Source source = held.source(), mass
    source.width = block.width
    cdef list linked = _put_link(&source, link, n_classes)
    cdef Source *seen = NULL
    if observed is not None:
        held_mass = _Held(_mass(observed))
        mass = held_mass.source()
        seen = &mass
    cdef _Rules rules = _Rules(losses)
    cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(block.decisions, dtype=np.intp)
    cdef const double[:, ::1] weights = _weights(weight)
    cdef Py_ssize_t n_weights = 1 if weight is None else weights.shape[0]
    cdef const double *w = NULL if weight is None or source.rows == 0 or n_weights == 0 else &weights[0, 0]
    cdef Py_ssize_t k = source.width
    cdef Py_ssize_t kept = n_weights * rules.number * source.outputs * k * k
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs * k, kept)
    partial = np.zeros((cut.parts, kept))
    cdef double[:, ::1] sums = partial
    cdef Py_ssize_t part
    cdef int failed = 0
    if kept == 0:
        return _numpy.count_expected(block, losses)
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        failed += _expect_rows(
            &source, seen, w, n_weights, &counts[0], rules.rules, rules.number, rules.plain, _begin(&cut, part),
            _begin(&cut, part + 1), &sums[part, 0]
        )
    if failed:
        raise MemoryError
    total = partial[0] if cut.parts == 1 else _in_order(partial)
    # Kept by predicted class, whose sums over the true classes are then neighbours: transposed one by one.
    total = total.reshape(n_weights, rules.number, source.outputs, k, k)
    if k > _WIDE_TABLE:
        for matrix in total.reshape(-1, k, k):
            matrix[...] = matrix.T.copy()
    else:
        total = np.ascontiguousarray(np.moveaxis(total, 4, 3))
    return _numpy._as_weighted(block, total)


def _weights(weight):
    """Weights as float64 of shape (R, N), or None."""
    return None if weight is None else np.ascontiguousarray(np.atleast_2d(weight), dtype=np.float64)


def _in_order(partial):
    """Add the parts to the first, one after the other, which NumPy's sum over a long axis does not promise."""
    total = partial[0]
    for part in partial[1:]:
        total += part
    return total


cdef int _expect_rows(
    const Source *source, const Source *seen, const double *weight, Py_ssize_t n_weights, const Py_ssize_t *counts,
    const Rule *rules, Py_ssize_t n_rules, bint plain, Py_ssize_t begin, Py_ssize_t end, double *sums
) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m, r, i, q, k = source.width
    cdef int n, b
    cdef double *total
    cdef double *at
    if _allocate(&s, k, seen != NULL or weight != NULL, not (plain or source.positive)):
        return 1
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read_tile(source, row, m, n, &s)
            if n_weights == 1:
                _weigh(source, seen, weight, row, m, n, &s)
            for r in range(n_rules):
                _decide(rules + r, m, <int> k, <int> counts[m], &s)
                for q in range(n_weights):
                    if n_weights > 1:
                        _weigh(source, seen, weight + q * source.rows, row, m, n, &s)
                    total = sums + ((q * n_rules + r) * source.outputs + m) * k * k
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
