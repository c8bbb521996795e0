"""Rules that satisfy constraints: binding, search, fit, validation on new rows, explanation of refusals."""
