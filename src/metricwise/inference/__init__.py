"""What counted rows say of new rows: influence, bootstrap, confidence limits, comparisons of decisions.

Owns every interval. Must not fit rules.
"""
