"""Databases for tests: Arrow tables are loaded into them, and connections of each driver opened."""

import sqlite3
from contextlib import closing, contextmanager

import duckdb
import numpy as np
import pyarrow as pa

LOCAL = ["duckdb", "sqlite"]
POSTGRES = ["psycopg", "psycopg, autocommit", "adbc"]

_TYPES = {
    "float": "REAL",
    "double": "DOUBLE PRECISION",
    "int64": "BIGINT",
    "int32": "INTEGER",
    "int8": "SMALLINT",
    "string": "TEXT",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
}


@contextmanager
def connected(driver, server=None, **tables):
    """Yield a connection to a database with some tables; `server` is one of PostgreSQL."""
    if driver == "duckdb":
        with duckdb.connect() as connection:
            for name, table in tables.items():
                connection.register("given", table)
                connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
                connection.unregister("given")
            yield connection
    elif driver == "sqlite":
        with closing(sqlite3.connect(":memory:")) as connection:
            for name, table in tables.items():
                connection.execute(_create(name, table))
                marks = ", ".join("?" for _ in table.column_names)
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", _rows(table))
            yield connection
    else:
        load(server, **tables)
        with open_postgres(driver, server) as connection:
            yield connection


def address(server):
    return f"postgresql:///postgres?host={server.folder}&user=postgres"


@contextmanager
def open_postgres(driver, server):
    """Yield a connection of a driver to a running server; broken ones are left as they are."""
    if driver == "adbc":
        from adbc_driver_postgresql import dbapi

        connection = dbapi.connect(address(server), autocommit=True)
    else:
        import psycopg

        connection = psycopg.connect(address(server), autocommit=driver != "psycopg")
    with closing(connection):
        yield connection


def load(server, **tables):
    """Write tables into PostgreSQL."""
    import psycopg

    with psycopg.connect(address(server)) as connection, connection.cursor() as cursor:
        for name, table in tables.items():
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.execute(_create(name, table))
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in _rows(table):
                    copy.write_row(row)


def _create(name, table):
    columns = ", ".join(f'"{field.name}" {_TYPES[str(field.type)]}' for field in table.schema)
    return f"CREATE TABLE {name} ({columns})"


def _rows(table):
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def rows_of(eta, labels, names, target="grade", **others):
    """Return a table with a column of numbers `p_<class>` for each class, an id, and labels, which may be missing."""
    columns = {f"p_{name}": eta[:, k] for k, name in enumerate(names)}
    return pa.table({"id": np.arange(len(eta)), **columns, target: pa.array(labels), **others})
