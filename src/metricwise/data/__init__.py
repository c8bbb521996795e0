"""Reads rows: arrays, labels, weights, data frames, tables and clusters. Import the module that defines a name."""
