"""The experiments of the paper, compared with its tables: ``python -m reproduction uci --quick``.

Not part of the library: it uses only public names of metricwise.

- ``cli``: what people type. ``catalogue``: experiments by name, on the data at hand.
- ``experiments``: what is measured. ``reports``: tables and figures of it, next to the numbers that the paper prints.
- ``running``: repetitions that can be stopped and continued. ``protocol``: what it asks of an experiment.
- ``datasets``: the paper's data, fetched, checked and read. ``models``: OrdRec.
"""
