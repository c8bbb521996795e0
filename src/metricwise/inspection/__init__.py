"""What people look at: details counted from rows, cards, displays and reports.

Owns how a rule is shown. Must not fit rules.
"""
