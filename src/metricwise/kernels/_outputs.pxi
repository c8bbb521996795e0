# Rows of many outputs of two classes, read along their outputs; part of `_compiled.pyx`.

# Tiles are read output by output, each from as many lines of the cache as there are rows. Where the outputs of a row are
# neighbours in memory, and there are several, rows are read one after the other instead: the same numbers, in order.

cdef int _MIN_SIDE_BY_SIDE = 8  # outputs: of fewer, a vector is not full


cdef inline bint _side_by_side(const Source *source, const Source *labels, Py_ssize_t outputs) noexcept nogil:
    """Whether outputs of two classes are to be read row by row: the probability of one and a small label of each."""
    return (
        source.positive and source.width == 2 and source.temperature == NULL and outputs >= _MIN_SIDE_BY_SIDE
        and source.output_step == source.size and labels.size == 1 and labels.output_step == 1
    )


# ------------------------------------------------------------------------------------------------------------- changes


cdef int _walk_outputs(
    const Line *line, Log *log, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t first_output, Py_ssize_t last_output
) noexcept nogil:
    """What `_walk_two` does, for all outputs, which are in a group each; up to MW_ROWS outputs at a time."""
    cdef Walker w
    cdef mw_lanes *lanes
    cdef Py_ssize_t m = first_output, last
    if _allocate_walker(&w, line):
        return 1
    lanes = <mw_lanes *> calloc(1, sizeof(mw_lanes))
    if lanes != NULL:
        while m < last_output:
            last = min(m + MW_ROWS, last_output)
            _walk_lanes(line, &w, lanes, log, begin, end, m, <int> (last - m))
            m = last
    free(w.held)
    free(w.s.held)
    if lanes == NULL:
        return 1
    free(lanes)
    if line.sorted:
        _sort(log.events, log.n_events)
    return 1 if log.failed else 0


cdef bint _fill_lanes(const Line *line, mw_lanes *lanes, Py_ssize_t first, int number) noexcept nogil:
    """Write what belongs to each lane of so many outputs; whether a difference of slopes is not 1."""
    cdef Py_ssize_t lane, m, group
    cdef const double *d
    cdef const double *v
    cdef bint divided = False
    for lane in range(MW_ROWS):
        m = first + lane % number
        group = line.group[m]
        d = line.constant.first + group * line.constant.step
        v = line.constant.offset + group * line.constant.offset_step
        lanes.d0[lane], lanes.v0[lane], lanes.d1[lane], lanes.v1[lane] = d[0], v[0], d[1], v[1]
        lanes.fall[lane] = line.steep[2 * m] - line.steep[2 * m + 1]
        lanes.flip[lane] = line.order[2 * m]
        lanes.begin[lane], lanes.per_unit[lane] = line.grid[2 * group], line.grid[2 * group + 1]
        lanes.segment[lane] = <int32_t> (group * (line.n_bins + 2))
        lanes.kind[lane] = 3 * <int32_t> line.order[2 * m] + 1
        if line.wanted != NULL:
            lanes.low[lane] = lanes.segment[lane] + line.hull[2 * group]
            lanes.high[lane] = lanes.segment[lane] + line.hull[2 * group + 1]
        lanes.zeros[lane] = lanes.ones[lane] = 0
        divided = divided or lanes.fall[lane] != 1.0
    return divided


cdef void _walk_lanes(
    const Line *line, Walker *w, mw_lanes *lanes, Log *log, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t first,
    int number
) noexcept nogil:
    cdef const Source *source = line.source
    cdef mw_envelope *e = w.envelope
    cdef uint8_t which[6]
    cdef double change[4]
    cdef const char *at
    cdef const char *codes
    cdef Py_ssize_t row = begin, m
    cdef int lane, i, flip, picked, n, rows, divided = _fill_lanes(line, lanes, first, number)
    cdef int64_t *firsts
    if line.summed:
        for flip in range(2):
            for i in range(3):  # from class `flip` to the other
                which[3 * flip + i] = line.which[(2 * i + flip) * 2 + 1 - flip]
    while row < end:
        rows = <int> min(<Py_ssize_t> (MW_ROWS // number), end - row)
        n = rows * number
        at = source.data + row * source.row_step + first * source.output_step
        codes = line.labels.data + row * line.labels.row_step + first
        if source.size == 4:
            mw_load_lanes_f32(at, source.row_step, codes, line.labels.row_step, rows, number, lanes)
        else:
            mw_load_lanes_f64(at, source.row_step, codes, line.labels.row_step, rows, number, lanes)
        mw_cross_lanes(n, lanes, divided, <int32_t> line.n_bins, e.last, e.bin)
        if line.summed:
            mw_count_lanes(n, lanes, e.bin, which, log.kinds)
        if line.wanted != NULL:
            picked = mw_pick_lanes(n, lanes, e.bin, line.wanted, w.picked)
            for i in range(picked):
                lane = w.picked[i]
                w.s.cell[0] = (lanes.codes[lane] + 1) * 2
                _change(line, w, first + lane % number, row, 0, lanes.flip[lane], 1 - lanes.flip[lane], change)
                _list(log, e.bin[lane], e.last[lane], change)
        row += rows
    if line.summed:
        for m in range(first, first + number):
            log.first[6 * m + line.order[2 * m]] += end - begin
        for lane in range(MW_ROWS):
            firsts = log.first + 6 * (first + lane % number) + lanes.flip[lane]
            firsts[0] -= lanes.zeros[lane] + lanes.ones[lane]
            firsts[2] += lanes.zeros[lane]
            firsts[4] += lanes.ones[lane]


cdef inline bint _walks_outputs(const Line *line, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Whether outputs are walked row by row: all of them in a group, and segments in 32 bits."""
    cdef Py_ssize_t m, segments = line.n_bins + 2
    if not (line.two and _side_by_side(line.source, line.labels, last - first)):
        return False
    for m in range(first, last):
        if line.group[m] < 0 or (line.group[m] + 1) * segments >= _MOST_COUNTED:
            return False
    return True


# -------------------------------------------------------------------------------------------------------------- counts


cdef int _count_outputs(
    const Source *source, const Source *labels, const Rule *rules, Py_ssize_t n_rules, Py_ssize_t begin, Py_ssize_t end,
    int64_t *sums
) noexcept nogil:
    """What `_count_rows` does where each output has two classes and rows count alike, row by row."""
    cdef Py_ssize_t outputs = source.outputs, row, r, m
    cdef double *scores = <double *> malloc(4 * n_rules * outputs * sizeof(double))
    cdef int64_t *ones = <int64_t *> calloc((2 * n_rules + 1) * outputs, sizeof(int64_t))
    cdef double *rule
    cdef int64_t *count
    cdef const char *at
    cdef const int8_t *codes
    if scores == NULL or ones == NULL:
        free(scores)
        free(ones)
        return 1
    cdef int32_t *shown = <int32_t *> (ones + 2 * n_rules * outputs)
    for r in range(n_rules):
        rule = scores + 4 * r * outputs
        for m in range(outputs):
            rule[m] = (rules[r].first + m * rules[r].step)[0]
            rule[outputs + m] = (rules[r].offset + m * rules[r].offset_step)[0]
            rule[2 * outputs + m] = (rules[r].first + m * rules[r].step)[1]
            rule[3 * outputs + m] = (rules[r].offset + m * rules[r].offset_step)[1]
    for row in range(begin, end):
        at = source.data + row * source.row_step
        codes = <const int8_t *> (labels.data + row * labels.row_step)
        mw_tally_two(outputs, codes, shown, shown + outputs)
        for r in range(n_rules):
            rule, count = scores + 4 * r * outputs, ones + 2 * r * outputs
            if source.size == 4:
                mw_decide_outputs_f32(at, codes, <int> outputs, rule, rule + outputs, rule + 2 * outputs,
                                      rule + 3 * outputs, count, count + outputs)
            else:
                mw_decide_outputs_f64(at, codes, <int> outputs, rule, rule + outputs, rule + 2 * outputs,
                                      rule + 3 * outputs, count, count + outputs)
    for r in range(n_rules):
        for m in range(outputs):
            count = sums + (r * outputs + m) * 6
            count[3] += ones[2 * r * outputs + m]
            count[2] += shown[m] - ones[2 * r * outputs + m]
            count[5] += ones[(2 * r + 1) * outputs + m]
            count[4] += shown[outputs + m] - ones[(2 * r + 1) * outputs + m]
    free(scores)
    free(ones)
    return 0


cdef bint _counts_outputs(
    const Source *source, const Source *labels, const double *weight, const Py_ssize_t *counts, const Rule *rules,
    Py_ssize_t n_rules
) noexcept nogil:
    """Whether outputs are counted row by row."""
    cdef Py_ssize_t r, m
    if weight != NULL or not _side_by_side(source, labels, source.outputs) or source.rows >= _MOST_COUNTED:
        return False
    for r in range(n_rules):
        if rules[r].offset == NULL:
            return False
    for m in range(source.outputs):
        if counts[m] != 2:
            return False
    return True
