# Rows that store few of very many labels; part of `_compiled.pyx`.

cdef Py_ssize_t _MOST_LABEL_SUMS = 4  # parts that keep sums of all labels
cdef Py_ssize_t _LABEL_ENTRIES = 8  # entries a label from which parts pay: each of them writes and adds its sums


cdef object _LABEL_TYPES = frozenset((np.dtype(np.int32), np.dtype(np.int64)))


cdef bint _plain(array, types):
    return array.dtype in types and array.flags.c_contiguous and array.flags.aligned


cdef class _Labels:
    """Rows of labels as pointers; holds the arrays."""
    cdef mw_labels source
    cdef list kept
    cdef Py_ssize_t rows  # that are read
    cdef Py_ssize_t entries  # of these
    cdef Py_ssize_t longest  # of their rows

    def __cinit__(self, values, indices, indptr, n_labels, weight, rows):
        self.kept = []
        self.source.values = self.hold(values)
        self.source.wide_values = values.dtype == np.float64
        self.source.indices = NULL if indices is None else self.hold(indices)
        self.source.wide_indices = indices is not None and indices.dtype == np.int64
        self.source.indptr = <const int64_t *> self.hold(np.ascontiguousarray(indptr, dtype=np.int64))
        self.source.n_labels = n_labels
        self.source.weight = NULL
        if weight is not None:
            self.source.weight = <const double *> self.hold(np.ascontiguousarray(weight, dtype=np.float64))
        self.source.rows = NULL
        self.rows = len(indptr) - 1
        if rows is not None:
            self.rows = len(rows)
            self.source.rows = <const int64_t *> self.hold(np.ascontiguousarray(rows, dtype=np.int64))
        cdef Py_ssize_t i, length
        cdef int64_t row
        self.entries = self.longest = 0
        for i in range(self.rows):
            row = i if self.source.rows == NULL else self.source.rows[i]
            length = self.source.indptr[row + 1] - self.source.indptr[row]
            self.entries += length
            self.longest = max(self.longest, length)

    cdef const void *hold(self, array) except? NULL:
        cdef _Held held = _Held(array)
        self.kept.append(held)
        return held.buffer.buf


cdef bint _labels_ours(values, indices):
    """Whether this module reads such entries; the twin reads all."""
    return _plain(values, _PLAIN) and (indices is None or _plain(indices, _LABEL_TYPES))


cdef _Labels _label_block(block):
    """Return the rows of a block, None where they are left to the twin."""
    if not _labels_ours(block.values, block.indices):
        return None
    return _Labels(block.values, block.indices, block.indptr, block.n_labels, block.weight, block.rows)


cdef Cut _label_cut(_Labels labels, Py_ssize_t kept):
    """Cut rows into parts: by the entries that are read and the numbers that each part keeps, never by threads."""
    cdef Cut cut
    cut.rows = cut.tiles = labels.rows
    cut.parts = max(min(min(_MOST_PARTS, labels.entries // _PART_WORK), labels.rows), <Py_ssize_t> 1)
    if kept:
        cut.parts = min(cut.parts, _MOST_LABEL_SUMS if labels.entries >= _LABEL_ENTRIES * kept else 1)
    cut.threads = 1 if _forked or labels.entries < _LEAST_WORK else min(<Py_ssize_t> mw_max_threads(), cut.parts)
    return cut


cdef inline Py_ssize_t _label_begin(const Cut *cut, Py_ssize_t part) noexcept nogil:
    return cut.rows * part // cut.parts


def label_check(indptr, indices, values, n_labels, low, high):
    """Find the first entry that is not as it should be; see the NumPy twin."""
    if not _labels_ours(values, indices):
        return _numpy.label_check(indptr, indices, values, n_labels, low, high)
    cdef _Labels labels = _Labels(values, indices, indptr, n_labels, None, None)
    cdef Cut cut = _label_cut(labels, 0)
    cdef double least = low, most = high
    cdef Py_ssize_t part
    cdef int64_t where[16]
    cdef int reasons[16]
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        reasons[part] = mw_label_check(
            &labels.source, _label_begin(&cut, part), _label_begin(&cut, part + 1), least, most, &where[part]
        )
    for part in range(cut.parts):
        if reasons[part]:
            return reasons[part], where[part]
    return 0, -1


def label_mark(values, indptr, indices, n_labels, y_indptr, y_indices):
    """Set the sign of the entries whose label is true; see the NumPy twin."""
    if not (_labels_ours(values, indices) and values.flags.writeable and _plain(y_indices, _LABEL_TYPES)):
        _numpy.label_mark(values, indptr, indices, n_labels, y_indptr, y_indices)
        return
    cdef _Labels labels = _Labels(values, indices, indptr, n_labels, None, None)
    cdef const int64_t *begins = <const int64_t *> labels.hold(np.ascontiguousarray(y_indptr, dtype=np.int64))
    cdef const void *true_labels = labels.hold(y_indices)
    cdef int wide = y_indices.dtype == np.int64
    cdef Cut cut = _label_cut(labels, 0)
    cdef Py_ssize_t part
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        mw_label_mark(
            &labels.source, _label_begin(&cut, part), _label_begin(&cut, part + 1), begins, true_labels, wide
        )


def label_calibrate(values, temperature, bias, floor, of_logits):
    """Recalibrate each value; see the NumPy twin."""
    if not _plain(values, _PLAIN):
        return _numpy.label_calibrate(values, temperature, bias, floor, of_logits)
    out = np.empty_like(values)
    cdef _Held held = _Held(values), held_out = _Held(out)
    cdef double t = temperature, b = bias, least = 0.0 if of_logits else floor
    cdef bint wide = values.dtype == np.float64
    cdef Py_ssize_t n = len(values), part, begin, end
    cdef Py_ssize_t parts = max(min(_MOST_PARTS, n // _PARTITION_WORK), <Py_ssize_t> 1)
    cdef int threads = 1 if _forked or n < _LEAST_PARTITION else min(<Py_ssize_t> mw_max_threads(), parts)
    for part in prange(parts, nogil=True, schedule="dynamic", num_threads=threads):
        begin = n * part // parts
        end = n * (part + 1) // parts
        if wide:
            mw_calibrate_f64(
                end - begin, <const double *> held.buffer.buf + begin, t, b, least,
                <double *> held_out.buffer.buf + begin
            )
        else:
            mw_calibrate_f32(
                end - begin, <const float *> held.buffer.buf + begin, t, b, least,
                <float *> held_out.buffer.buf + begin
            )
    return out


def label_sums(block):
    """Sum probabilities and true labels; see the NumPy twin."""
    cdef _Labels labels = _label_block(block)
    if labels is None:
        return _numpy.label_sums(block)
    cdef Cut cut = _label_cut(labels, labels.source.n_labels)
    out = np.zeros((cut.parts, labels.source.n_labels, 2))
    cdef double[:, :, ::1] sums = out
    cdef Py_ssize_t part
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        mw_label_sums(&labels.source, _label_begin(&cut, part), _label_begin(&cut, part + 1), &sums[part, 0, 0])
    return _added(out)


cdef _added(parts):
    """Add parts in order."""
    out = parts[0]
    for part in parts[1:]:
        out += part
    return out if len(parts) == 1 else out.copy()


cdef class _LabelTable:
    """A table and a budget as pointers; holds the arrays. Where many entries are read, the table is one of pairs."""
    cdef mw_label_rule rule
    cdef list kept

    def __cinit__(self, _Labels labels, scale, offset, low, high, fill):
        cdef const double[::1] one = np.ascontiguousarray(scale, dtype=np.float64)
        cdef const double[::1] other = np.ascontiguousarray(offset, dtype=np.float64)
        cdef const int64_t[::1] order
        cdef double[:, ::1] pairs
        self.kept = [one, other]
        self.rule.low, self.rule.high = low, high
        self.rule.fill, self.rule.n_fill = NULL, 0
        if high > 0 and fill is not None and len(fill) and labels.source.indices != NULL:
            order = np.ascontiguousarray(fill, dtype=np.int64)
            self.kept.append(order)
            self.rule.fill, self.rule.n_fill = &order[0], order.shape[0]
        if one.shape[0] == other.shape[0] and one.shape[0] > 1 and labels.entries >= 2 * one.shape[0]:
            pairs = np.stack([one, other], axis=1)
            self.kept.append(pairs)
            self.rule.scale, self.rule.offset = &pairs[0, 0], &pairs[0, 1]
            self.rule.scale_step = self.rule.offset_step = 2
            return
        self.rule.scale, self.rule.offset = &one[0], &other[0]
        self.rule.scale_step, self.rule.offset_step = one.shape[0] > 1, other.shape[0] > 1


cdef size_t _most_picked(_Labels labels, const mw_label_rule *rule):
    return max(min(rule.high, labels.source.n_labels), 0)


def label_count(block, tables, low, high, fill):
    """Count what tables predict; see the NumPy twin."""
    cdef _Labels labels = _label_block(block)
    if labels is None:
        return _numpy.label_count(block, tables, low, high, fill)
    cdef Py_ssize_t n_labels = labels.source.n_labels, part, r
    cdef Cut cut = _label_cut(labels, n_labels)
    out, others = np.zeros((len(tables), n_labels, 3)), np.empty((cut.parts - 1, n_labels, 3))
    cdef double[:, :, ::1] counts = out, rest = others
    cdef _LabelTable table
    cdef size_t most
    cdef int failed = 0
    for r, (scale, offset) in enumerate(tables):  # one by one: a table stays in the cache, the entries do not
        table = _LabelTable(labels, scale, offset, low, high, None if fill is None else fill[r])
        most = _most_picked(labels, &table.rule)
        others[:] = 0.0
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _count_part(
                labels, table, most, _label_begin(&cut, part), _label_begin(&cut, part + 1),
                &counts[r, 0, 0] if part == 0 else &rest[part - 1, 0, 0]
            )
        if failed:
            raise MemoryError
        for part_counts in others:
            out[r] += part_counts
    return out


cdef int _count_part(
    _Labels labels, _LabelTable table, size_t most, Py_ssize_t begin, Py_ssize_t end, double *sums
) noexcept nogil:
    cdef mw_label_scratch scratch
    if mw_label_allocate(&scratch, labels.longest, most):
        return 1
    mw_label_count(&labels.source, &table.rule, begin, end, &scratch, sums)
    free(scratch.held)
    return 0


def label_decide(block, scale, offset, low, high, fill):
    """Predict labels; see the NumPy twin."""
    cdef _Labels labels = _label_block(block)
    if labels is None:
        return _numpy.label_decide(block, scale, offset, low, high, fill)
    cdef _LabelTable table = _LabelTable(labels, scale, offset, low, high, fill)
    cdef Cut cut = _label_cut(labels, 0)
    cdef size_t most = _most_picked(labels, &table.rule)
    cdef int64_t *found[16]
    cdef Py_ssize_t part, row, before
    cdef int failed = 0
    indptr = np.zeros(labels.rows + 1, dtype=np.int64)
    cdef int64_t[::1] ends = indptr
    for part in range(cut.parts):
        found[part] = NULL
    try:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _decide_labels(
                labels, table, most, _label_begin(&cut, part), _label_begin(&cut, part + 1), &ends[0], &found[part]
            )
        if failed:
            raise MemoryError
        for row in range(labels.rows):
            ends[row + 1] += ends[row]
        indices = np.empty(ends[labels.rows], dtype=np.int64 if block.indices is None else block.indices.dtype)
        _put_labels(&cut, &ends[0], found, indices)
    finally:
        for part in range(cut.parts):
            free(found[part])
    return indptr, indices


cdef _put_labels(const Cut *cut, const int64_t *ends, int64_t **found, indices):
    cdef _Held held = _Held(indices)
    cdef bint wide = indices.dtype == np.int64
    cdef Py_ssize_t part, i, first
    for part in range(cut.parts):
        first = ends[_label_begin(cut, part)]
        for i in range(ends[_label_begin(cut, part + 1)] - first):
            if wide:
                (<int64_t *> held.buffer.buf)[first + i] = found[part][i]
            else:
                (<int32_t *> held.buffer.buf)[first + i] = <int32_t> found[part][i]


cdef int _decide_labels(
    _Labels labels, _LabelTable table, size_t most, Py_ssize_t begin, Py_ssize_t end, int64_t *ends, int64_t **found
) noexcept nogil:
    """Write how many labels each row has, behind its place in `ends`, and the labels to memory that grows."""
    cdef mw_label_scratch scratch
    cdef const mw_labels *source = &labels.source
    cdef Py_ssize_t room = 0, used = 0, i, q, n
    cdef int64_t row
    cdef int64_t *more
    if mw_label_allocate(&scratch, labels.longest, most):
        return 1
    for i in range(begin, end):
        row = mw_label_row(source, i)
        n = mw_predict(source, &table.rule, row, &scratch)
        if used + n > room:
            room = max(2 * room, used + n + (end - begin))
            more = <int64_t *> realloc(found[0], room * sizeof(int64_t))
            if more == NULL:
                free(scratch.held)
                return 1
            found[0] = more
        for q in range(n):
            found[0][used + q] = mw_label_of(source, source.indptr[row], scratch.picked[q])
        used += n
        ends[i + 1] = n
    free(scratch.held)
    return 0


cdef class _LabelState:
    """The state of an ascent as pointers; holds the arrays."""
    cdef mw_label_state state
    cdef list kept
    cdef double[:, ::1] table

    def __cinit__(self, form, factor, true, label_weight, tp, predicted, total):
        cdef const double[::1] f = np.ascontiguousarray(factor, dtype=np.float64)
        cdef const double[::1] t = np.ascontiguousarray(true, dtype=np.float64)
        cdef const double[::1] w = np.ascontiguousarray(label_weight, dtype=np.float64)
        cdef double[::1] hits = tp
        cdef double[::1] rows = predicted
        cdef int i
        self.table = np.empty((f.shape[0], 2))
        self.kept = [f, t, w, hits, rows]
        for i in range(4):
            self.state.numerator[i], self.state.denominator[i] = form.numerator[i], form.denominator[i]
        self.state.total = total
        hits_alone = not any(form.numerator[1:])
        if form.coverage:
            self.state.kind = MW_COVERAGE
        elif hits_alone and form.denominator[0] == 0:
            self.state.kind = MW_DAMPED_GAIN if form.damped else MW_GAIN
        else:
            self.state.kind = MW_DAMPED_SLOPE if form.damped else MW_SLOPE
        self.state.factor, self.state.true_rows, self.state.weight = &f[0], &t[0], &w[0]
        self.state.tp, self.state.predicted, self.state.table = &hits[0], &rows[0], &self.table[0, 0]


def label_table(form, factor, true, label_weight, tp, predicted, total):
    """Return scale and offset at some counts; see the NumPy twin."""
    hits, rows = np.array(tp, dtype=np.float64), np.array(predicted, dtype=np.float64)  # a state is written to
    cdef _LabelState state = _LabelState(form, factor, true, label_weight, hits, rows, total)
    cdef Py_ssize_t m
    for m in range(state.table.shape[0]):
        mw_refresh(&state.state, m)
    table = np.asarray(state.table)
    return table[:, 0].copy(), table[:, 1].copy()


def label_ascend(
    block, form, factor, true, label_weight, tp, predicted, scale, offset, chosen, low, high, fill, total
):
    """Decide the rows one after the other; see the NumPy twin."""
    cdef _Labels labels = _label_block(block)
    if labels is None:
        _numpy.label_ascend(
            block, form, factor, true, label_weight, tp, predicted, scale, offset, chosen, low, high, fill, total
        )
        return
    cdef _LabelState state = _LabelState(form, factor, true, label_weight, tp, predicted, total)
    cdef int64_t[:, ::1] codes = chosen
    table = np.asarray(state.table)
    table[:, 0], table[:, 1] = scale, offset
    cdef _LabelTable rule = _LabelTable(labels, scale, offset, low, high, fill)
    rule.rule.scale, rule.rule.offset = &state.table[0, 0], &state.table[0, 1]
    rule.rule.scale_step = rule.rule.offset_step = 2
    cdef mw_label_scratch scratch
    if labels.rows == 0:
        return
    if codes.shape[0] != labels.rows or codes.shape[1] != rule.rule.high:
        raise ValueError("metricwise.kernels: chosen must have a row for each that is read, and `high` columns.")
    if mw_label_allocate(&scratch, labels.longest, _most_picked(labels, &rule.rule)):
        raise MemoryError
    with nogil:
        mw_label_ascend(&labels.source, &rule.rule, labels.rows, &state.state, &scratch, &codes[0, 0])
        free(scratch.held)
    scale[:], offset[:] = table[:, 0], table[:, 1]


def label_sweep(block):
    """List the thresholds of each label; see the NumPy twin."""
    cdef _Labels labels = _label_block(block)
    if labels is None:
        return _numpy.label_sweep(block)
    cdef Py_ssize_t n_labels = labels.source.n_labels, part, m, i
    cdef Cut whole = _label_cut(labels, 0)
    label_ptr = np.zeros(n_labels + 1, dtype=np.int64)
    cdef int64_t[::1] begins = label_ptr
    with nogil:
        mw_label_true(&labels.source, 0, labels.rows, &begins[0] + 1)
    if label_ptr.max() >= _MOST_THRESHOLDS:
        return _numpy.label_sweep(block)
    np.cumsum(label_ptr, out=label_ptr)
    cdef int64_t[::1] following = label_ptr.copy()
    cdef Py_ssize_t n_thresholds = label_ptr[n_labels]
    value = np.empty(n_thresholds)
    cdef double[::1] values = value
    cdef int32_t[::1] bins = np.empty(n_thresholds, dtype=np.int32)
    cdef double[:, ::1] room = np.empty((n_labels, sizeof(mw_thresholds) // 8))
    cdef mw_thresholds *thresholds = <mw_thresholds *> &room[0, 0]
    with nogil:
        mw_label_thresholds(&labels.source, 0, labels.rows, &following[0], &values[0])
    for part in prange(whole.parts, nogil=True, schedule="dynamic", num_threads=whole.threads):
        mw_sort_thresholds(
            n_labels * part // whole.parts, n_labels * (part + 1) // whole.parts, &begins[0], &values[0], &bins[0],
            thresholds
        )
    cdef Cut cut = _label_cut(labels, n_thresholds)
    counts = np.zeros((cut.parts, n_thresholds, 2))
    cdef double[:, :, ::1] sums = counts
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        mw_label_sweep(
            &labels.source, _label_begin(&cut, part), _label_begin(&cut, part + 1), thresholds, &values[0], &bins[0],
            &sums[part, 0, 0]
        )
    added = _added(counts)
    cdef double[:, ::1] total = added
    for m in range(n_labels):
        for i in range(begins[m] + 1, begins[m + 1]):
            total[i, 0] += total[i - 1, 0]
            total[i, 1] += total[i - 1, 1]
    return label_ptr, value, added[:, 0].copy(), added[:, 1].copy()
