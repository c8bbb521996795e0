# Searches along segments between summaries; part of `_compiled.pyx`.


def search_ratio_means(means, start, step, longest, grid, n_zooms):
    """Return where means of ratios are largest along segments; see the NumPy twin."""
    n_groups, k = means.weights.shape
    if k > MW_FEW_CLASSES or len(grid) > MW_POINTS or longest.size == 0 or n_zooms < 1:
        return _segments.search_ratio_means(means, start, step, longest, grid, n_zooms)
    out = np.empty(longest.shape)
    cdef const double[:, ::1] first = np.ascontiguousarray(start).reshape(-1, 2 * k)
    cdef const double[:, ::1] move = np.ascontiguousarray(step).reshape(-1, 2 * k)
    cdef const double[::1] ends = np.ascontiguousarray(longest).reshape(-1)
    cdef const double[:, ::1] weight = np.ascontiguousarray(means.weights)
    cdef const double[:, ::1] prior = np.ascontiguousarray(means.priors)
    cdef const double[::1] total = means.priors.sum(axis=-1)
    cdef const double[::1] points = grid
    cdef double[::1] into = out.reshape(-1)
    cdef mw_ratio ratio
    cdef Py_ssize_t s, g, n_segments = ends.shape[0], groups = n_groups
    cdef int i, n = <int> points.shape[0], best, turn, turns = n_zooms, classes = k
    cdef double low, high, width, chosen
    cdef double[MW_POINTS] lengths
    cdef double[MW_POINTS] values
    for i in range(4):
        ratio.above[i], ratio.below[i] = means.numerator[i], means.denominator[i]
    ratio.empty, ratio.zero_division = means.empty, means.zero_division
    with nogil:
        for s in range(n_segments):
            g = s % groups
            low, high, chosen = 0.0, ends[s], 0.0
            for turn in range(turns):
                for i in range(n):
                    lengths[i] = low + points[i] * (high - low)
                mw_ratio_means(
                    n, classes, lengths, &first[s, 0], &move[s, 0], &weight[g, 0], &prior[g, 0], total[g], &ratio, values
                )
                best = 0
                for i in range(1, n):
                    if values[i] >= values[best]:  # of equal values the longest step wins
                        best = i
                chosen = lengths[best]
                width = (high - low) / (n - 1)
                low = chosen - width if chosen - width > low else low
                high = chosen + width if chosen + width < high else high
            into[s] = chosen
    return out
