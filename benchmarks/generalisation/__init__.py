"""Does the automatic choice of recipe keep its promises on rows it has not seen?

`python -m benchmarks.generalisation run` fits base models to real and synthetic sets, fits every recipe and peer to
their out-of-fold probabilities, measures all of them on held-out rows, and writes tables, figures and the page of the
documentation. The stages are resumable and deterministic.
"""
