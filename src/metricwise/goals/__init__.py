"""What the user is judged by: the metric averaged over outputs, constraints, and metrics for each output.

Owns the step from what was asked to a metric or a constraint that can be bound to class priors. Must not know rows,
oracles or solvers.
"""
