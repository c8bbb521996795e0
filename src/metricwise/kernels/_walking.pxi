# Rows followed along a line of losses, a tile at a time; part of `_compiled.pyx`.

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
    bint sorted  # whether events are sorted; where a group has them all in one list, who takes it does so
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
    double *before  # (2, MW_STEP): what rows add to both functionals before and after a change, where bins are
    double *after   # summed and changes are not tabulated
    mw_envelope *envelope
    int32_t *picked  # rows whose change is wanted
    const double **low  # (K,): height and class of each line
    const int64_t **own


cdef int _allocate_walker(Walker *w, const Line *line) noexcept nogil:
    cdef Py_ssize_t k = line.source.width, j, b
    if _allocate(&w.s, k, line.seen != NULL or line.weight != NULL, not line.source.positive):
        return -1
    w.height = mw_aligned((5 * k + 6) * MW_STEP + sizeof(mw_envelope) // 8 + 2 * k, &w.held)
    if w.height == NULL:
        free(w.s.held)
        return -1
    w.incline = w.height + k * MW_STEP
    w.lowest = w.incline + k * MW_STEP
    w.owner = <int64_t *> (w.lowest + k * MW_STEP)
    w.same = w.owner + k * MW_STEP
    w.first = w.same + k * MW_STEP
    w.before = <double *> (w.first + MW_STEP)
    w.after = w.before + 2 * MW_STEP
    w.envelope = <mw_envelope *> (w.after + 2 * MW_STEP)
    w.picked = <int32_t *> (w.envelope + 1)
    w.low = <const double **> (w.picked + 2 * MW_STEP)
    w.own = <const int64_t **> (w.low + k)
    for j in range(k):
        for b in range(MW_ROWS):
            w.same[j * MW_STEP + b] = j
    return 0


cdef inline void _score(
    const Rule *rule, Py_ssize_t which, int width, Py_ssize_t j, const Scratch *s, double *out
) noexcept nogil:
    """The scores of class j, for a tile."""
    cdef const double *first = rule.first + which * rule.step
    if rule.offset == NULL:
        mw_dot(width, s.tile, first + j, width, out)
    elif rule.plain or s.total == NULL:
        mw_line(s.tile + j * MW_STEP, first[j], (rule.offset + which * rule.offset_step)[j], out)
    else:
        mw_line_of(s.tile + j * MW_STEP, s.total, first[j], (rule.offset + which * rule.offset_step)[j], out)


cdef inline void _lower_score(
    const Rule *rule, Py_ssize_t which, int width, Py_ssize_t j, Scratch *s, double *lowest, int64_t *owner
) noexcept nogil:
    """Keep the scores of class j where they are lower."""
    cdef const double *first = rule.first + which * rule.step
    if rule.offset == NULL:
        mw_dot(width, s.tile, first + j, width, s.score)
        mw_lower(s.score, j, lowest, owner)
    elif rule.plain or s.total == NULL:
        mw_lower_line(
            s.tile + j * MW_STEP, first[j], (rule.offset + which * rule.offset_step)[j], j, lowest, owner
        )
    else:
        mw_lower_line_of(
            s.tile + j * MW_STEP, s.total, first[j], (rule.offset + which * rule.offset_step)[j], j, lowest, owner
        )


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


cdef inline void _worths(
    const Line *line, const Walker *w, Py_ssize_t m, Py_ssize_t row, int n, const int64_t *decided, double *out
) noexcept nogil:
    """The same for all rows of the tile, (2, MW_STEP)."""
    cdef Py_ssize_t k = line.source.width
    cdef double worth[2]
    cdef int b
    if line.labels == NULL:
        mw_worth(<int> k, w.s.mass, line.worth + (m * (k + 1) + 1) * k * 2, decided, out, out + MW_STEP)
        return
    for b in range(n):
        _worth(line, w, m, row, b, decided[b], worth)
        out[b], out[MW_STEP + b] = worth[0], worth[1]


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
    if change[0] == 0.0 and change[1] == 0.0:
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

    Where next is given and negative, there is no change. Where bins are summed and changes are not tabulated, w.before
    has what rows add before it, and then what they add before the next one.
    """
    cdef Py_ssize_t k = line.source.width, begin = group * (line.n_bins + 2)
    cdef mw_envelope *e = w.envelope
    cdef const uint8_t *wanted = NULL if line.wanted == NULL else line.wanted + begin
    cdef bint known = line.summed and line.table == NULL
    cdef double change[4]
    cdef int at, b, picked = n
    mw_bins(line.grid[2 * group], line.grid[2 * group + 1], <int32_t> line.n_bins, e)
    if known:
        _worths(line, w, m, row, n, new, w.after)
        mw_add_changes(n, e, next, w.before, w.after, log.sums + 4 * begin, log.counts + begin)
    elif line.summed:
        mw_kinds(<int32_t> k, w.s.cell, old, new, e.kind)
        if next != NULL:
            mw_no_kind(next, e.kind)
        if log.kinds != NULL:
            mw_count_kinds(n, e, line.which, log.kinds + 8 * begin)
        else:
            mw_add(n, e, line.table + m * (k + 1) * k * k * 4, log.sums + 4 * begin, log.counts + begin)
    if wanted != NULL:
        picked = mw_pick(n, e.bin, wanted, line.hull[2 * group], line.hull[2 * group + 1], w.picked)
        for at in range(picked):
            b = w.picked[at]
            if next != NULL and next[b] < 0:
                continue
            if known:
                change[0], change[1] = w.after[b] - w.before[b], w.after[MW_STEP + b] - w.before[MW_STEP + b]
            else:
                _change(line, w, m, row, b, old[b], new[b], change)
            _list(log, begin + e.bin[b], e.last[b], change)
    if known:
        w.before, w.after = w.after, w.before


cdef inline void _flat_lines(const Line *line, Walker *w, Py_ssize_t m, Py_ssize_t group, int k) noexcept nogil:
    """Of the classes of one slope, keep the lowest in each row: one line for all of them."""
    cdef int width = <int> line.source.width
    cdef const Py_ssize_t *order = line.order + m * width
    cdef const Py_ssize_t *which = line.line + m * width
    cdef Py_ssize_t at, q, j
    cdef double *lowest
    cdef int64_t *owner
    for at in range(k):
        q, j = which[at], order[at]
        lowest, owner = w.lowest + q * MW_STEP, w.owner + q * MW_STEP
        if at == 0 or which[at - 1] != q:
            w.low[q], w.own[q] = lowest, w.same + j * MW_STEP
            _score(line.constant, group, width, j, &w.s, lowest)
            continue
        if w.own[q] != owner:
            mw_fill(order[at - 1], owner)
            w.own[q] = owner
        _lower_score(line.constant, group, width, j, &w.s, lowest, owner)
    if w.s.total != NULL:  # slopes are per unit of the row's sum
        for q in range(line.n_lines[m]):
            mw_divide(w.s.total, w.lowest + q * MW_STEP)


cdef inline void _walk_flat(
    const Line *line, Walker *w, Log *log, Py_ssize_t m, Py_ssize_t group, Py_ssize_t row, int n
) noexcept nogil:
    """Walk rows whose lines have slopes that fall from one to the next, the same in every row: all rows in step."""
    cdef int lines = <int> line.n_lines[m], left = lines > 1, met = 0, q
    cdef const double *steep = line.steep + m * line.source.width
    cdef mw_envelope *e = w.envelope
    if lines == 2:
        mw_cross(w.low[0], w.low[1], steep[0] - steep[1], e)
        _note(line, w, log, m, group, row, n, w.own[0], w.own[1], NULL)
        return
    mw_begin(w.low[0], w.own[0], steep[0], e)
    while left:
        mw_look(e)
        met += 1  # so many lines every row has left behind, at least
        for q in range(met, lines):
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
    cdef int b
    cdef bint alike = line.labels != NULL and line.weight == NULL
    if not alike or (line.flat and line.table == NULL):
        _worths(line, w, m, row, n, first, w.before)
    if not alike:
        start[0] += mw_sum(n, w.before)
        start[1] += mw_sum(n, w.before + MW_STEP)
    elif k == 2:
        mw_count_two(n, w.s.cell, first, counts)
    else:
        for b in range(n):
            counts[w.s.cell[b] + first[b]] += 1


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
    cdef Py_ssize_t row = begin, m, group, j, width = source.width
    cdef int n, k
    if _walks_outputs(line, first_output, last_output):
        return _walk_outputs(line, log, begin, end, first_output, last_output)
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
            _read_tile(source, row, m, n, &w.s)
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
                for j in range(k):
                    _score(line.constant, group, <int> width, j, &w.s, w.height + j * MW_STEP)
                    _score(line.slope, group, <int> width, j, &w.s, w.incline + j * MW_STEP)
                _first_general(line, &w, k, n)
                if line.summed:
                    _begin_walk(line, &w, log, m, row, n, w.first)
                _walk_general(line, &w, log, m, group, row, k, n)
        row += n
    free(w.held)
    free(w.s.held)
    if line.sorted:
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
