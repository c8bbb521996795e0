"""The paper's experiments, from data to tables beside the paper's own: ``python -m reproduction uci --quick``.

Stands beside the library and is no part of it: it uses the public names of metricwise as any reader of the paper could.

- ``cli``: what people type. ``catalogue``: experiments by name, on the data at hand.
- ``experiments``: what is measured. ``reports``: tables and figures of it, next to the numbers that the paper prints.
- ``running``: repetitions that can be stopped and continued. ``protocol``: what it asks of an experiment.
- ``datasets``: the paper's data, fetched, checked and read. ``models``: OrdRec.
"""
