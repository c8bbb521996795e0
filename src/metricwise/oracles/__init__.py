"""The oracle: everything that is counted of rows, behind one interface.

It answers a loss with the confusion tensor of the rule that minimises it, over any source of rows. Must not know
solvers.
"""
