# Rows drawn by numbers made of what they hold; part of `_compiled.pyx`.


cdef struct Hashed:
    # What keys are made of, and who is drawn.
    const char *entry[2]
    Py_ssize_t entry_step[2]
    int entry_size[2]
    uint64_t factor[2]
    int n_entries
    const char *codes  # NULL: none
    Py_ssize_t code_step
    int code_size
    const char *stratum
    Py_ssize_t stratum_step
    int stratum_size
    const uint64_t *below
    uint64_t scatter, fold


cdef struct Low:
    # Rows of a part that are drawn, and their keys.
    Py_ssize_t *rows
    uint64_t *keys
    Py_ssize_t number


cdef inline int64_t _whole_number(const char *at, int size) noexcept nogil:
    if size == 1:
        return (<const int8_t *> at)[0]
    if size == 4:
        return (<const int32_t *> at)[0]
    return (<const int64_t *> at)[0]


cdef inline uint64_t _scattered_key(const Hashed *h, Py_ssize_t row) noexcept nogil:
    cdef uint64_t key = 0, bits
    cdef double value
    cdef int e
    for e in range(h.n_entries):
        if h.entry_size[e] == 4:
            value = (<const float *> (h.entry[e] + row * h.entry_step[e]))[0]
        else:
            value = (<const double *> (h.entry[e] + row * h.entry_step[e]))[0]
        memcpy(&bits, &value, 8)
        key += bits * h.factor[e]
    if h.codes != NULL:
        key += <uint64_t> _whole_number(h.codes + row * h.code_step, h.code_size)
    key *= h.scatter
    for e in range(2):
        key ^= key >> 32
        key *= h.fold
    return key


def low_rows(entries, codes, stratum, below, seed):
    """Return the rows whose scattered key is at most that of their stratum, and these keys; see the NumPy twin."""
    cdef Py_ssize_t n = len(stratum), e, part
    if n == 0 or not all(_ours(entry) for entry in entries):
        return _numpy.low_rows(entries, codes, stratum, below, seed)
    cdef Hashed h
    cdef const uint64_t[::1] limits = np.ascontiguousarray(below, dtype=np.uint64)
    kept = [limits]
    cdef _Held held
    h.n_entries = min(len(entries), 2)
    for e in range(h.n_entries):
        held = _Held(entries[e])
        h.entry[e], h.entry_step[e] = <const char *> held.buffer.buf, held.buffer.strides[0]
        h.entry_size[e], h.factor[e] = <int> held.buffer.itemsize, _drawing.FACTORS[e]
        kept.append(held)
    h.codes = NULL
    if codes is not None:
        held = _Held(_codes(codes))
        h.codes, h.code_step = <const char *> held.buffer.buf, held.buffer.strides[0]
        h.code_size = <int> held.buffer.itemsize
        kept.append(held)
    held = _Held(_codes(stratum))
    h.stratum, h.stratum_step = <const char *> held.buffer.buf, held.buffer.strides[0]
    h.stratum_size = <int> held.buffer.itemsize
    kept.append(held)
    h.below, h.scatter, h.fold = &limits[0], _drawing.scatter_factor(seed), _drawing.FOLD
    cdef Cut cut = _cut(n, n * h.n_entries, 1)
    cdef Low *low = <Low *> calloc(cut.parts, sizeof(Low))
    cdef Py_ssize_t at = 0
    cdef int failed = 0
    cdef Py_ssize_t[::1] rows
    cdef uint64_t[::1] keys
    if low == NULL:
        raise MemoryError
    try:
        for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
            failed += _low_part(&h, _begin(&cut, part), _begin(&cut, part + 1), &low[part])
        if failed:
            raise MemoryError
        for part in range(cut.parts):
            at += low[part].number
        found, numbers = np.empty(at, dtype=np.intp), np.empty(at, dtype=np.uint64)
        rows, keys, at = found, numbers, 0
        for part in range(cut.parts):
            for e in range(low[part].number):
                rows[at], keys[at] = low[part].rows[e], low[part].keys[e]
                at += 1
        return found, numbers
    finally:
        for part in range(cut.parts):
            free(low[part].rows)
            free(low[part].keys)
        free(low)


cdef int _low_part(const Hashed *h, Py_ssize_t begin, Py_ssize_t end, Low *low) noexcept nogil:
    """Find the rows of a part, in memory that grows with them: hardly any may have a low key."""
    cdef Py_ssize_t row, room = 0
    cdef uint64_t key
    cdef void *more
    for row in range(begin, end):
        key = _scattered_key(h, row)
        if key > h.below[_whole_number(h.stratum + row * h.stratum_step, h.stratum_size) + 1]:
            continue
        if low.number == room:
            room = max(2 * room, <Py_ssize_t> 1024)
            more = realloc(low.rows, room * sizeof(Py_ssize_t))
            if more == NULL:
                return 1
            low.rows = <Py_ssize_t *> more
            more = realloc(low.keys, room * sizeof(uint64_t))
            if more == NULL:
                return 1
            low.keys = <uint64_t *> more
        low.rows[low.number], low.keys[low.number] = row, key
        low.number += 1
    return 0
