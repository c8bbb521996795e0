"""Pages with tables and figures of the results, compared with the paper's numbers."""
