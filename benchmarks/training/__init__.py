"""Does it help to choose configurations, and to stop boosting, by what the best rule makes of the probabilities?

`python -m benchmarks.training run` fits models to real sets, chooses among their configurations and rounds by log loss,
by the metric at argmax and by the metric at the best rule, fits a rule to the probabilities of the choice, measures it
on held-out rows, and writes tables and the page of the documentation. The stages are resumable and deterministic.
"""
