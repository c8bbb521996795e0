"""The functions that users call: optimize, evaluate, trade_off, predict_table, show_versions.

Owns the reading of their arguments and their results. The names are public in :mod:`metricwise`.
"""
