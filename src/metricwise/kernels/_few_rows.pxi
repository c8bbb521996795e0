# Decisions about few rows of one output, checked and taken in one call; part of `_compiled.pyx`.


cdef class RowDecider:
    """Checks probabilities of one output and decides about them; see the NumPy twin."""
    cdef _Rules _rules
    cdef list _held
    cdef Source _source  # all but the rows
    cdef Py_ssize_t _n_classes
    cdef double _tolerance

    def __init__(self, loss, link, n_classes, tolerance):
        self._rules = _Rules([loss])
        self._n_classes, self._tolerance = n_classes, tolerance
        self._source.outputs, self._source.output_step = 1, 0
        self._source.stored = self._source.width = n_classes
        self._source.temperature, self._source.bias, self._source.counts = NULL, NULL, NULL
        self._source.floor, self._source.logits = 0.0, False
        self._held = _put_link(&self._source, link, np.array([n_classes], dtype=np.intp))

    def decide(self, eta):
        """Return codes (N,), or None; see the NumPy twin."""
        cdef Py_buffer buffer
        cdef Source source = self._source
        cdef Py_ssize_t n
        if not _ours(eta):
            return None
        PyObject_GetBuffer(eta, &buffer, PyBUF_STRIDED_RO)
        try:
            n = buffer.shape[0] if buffer.ndim > 0 else 0
            if n == 0 or n > MW_ROWS or buffer.ndim > 2:
                return None
            source.positive = buffer.ndim == 1
            if (self._n_classes if buffer.ndim == 1 else buffer.shape[1]) != (2 if buffer.ndim == 1 else self._n_classes):
                return None
            source.data, source.size, source.rows = <const char *> buffer.buf, <int> buffer.itemsize, n
            source.row_step = buffer.strides[0]
            source.class_step = 0 if source.positive else buffer.strides[1]
            out = np.empty(n, dtype=np.intp)
            if not self._write(&source, out):
                return None
            return out
        finally:
            PyBuffer_Release(&buffer)

    cdef bint _write(self, const Source *source, Py_ssize_t[::1] codes) except -1:
        """Write the codes of rows that are probabilities; False of others."""
        cdef Source bare = source[0]
        bare.temperature = NULL
        if _check_part(&bare, self._tolerance, 0, source.rows):
            return False
        if _decide_rows(
            source, self._rules.rules, self._rules.plain, &self._n_classes, 0, source.rows, &codes[0]
        ):
            raise MemoryError
        return True
