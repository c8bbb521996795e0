# Fits of links to few rows by damped Newton steps, each by one thread; part of `_compiled.pyx`.

cdef Py_ssize_t _LEAST_FITS = 1 << 13  # logits of all fits, from which threads pay: each is read about four times


cdef struct Fits:
    const Py_ssize_t *jobs  # (J, 2)
    const uint8_t *shown  # (J, k); this and what follows as in the NumPy twin
    const double *scale
    const double *labels
    const double *center
    const double *penalty
    const double *least
    double scale_strength
    double tol
    int steps
    Py_ssize_t size  # k, the number of parameters


cdef struct Newton:
    # Working memory of a fit: sums over rows and, of size k or k * k, what is made of them; where it goes next.
    double *sums
    double *gradient
    double *hessian
    double *factor
    double *step
    double *trial
    double value


def fit_links(fits, start):
    """Minimise the penalised likelihoods of links; see the NumPy twin, which serves where rows are many."""
    logits = fits.logits
    cdef Py_ssize_t n_jobs = start.shape[0], k = logits.shape[1], rows = logits.shape[2], size = k + 1, job
    # Passes over so few rows are one part: sums are the same as those of `log_partition`.
    if k > _WIDEST or logits.size == 0 or n_jobs == 0 or rows * k >= 2 * _PARTITION_WORK:
        return _newton.fit_links(fits, start, log_partition)
    cdef const double[:, :, ::1] z = logits
    cdef const double[:, ::1] w = fits.weight
    cdef const uint8_t[:, ::1] mask = None if fits.taken is None else fits.taken.view(np.uint8)
    cdef const Py_ssize_t[:, ::1] jobs = fits.jobs
    cdef const uint8_t[:, ::1] shown = fits.shown.view(np.uint8)
    cdef const double[::1] scale = fits.scale, center = fits.center, least = fits.least
    cdef const double[:, ::1] labels = fits.labels, penalty = fits.penalty
    cdef Logits source
    source.data, source.weight, source.rows, source.classes = &z[0, 0, 0], &w[0, 0], rows, k
    source.taken = NULL if fits.taken is None else &mask[0, 0]
    source.room = (k + 3) // 4 * 4
    source.kept = 4 + 2 * (source.room + 1) + k * source.room
    cdef Fits of
    of.jobs, of.shown, of.scale, of.labels = &jobs[0, 0], &shown[0, 0], &scale[0], &labels[0, 0]
    of.center, of.penalty, of.least = &center[0], &penalty[0, 0], &least[0]
    of.scale_strength, of.tol, of.steps, of.size = fits.scale_strength, _newton.TOL, _newton.MAX_STEPS, size
    out = np.array(start, dtype=np.float64, order="C")
    cdef double[:, ::1] theta = out
    cdef bint alone = _forked or n_jobs * rows * k < _LEAST_FITS
    cdef int threads = 1 if alone else min(<Py_ssize_t> mw_max_threads(), n_jobs), failed = 0
    for job in prange(n_jobs, nogil=True, schedule="dynamic", num_threads=threads):
        failed += _fit_one(&source, &of, job, &theta[job, 0])
    # A Hessian that is singular to rounding is left to LAPACK, and so is its error.
    return _newton.fit_links(fits, start, log_partition) if failed else out


cdef int _fit_one(const Logits *source, const Fits *of, Py_ssize_t job, double *theta) noexcept nogil:
    """Go on until hardly anything is left to gain; 1 where this fails."""
    cdef Py_ssize_t size = of.size, n_shown = 0, j
    cdef Newton s
    cdef double value, gain, least = of.least[job], length
    cdef int turn, failed = 0
    for j in range(size):
        n_shown += of.shown[job * size + j]
    if n_shown < 2:
        theta[0] = 1.0
        for j in range(1, size):
            theta[j] = 0.0
        return 0
    s.sums = <double *> malloc((source.kept + 3 * size + 2 * size * size) * sizeof(double))
    if s.sums == NULL:
        return 1
    s.gradient = s.sums + source.kept
    s.step = s.gradient + size
    s.trial = s.step + size
    s.hessian = s.trial + size
    s.factor = s.hessian + size * size
    failed = _penalised(source, of, job, theta, &s)
    for turn in range(of.steps):
        if failed:
            break
        failed = _newton_step(of, theta[0] <= least and s.gradient[0] > 0.0, &s)
        if failed:
            break
        gain, value, length = 0.0, s.value, 1.0
        for j in range(size):
            gain -= s.gradient[j] * s.step[j]
        if gain <= 2.0 * of.tol:  # so short, it needs no check
            _move(size, theta, s.step, 1.0, least, theta)
            break
        while True:
            _move(size, theta, s.step, length, least, s.trial)
            failed = _penalised(source, of, job, s.trial, &s)
            if failed or not (s.value > value - 1e-4 * length * gain + 1e-12 * fabs(value) and length > 1e-6):
                break
            length /= 2.0
        memcpy(theta, s.trial, size * sizeof(double))
    free(s.sums)
    return failed


cdef void _move(
    Py_ssize_t size, const double *theta, const double *step, double length, double least, double *out
) noexcept nogil:
    """Go so far, with the temperature held to its bound."""
    cdef Py_ssize_t j
    for j in range(size):
        out[j] = theta[j] + length * step[j]
    out[0] = out[0] if out[0] > least else least


cdef int _penalised(
    const Logits *source, const Fits *of, Py_ssize_t job, const double *theta, Newton *s
) noexcept nogil:
    """Value, gradient and Hessian at theta; 1 if there is no memory."""
    cdef Py_ssize_t size = of.size, i, j
    cdef double scale = of.scale[job], slope, ratio
    cdef const double *labels = of.labels + job * size
    memset(s.sums, 0, source.kept * sizeof(double))
    if _partition_part(
        source, of.jobs[2 * job], of.jobs[2 * job + 1], theta, of.shown + job * size, 0, source.rows, s.sums
    ):
        return 1
    _put_sums(source, 1, s.sums, &s.value, s.gradient, s.hessian)
    s.value *= scale
    for i in range(size):
        slope = 0.0
        for j in range(size):
            slope += of.penalty[i * size + j] * (theta[j] - of.center[j])
            s.hessian[i * size + j] = s.hessian[i * size + j] * scale + of.penalty[i * size + j]
        s.value += 0.5 * slope * (theta[i] - of.center[i]) - theta[i] * labels[i]
        s.gradient[i] = s.gradient[i] * scale - labels[i] + slope
    if of.scale_strength:
        ratio = c_log(theta[0] / of.center[0])
        s.value += 0.5 * of.scale_strength * ratio * ratio
        s.gradient[0] += of.scale_strength * ratio / theta[0]
        s.hessian[0] += of.scale_strength / (theta[0] * theta[0])
    return 0


cdef int _newton_step(const Fits *of, bint held, Newton *s) noexcept nogil:
    """Solve for the step by Cholesky's factors, without the temperature where it is held; 1 if that fails."""
    cdef Py_ssize_t size = of.size, first = 1 if held else 0, i, j, l
    cdef double total
    cdef double *L = s.factor
    s.step[0] = 0.0
    for i in range(first, size):
        for j in range(first, i + 1):
            total = s.hessian[i * size + j]
            for l in range(first, j):
                total -= L[i * size + l] * L[j * size + l]
            if i > j:
                L[i * size + j] = total / L[j * size + j]
            elif total > 0.0:
                L[i * size + i] = sqrt(total)
            else:
                return 1
        total = -s.gradient[i]
        for l in range(first, i):
            total -= L[i * size + l] * s.step[l]
        s.step[i] = total / L[i * size + i]
    for i in range(size - 1, first - 1, -1):
        total = s.step[i]
        for l in range(i + 1, size):
            total -= L[l * size + i] * s.step[l]
        s.step[i] = total / L[i * size + i]
    return 0
