"""A rule in use: what may be said of it once it has been fitted, as rows and labels come in."""
