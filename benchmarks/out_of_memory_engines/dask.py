"""A Dask data frame of the Parquet files, on a cluster of two processes with one thread each."""

from __future__ import annotations

import importlib.util

from out_of_memory_engines import CLASSES, LABELS, NAMES, measure_call, measure_passes


def missing() -> str | None:
    return None if importlib.util.find_spec("distributed") else "distributed is not installed"


def measure(paths: list[str]) -> dict[str, float]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster
    from machine import resident

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        frame = dd.read_parquet(paths, split_row_groups=True)
        proba = frame[NAMES].rename(columns=dict(zip(NAMES, range(CLASSES), strict=True)))
        figures = {**measure_call(proba, frame[LABELS]), **measure_passes(proba, frame[LABELS])}
        return {**figures, "workers": sum(client.run(resident, "VmHWM").values())}
