# A pass along a line of losses: arguments in, bins and lists out; part of `_compiled.pyx`.

cdef class _Walk:
    """One pass along a line of losses: every argument as pointers, held while it runs."""
    cdef list kept
    cdef Line line
    cdef Source source, labels, seen
    cdef _Rules constant, slope
    cdef Py_ssize_t n_groups
    cdef object changes  # (8, 2): the changes that kinds make, where they are few

    def __init__(self, block, line, grid, n_bins, wanted):
        eta, n_classes, codes, weight, observed, link, _ = block
        group, constant, slope, worth = line
        cdef _Held held = _Held(eta), held_seen
        cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(block.decisions, dtype=np.intp)
        cdef const Py_ssize_t[::1] groups = np.ascontiguousarray(group, dtype=np.intp)
        cdef const double[::1] weights
        cdef const double[:, :, :, ::1] value = np.ascontiguousarray(worth, dtype=np.float64)
        cdef const double[:, ::1] places = np.ascontiguousarray(grid, dtype=np.float64)
        cdef const uint8_t[:, ::1] listed
        cdef int32_t[:, ::1] between
        self.kept = [held, counts, groups, value, places]
        self.source = held.source()
        self.source.width = block.width
        self.kept += _put_link(&self.source, link, n_classes)
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
        self._slopes(slope, block.decisions, group)
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
        slopes = constant_slopes(slope)
        self.line.flat = slopes is not None
        if slopes is None:
            self.line.noise = slope_noise(slope)
        else:
            order, which, steep, n_lines = slope_lines(slopes, n_classes, group)
            self.line.order, self.line.line = &order[0, 0], &which[0, 0]
            self.line.steep, self.line.n_lines = &steep[0, 0], &n_lines[0]
            self.kept += [order, which, steep, n_lines]

    cdef bint is_two(self):
        """Whether rows can be walked by the shortest way."""
        cdef Py_ssize_t m
        if self.source.temperature != NULL or self.source.width != 2:
            return False
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


def changes(block, line, grid, n_bins, wanted=None, summed=True):
    """Follow decisions along a line of losses: bins of changes, and a list of those wanted; see the NumPy twin."""
    if not _ours(block.eta):
        return _numpy.changes(block, line, grid, n_bins, wanted, summed)
    cdef _Walk walk = _Walk(block, line, grid, n_bins, wanted)
    group = line.group
    walk.line.summed = summed
    walk.line.two = walk.is_two()
    cdef Py_ssize_t groups = walk.n_groups, segments = walk.n_groups * (n_bins + 2), part, work
    cdef Py_ssize_t rows = walk.source.rows, outputs = walk.source.outputs, width = walk.source.width
    cdef Py_ssize_t firsts = outputs * (width + 1) * width
    cdef bint few = walk.line.which != NULL
    cdef Cut cut = _cut(rows, rows * outputs * width, (4 if few else 5) * segments + firsts if summed else 1)
    # Groups of one output each keep their sums apart: outputs are shared out instead of rows, with one set of sums.
    cdef bint apart = groups >= 2 * _TOGETHER and len(np.unique(group[group >= 0])) == (group >= 0).sum()
    walk.line.sorted = n_bins > 0
    if apart:
        cut.parts = (outputs + _TOGETHER - 1) // _TOGETHER
        work = rows * outputs * width * (width if walk.line.constant.offset == NULL else 1)  # of a full loss, every cell
        cut.threads = 1 if _forked or work < _LEAST_WORK else min(<Py_ssize_t> mw_max_threads(), cut.parts)
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
    if apart:
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
    if block.codes is not None and block.weight is None:
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
