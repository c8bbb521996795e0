"""From a problem to a rule: solving, selection among recipes, bagging, constraints, groups, costs per row.

Owns how a rule is fitted and chosen. Must not read user input, nor show anything.
"""
