"""Rules that keep constraints: what the constraints are about, the search, the fit, and what holds on new rows."""
