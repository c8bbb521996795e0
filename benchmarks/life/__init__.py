"""A rule in use: class shares that move, values without labels, labels that come late, promises that are watched.

    python -m benchmarks.life a       rules adapted to moved class shares, beside QuaPy
    python -m benchmarks.life b       metrics without labels, beside NannyML
    python -m benchmarks.life c       streams: half-lives beside all rows
    python -m benchmarks.life d       watched promises: false alarms and delays, beside MAPIE
    python -m benchmarks.life e       EM beside QuaPy's, and times
    python -m benchmarks.life all     all of these, one after the other
    python -m benchmarks.life a --tables        the page alone, from the CSV file
    python -m benchmarks.life a --only car      sets by a part of their name; writes nothing

Results are in ``results/``: a CSV file and a page for each part. Probabilities of the models are kept in
``.cache/life`` and not fitted again. Some files of data are needed (METRICWISE_DATA, and the dependency group bench).
QuaPy and NannyML are in the dependency group bench-life: ``pip install --group bench --group bench-life -e .`` in an
environment of its own, because NannyML requires an older LightGBM than the tests, and Python below 3.13. The lines of
peers that are not installed are left out.
"""
