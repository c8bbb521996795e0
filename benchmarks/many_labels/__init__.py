"""Very many labels, of which a row stores few probabilities and gets few: beside xcolumns.

    python -m benchmarks.many_labels data        makes two of the real sets (`sources.py`), unless they are there
    python -m benchmarks.many_labels value       values on fresh rows, with standard errors
    python -m benchmarks.many_labels speed       times of fits and decisions; a quiet machine
    python -m benchmarks.many_labels memory      peak memory
    python -m benchmarks.many_labels growth      times by stored entries, 10^6 to 10^8; needs 8 GB
    python -m benchmarks.many_labels all         all but the data
    python -m benchmarks.many_labels tables      the page alone, from the CSV files

    --sets depends debtags        some of the sets: synthetic, depends, delicious, debtags, hypernyms; memory: million
    --goals "macro-F1@3"          goals by a part of their title
    --contestants metricwise      contestants by a part of their library and name
    --splits 2 --rows 20000 --tries 1 --jobs 2 --threads 1
    --output FOLDER               of results (or, with ``data``, of the sets)

Results are in ``results/``: a CSV file for each part, and a page. Lines of the files that a call measures again are
replaced, the others stay: peers need not be measured again after a change of ours. With `--rows` nothing is written
unless `--output` says where. All of it takes some hours, nearly all of which are xcolumns'.
"""
