# Arrays as they lie in memory, tiles of them, parts of rows, and losses: what every pass of `_compiled.pyx` needs.

# ------------------------------------------------------------------------------------------------ arrays, as they lie


cdef struct Source:
    # Probabilities of M outputs, or the codes or masses of theirs (class_step unused).
    const char *data
    Py_ssize_t rows, outputs, width
    Py_ssize_t stored  # classes that there are numbers for; the others have probability 0
    Py_ssize_t row_step, output_step, class_step
    int size  # bytes of an entry
    bint positive  # the probability of class 1 is given alone
    const double *temperature  # (M,): of the link that is applied to every tile; NULL for none
    const double *bias  # (M, width)
    const Py_ssize_t *counts  # (M,): classes that are no padding
    double floor
    bint logits  # the numbers are logarithms: of log-odds of class 1 that are given alone, class 0 has 0


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
        out.stored = out.width = 2 if out.positive else self.buffer.shape[2]
        out.class_step = 0 if out.positive else self.buffer.strides[2]
        out.temperature, out.bias, out.counts, out.floor, out.logits = NULL, NULL, NULL, 0.0, False
        return out


cdef list _put_link(Source *source, link, n_classes):
    """Let a source recalibrate what it reads; returns what has to be held meanwhile."""
    if link is None:
        return []
    cdef const double[::1] temperature = np.ascontiguousarray(link[0], dtype=np.float64)
    cdef const double[:, ::1] bias = np.ascontiguousarray(link[1], dtype=np.float64)
    cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(n_classes, dtype=np.intp)
    if temperature.shape[0] != source.outputs or bias.shape[0] != source.outputs or bias.shape[1] != source.width:
        raise ValueError("metricwise.kernels: link must have the outputs and classes of eta.")
    source.temperature, source.bias, source.floor = &temperature[0], &bias[0, 0], link[2]
    source.logits = source.floor == 0.0
    source.counts = &counts[0]
    return [temperature, bias, counts]


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
    cdef int k = 1 if s.positive else <int> s.stored
    cdef Py_ssize_t j
    cdef int b
    for j in range(s.stored, s.width):
        for b in range(MW_ROWS):
            tile[j * MW_STEP + b] = 0.0
    if s.size == 4:
        mw_load_f32(base, s.row_step, s.class_step, n, k, to)
    else:
        mw_load_f64(base, s.row_step, s.class_step, n, k, to)
    if s.positive and s.logits:
        for b in range(MW_ROWS):
            tile[b] = 0.0
    elif s.positive:
        mw_complement(n, tile, to)
    if s.temperature != NULL:
        mw_link(
            <int> s.counts[m], <int> s.width, s.temperature[m], s.bias + m * s.width, s.floor, s.positive, tile
        )


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
    bint plain  # no offset but 0: the sums of rows do not matter
    Py_ssize_t step, offset_step  # from one output to the next, 0 where all share


cdef class _Rules:
    """Several losses as pointers; holds the arrays."""
    cdef Rule *rules
    cdef list kept
    cdef Py_ssize_t number
    cdef bint plain  # all of them

    def __cinit__(self, losses):
        self.number = len(losses)
        self.plain = True
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
                self.rules[r].plain = True
                self.rules[r].step = 0 if three.shape[0] == 1 else three.shape[1] * three.shape[2]
            else:
                two = arrays[0]
                self.rules[r].first = &two[0, 0]
                self.rules[r].step = 0 if two.shape[0] == 1 else two.shape[1]
                two = arrays[1]
                self.rules[r].offset = &two[0, 0]
                self.rules[r].offset_step = 0 if two.shape[0] == 1 else two.shape[1]
                self.rules[r].plain = not arrays[1].any()
            self.plain = self.plain and self.rules[r].plain

    def __dealloc__(self):
        free(self.rules)


cdef struct Scratch:
    # Working memory of one part.
    void *held
    double *tile
    double *mass
    double *score
    double *best
    double *row_mass
    double *total  # sums of rows; NULL where they are 1 or do not matter
    int64_t *code
    int64_t *cell


cdef inline void _decide(const Rule *rule, Py_ssize_t m, int width, int k, Scratch *s) noexcept nogil:
    """Class of least score among the first k, for a tile of output m whose sums are known where they matter."""
    cdef const double *first = rule.first + m * rule.step
    cdef int j, b
    if rule.offset != NULL:
        if rule.plain or s.total == NULL:
            mw_decide_diagonal(k, s.tile, first, rule.offset + m * rule.offset_step, s.best, s.code)
        else:
            mw_decide_offset(k, s.tile, s.total, first, rule.offset + m * rule.offset_step, s.best, s.code)
        return
    mw_dot(width, s.tile, first, width, s.best)
    for b in range(MW_ROWS):
        s.code[b] = 0
    for j in range(1, k):
        mw_dot(width, s.tile, first + j, width, s.score)
        mw_lower(s.score, j, s.best, s.code)


cdef int _allocate(Scratch *s, Py_ssize_t width, bint two_tiles, bint totals) noexcept nogil:
    s.tile = mw_aligned(((2 * width if two_tiles else width) + 6) * MW_STEP, &s.held)
    if s.tile == NULL:
        return -1
    s.mass = s.tile + width * MW_STEP if two_tiles else s.tile
    s.score = s.mass + width * MW_STEP
    s.best = s.score + MW_STEP
    s.row_mass = s.best + MW_STEP
    s.code = <int64_t *> (s.row_mass + MW_STEP)
    s.cell = s.code + MW_STEP
    s.total = <double *> (s.cell + MW_STEP) if totals else NULL
    return 0


cdef inline void _read_tile(const Source *source, Py_ssize_t row, Py_ssize_t m, int n, Scratch *s) noexcept nogil:
    """Read rows row..row+n of output m, and sum them where that matters."""
    _read(source, row, m, n, s.tile)
    if s.total != NULL:
        mw_total(<int> source.width, s.tile, s.total)


def decide(block, loss):
    """Predict the class of least score; see the NumPy twin."""
    eta, n_classes, link = block.eta, block.n_classes, block.link
    if not _ours(eta):
        return _numpy.decide(block, loss)
    cdef _Held held = _Held(eta)
    cdef Source source = held.source()
    source.width = block.width
    cdef list linked = _put_link(&source, link, n_classes)
    cdef _Rules rules = _Rules([loss])
    cdef const Py_ssize_t[::1] counts = np.ascontiguousarray(block.decisions, dtype=np.intp)
    out = np.empty((source.rows, source.outputs), dtype=np.intp)
    if source.rows == 0:
        return out
    cdef Py_ssize_t[:, ::1] codes = out
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs * source.width, 1)
    cdef Py_ssize_t part
    cdef int failed = 0
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        failed += _decide_rows(
            &source, rules.rules, rules.plain, &counts[0], _begin(&cut, part), _begin(&cut, part + 1), &codes[0, 0]
        )
    if failed:
        raise MemoryError
    return out


cdef int _decide_rows(
    const Source *source, const Rule *rule, bint plain, const Py_ssize_t *counts, Py_ssize_t begin, Py_ssize_t end,
    Py_ssize_t *out
) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m
    cdef int n, b
    if _allocate(&s, source.width, False, not (plain or source.positive)):
        return 1
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read_tile(source, row, m, n, &s)
            _decide(rule, m, <int> source.width, <int> counts[m], &s)
            for b in range(n):
                out[(row + b) * source.outputs + m] = s.code[b]
        row += n
    free(s.held)
    return 0


def recalibrate(block):
    """Return recalibrated probabilities; see the NumPy twin."""
    eta, n_classes, link = block.eta, block.n_classes, block.link
    if not _ours(eta):
        return _numpy.recalibrate(block)
    cdef _Held held = _Held(eta)
    cdef Source source = held.source()
    cdef list linked = _put_link(&source, link, n_classes)
    out = np.empty(eta.shape)
    if out.size == 0:
        return out
    cdef _Held held_out = _Held(out)
    cdef double *into = <double *> held_out.buffer.buf
    cdef Cut cut = _cut(source.rows, source.rows * source.outputs * source.width, 1)
    cdef Py_ssize_t part
    cdef int failed = 0
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        failed += _write_rows(&source, _begin(&cut, part), _begin(&cut, part + 1), into)
    if failed:
        raise MemoryError
    return out


cdef int _write_rows(const Source *source, Py_ssize_t begin, Py_ssize_t end, double *out) noexcept nogil:
    """Write what is read: of the probability of class 1 alone, that."""
    cdef Scratch s
    cdef Py_ssize_t row = begin, m, k = 1 if source.positive else source.width
    cdef const double *tile
    cdef int n
    if _allocate(&s, source.width, False, False):
        return 1
    tile = s.tile + MW_STEP if source.positive else s.tile
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(source.outputs):
            _read(source, row, m, n, s.tile)
            mw_store(n, <int> k, tile, source.outputs * k, out + (row * source.outputs + m) * k)
        row += n
    free(s.held)
    return 0
