# The log-partition function, its gradient and its Hessian, summed over rows; part of `_compiled.pyx`.

cdef Py_ssize_t _WIDEST = 128  # classes but one: beyond, the twin leaves products of matrices to BLAS
# An exponential takes as long as ten numbers that are counted: parts are small, and threads pay early.
cdef Py_ssize_t _PARTITION_WORK = 1 << 14
cdef Py_ssize_t _LEAST_PARTITION = 1 << 15
cdef Py_ssize_t _PARTITION_ROOM = 1 << 20  # numbers that all parts of all jobs may keep


cdef struct Logits:
    const double *data  # (B, k, N)
    const double *weight  # (B, N)
    const uint8_t *taken  # (R, N); NULL for all rows
    Py_ssize_t rows, classes
    Py_ssize_t room  # classes, rounded up: four are multiplied at once
    # Numbers that a part sums: the value, the first entry of the gradient, and two of nothing; the others of the
    # gradient; the first row of the Hessian; products of the classes that it is the rest of, the lower triangle.
    Py_ssize_t kept


cdef struct Moments:
    # Working memory of a part: two tiles of `room` classes, a multiple of four, and one row each of the others.
    void *held
    double *z
    double *p
    double *share
    double *away
    double *weight
    double *norm  # with the mean behind it, and two rows of zeros: four rows are multiplied together
    double *mean
    Py_ssize_t room


def log_partition(logits, weight, taken, jobs, theta, shown):
    """Sum the log-partition function and its derivatives; see the NumPy twin."""
    if logits.shape[1] > _WIDEST or logits.shape[2] >= 1 << 31 or logits.size == 0 or len(jobs) == 0:
        return _numpy.log_partition(logits, weight, taken, jobs, theta, shown)
    cdef const double[:, :, ::1] z = logits
    cdef const double[:, ::1] w = weight
    cdef const uint8_t[:, ::1] mask = None if taken is None else taken.view(np.uint8)
    cdef const Py_ssize_t[:, ::1] job = jobs
    cdef const double[:, ::1] at = theta
    cdef const uint8_t[:, ::1] classes = shown.view(np.uint8)
    cdef Py_ssize_t n_jobs = job.shape[0], k = z.shape[1], size = k + 1
    cdef Logits source
    source.data, source.weight, source.rows, source.classes = &z[0, 0, 0], &w[0, 0], z.shape[2], k
    source.taken = NULL if taken is None else &mask[0, 0]
    source.room = (k + 3) // 4 * 4
    source.kept = 4 + 2 * (source.room + 1) + k * source.room
    cdef Cut cut
    cut.rows = source.rows
    cut.tiles = (source.rows + MW_ROWS - 1) // MW_ROWS
    cut.parts = min(_MOST_PARTS, min(source.rows * k // _PARTITION_WORK, _PARTITION_ROOM // (n_jobs * source.kept)))
    cut.parts = max(min(cut.parts, cut.tiles), <Py_ssize_t> 1)
    cdef bint alone = _forked or n_jobs * source.rows * k < _LEAST_PARTITION
    cdef Py_ssize_t n_tasks = n_jobs * cut.parts, task
    cdef int threads = 1 if alone else min(<Py_ssize_t> mw_max_threads(), n_tasks)
    cdef double[:, :, ::1] sums = np.zeros((n_jobs, cut.parts, source.kept))
    cdef int failed = 0
    for task in prange(n_tasks, nogil=True, schedule="dynamic", num_threads=threads):
        failed += _partition_part(
            &source, job[task // cut.parts, 0], job[task // cut.parts, 1], &at[task // cut.parts, 0],
            &classes[task // cut.parts, 0], _begin(&cut, task % cut.parts), _begin(&cut, task % cut.parts + 1),
            &sums[task // cut.parts, task % cut.parts, 0]
        )
    if failed:
        raise MemoryError
    value, gradient, hessian = np.empty(n_jobs), np.empty((n_jobs, size)), np.empty((n_jobs, size, size))
    cdef double[::1] values = value
    cdef double[:, ::1] gradients = gradient
    cdef double[:, :, ::1] hessians = hessian
    for task in range(n_jobs):
        _put_sums(&source, cut.parts, &sums[task, 0, 0], &values[task], &gradients[task, 0], &hessians[task, 0, 0])
    return value, gradient, hessian


cdef void _put_sums(
    const Logits *source, Py_ssize_t parts, double *sums, double *value, double *gradient, double *hessian
) noexcept nogil:
    """Add the parts of one job in order, and lay its sums out."""
    cdef Py_ssize_t k = source.classes, size = k + 1, part, i, j
    cdef const double *first = sums + 5 + source.room
    cdef const double *products = first + source.room + 1
    for part in range(1, parts):
        for i in range(source.kept):
            sums[i] += sums[part * source.kept + i]
    value[0], gradient[0], hessian[0] = sums[0], sums[1], first[0]
    for i in range(k):
        gradient[i + 1] = sums[4 + i]
        hessian[i + 1] = hessian[(i + 1) * size] = first[i + 1]
        for j in range(i + 1):
            hessian[(i + 1) * size + j + 1] = hessian[(j + 1) * size + i + 1] = -products[i * source.room + j]
        hessian[(i + 1) * size + i + 1] += gradient[i + 1]


cdef int _allocate_moments(Moments *s, Py_ssize_t k) noexcept nogil:
    s.room = (k + 3) // 4 * 4
    s.z = mw_aligned((2 * s.room + 7) * MW_STEP, &s.held)
    if s.z == NULL:
        return -1
    s.p = s.z + s.room * MW_STEP
    s.share = s.p + s.room * MW_STEP
    s.away = s.share + MW_STEP
    s.weight = s.away + MW_STEP
    s.norm = s.weight + MW_STEP
    s.mean = s.norm + MW_STEP
    return 0


cdef int _partition_part(
    const Logits *source, Py_ssize_t resample, Py_ssize_t output, const double *theta, const uint8_t *shown,
    Py_ssize_t begin, Py_ssize_t end, double *sums
) noexcept nogil:
    """Go through the rows of a part that weigh something, as many at a time as a tile holds."""
    cdef Moments s
    cdef int32_t at[MW_ROWS]
    cdef const double *data = source.data + output * source.classes * source.rows
    cdef const double *weight = source.weight + output * source.rows
    cdef const uint8_t *taken = NULL if source.taken == NULL else source.taken + resample * source.rows
    cdef ptrdiff_t row = begin
    cdef Py_ssize_t j
    cdef int n, b, whole
    if _allocate_moments(&s, source.classes):
        return 1
    while row < end:
        n = mw_weighing(&row, end, weight, taken, at, s.weight)
        if n == 0:
            break
        for j in range(source.classes):
            mw_gather(n, data + j * source.rows, at, s.z + j * MW_STEP)
        whole = (n + 7) & ~7  # what lies behind the last row are numbers of rows before
        for b in range(n, whole):
            s.weight[b] = 0.0
        _add_tile(&s, whole, <int> source.classes, theta, shown, sums)
    free(s.held)
    return 0


cdef void _add_tile(
    const Moments *s, int n, int k, const double *theta, const uint8_t *shown, double *sums
) noexcept nogil:
    cdef double *first = sums + 5 + s.room
    cdef double *products = first + s.room + 1
    cdef Py_ssize_t i, j
    if k == 1 and shown[0] and shown[1]:
        mw_logistic(n, s.z, theta[0], theta[1], s.p, s.norm, s.mean)
    else:
        mw_softmax(n, k, s.z, theta[0], theta + 1, shown, s.p, s.norm, s.mean)
    mw_four_products(n, s.weight, s.norm, sums)
    for j in range(0, k, 4):
        mw_four_products(n, s.weight, s.p + j * MW_STEP, sums + 4 + j)
    for i in range(k):
        mw_shares(n, s.z + i * MW_STEP, s.weight, s.p + i * MW_STEP, s.mean, s.share, s.away)
        mw_product_and_sum(n, s.away, s.z + i * MW_STEP, first, first + 1 + i)
        for j in range(0, i + 1, 4):
            mw_four_products(n, s.share, s.p + j * MW_STEP, products + i * s.room + j)


def relative_logits(eta, outputs, n_classes, floor):
    """Return the logits of some outputs relative to class 0; see the NumPy twin."""
    if not _ours(eta) or eta.size == 0 or len(outputs) == 0:
        return _numpy.relative_logits(eta, outputs, n_classes, floor)
    cdef _Held held = _Held(eta)
    cdef Source source = held.source()
    cdef const Py_ssize_t[::1] chosen = np.ascontiguousarray(outputs, dtype=np.intp)
    out = np.empty((chosen.shape[0], n_classes - 1, source.rows))
    cdef double[:, :, ::1] into = out
    cdef double least = floor
    source.logits = least == 0.0
    source.width = source.stored = n_classes  # what lies behind is padding
    cdef Cut cut = _cut(source.rows, 8 * out.size, 1)  # a logarithm costs as much as reading eight numbers
    cdef Py_ssize_t part
    cdef int failed = 0
    for part in prange(cut.parts, nogil=True, schedule="dynamic", num_threads=cut.threads):
        failed += _logits_part(
            &source, &chosen[0], chosen.shape[0], least, _begin(&cut, part), _begin(&cut, part + 1), &into[0, 0, 0]
        )
    if failed:
        raise MemoryError
    return out


cdef int _logits_part(
    const Source *source, const Py_ssize_t *chosen, Py_ssize_t n_chosen, double floor, Py_ssize_t begin,
    Py_ssize_t end, double *out
) noexcept nogil:
    cdef Scratch s
    cdef Py_ssize_t row = begin, m, k = source.width
    cdef int n
    if _allocate(&s, k, False, False):
        return 1
    while row < end:
        n = <int> min(<Py_ssize_t> MW_ROWS, end - row)
        for m in range(n_chosen):
            _read(source, row, chosen[m], n, s.tile)
            mw_logits(n, <int> k, floor, s.tile, out + m * (k - 1) * source.rows + row, source.rows)
        row += n
    free(s.held)
    return 0
