"""Rules with `guarantee="exact"` beside MAPIE and beside `confidence=0.95`, in worlds whose truth is known.

    python -m benchmarks.guarantees                     writes guarantees.csv and guarantees.md in results/
    python -m benchmarks.guarantees monotone joint      some problems; the others as guarantees.csv has them
    python -m benchmarks.guarantees --tables            guarantees.md alone, from guarantees.csv
    python -m benchmarks.guarantees --repeats 4         a minute's worth, writes nothing

A run that was cut short goes on where it stopped; `--anew` measures again what is stored. Broken promises are counted
with the true precision, recall or accuracy of each rule: of a threshold by a table of 2^20 points, of other rules by
2^17 points of a Sobol sequence, common to all draws. Times are processor time on one thread.
"""
