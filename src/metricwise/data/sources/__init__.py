"""Sources of rows: a pass over all rows is a map and a sum. One file per engine; `base.py` has the interface."""
