"""Tables of named columns: formats of files, reading and writing. pyarrow is imported when a table is opened."""
