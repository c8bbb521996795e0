"""A world's rows in what people keep them in: arrays, frames, sparse matrices, tensors, Dask collections, tables.

Knows what holds rows, and nothing of the library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tests.golden.worlds import World

TABLES = ("csv", "tsv", "parquet", "feather", "npz")
CHUNK = 90  # rows of a chunk of Dask's, so that every world has several


class Tensor:
    """What PyTorch's tensors can do: on a device or not, of a type that NumPy lacks or not."""

    def __init__(self, array: np.ndarray, *, device: bool = False) -> None:
        self.array, self.device = array, device
        self.shape, self.dtype, self.ndim = array.shape, f"torch.{array.dtype}", array.ndim

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> Tensor:
        return Tensor(self.array[rows], device=self.device)

    def detach(self) -> Tensor:
        return self

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32), device=self.device)

    def cpu(self) -> Tensor:
        return Tensor(self.array)

    def numpy(self) -> np.ndarray:
        if self.device:
            raise RuntimeError("can't convert a tensor on a device")
        return self.array

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self.numpy()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0) if self.device else (1, 0)

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.device or self.array.dtype == ml_dtypes.bfloat16:
            raise BufferError("cannot be exported")
        return self.array.__dlpack__(**kwargs)


def probabilities(world: World, which: str, form: str = "array") -> Any:
    """Return the probabilities of the rows that are given or new, in a form."""
    rows, kind = world.part(which), world.spec.kind
    blocks = [eta[rows] for eta in world.eta]
    if form in ("pandas", "polars", "dask_frame"):
        return _frames(world, blocks, form)
    if kind == "binary" and form != "columns":
        values: Any = blocks[0][:, 1]
    elif kind in ("binary", "multiclass", "ordinal"):
        values = blocks[0]
    elif kind == "multilabel":
        values = np.stack([eta[:, 1] for eta in blocks], axis=1)
    elif kind == "multioutput":
        values = np.stack(blocks, axis=1)
    else:
        return [_kept(eta, form) for eta in blocks]
    return _kept(values, form)


def _kept(values: np.ndarray, form: str) -> Any:
    match form:
        case "list":
            return values.tolist()
        case "fortran":
            return np.asfortranarray(values)
        case "float32":
            return values.astype(np.float32)
        case "sparse":
            from scipy.sparse import csr_array

            return csr_array(np.where(values < 0.2, 0.0, values))
        case "tensor":
            return Tensor(values)
        case "device_tensor":
            return Tensor(values, device=True)
        case "bfloat16":
            return Tensor(values.astype(ml_dtypes.bfloat16))
        case "dask_array":
            import dask.array as da

            return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))
        case _:
            return values


def _frames(world: World, blocks: list[np.ndarray], form: str) -> Any:
    if world.spec.kind == "multilabel":
        columns = {name: eta[:, 1] for name, eta in zip(world.names, blocks, strict=True)}
        return _frame(columns, form)
    named = [dict(zip(names, eta.T, strict=True)) for names, eta in zip(world.classes, blocks, strict=True)]
    frames = [_frame(columns, form) for columns in named]
    return frames if world.several else frames[0]


def _frame(columns: dict[Any, np.ndarray], form: str) -> Any:
    if form == "polars":
        import polars as pl

        return pl.DataFrame({str(name): values for name, values in columns.items()})
    import pandas as pd

    frame = pd.DataFrame(columns)
    if form == "dask_frame":
        import dask.dataframe as dd

        return dd.from_pandas(frame, npartitions=4)
    return frame


def targets(world: World, which: str, form: str = "array", missing: Any = None) -> Any:
    """Return the labels in a form; `missing` is what stands where there is none."""
    columns = world.labels(which, missing=missing)
    if form == "categorical":
        import pandas as pd

        return pd.Series(pd.Categorical(columns[0], categories=world.order, ordered=True))
    if form in ("pandas", "polars", "dask_frame"):
        return _target_frame(world, columns, form)
    values = np.stack(columns, axis=1) if world.several and not _unlike(columns) else columns[0]
    if world.several and _unlike(columns):
        values = np.stack([column.astype(object) for column in columns], axis=1)
    if form == "list":
        return values.tolist()
    if form == "dask_array":
        import dask.array as da

        return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))
    if form == "sparse":
        from scipy.sparse import csr_array

        return csr_array(values)
    return values


def _unlike(columns: list[np.ndarray]) -> bool:
    return len({column.dtype.kind for column in columns}) > 1


def _target_frame(world: World, columns: list[np.ndarray], form: str) -> Any:
    named = dict(zip(world.names, columns, strict=True))
    if form == "polars":
        import polars as pl

        return pl.DataFrame(named) if world.several else pl.Series("target", columns[0])
    import pandas as pd

    held = pd.DataFrame(named) if world.several else pd.Series(columns[0], name="target")
    if form == "dask_frame":
        import dask.dataframe as dd

        return dd.from_pandas(held, npartitions=4)
    return held


def like(values: np.ndarray, form: str) -> Any:
    """Return what is known of rows besides, in the form of the rows."""
    if form == "dask_array":
        import dask.array as da

        return da.from_array(values, chunks=CHUNK)
    if form == "dask_frame":
        import dask.dataframe as dd
        import pandas as pd

        return dd.from_pandas(pd.Series(values), npartitions=4)
    return values.tolist() if form == "list" else values


# ----------------------------------------------------------------------------------------------------------- tables


def table(world: World, which: str, *, prefix: str = "p_") -> dict[str, np.ndarray]:
    """Return the columns of a table: an identifier, probabilities, labels, and what is known of rows besides."""
    rows = world.part(which)
    columns: dict[str, np.ndarray] = {"id": np.array([f"{row:05d}" for row in range(rows.start, rows.stop)])}
    for name, classes, eta in zip(world.names, world.classes, world.eta, strict=True):
        if world.spec.kind == "multilabel":
            columns[f"{prefix}{name}"] = eta[rows, 1]
        else:
            head = f"{name}=" if world.several else prefix
            columns |= {f"{head}{label}": eta[rows, c] for c, label in enumerate(classes)}
    labels = world.labels(which)
    columns |= dict(zip(world.names, labels, strict=True)) if world.several else {"target": labels[0]}
    others = {"weight": world.weight, "frequency": world.frequency, "cluster": world.cluster, "time": world.time}
    others |= {"sex": world.sex, "region": world.region}
    return columns | {name: values[rows] for name, values in others.items()}


def write_table(world: World, which: str, path: Path, *, prefix: str = "p_") -> Path:
    """Write that table in the format of the ending of a path."""
    columns = table(world, which, prefix=prefix)
    if path.suffix == ".npz":
        form = "columns" if world.spec.kind == "binary" else "array"
        np.savez(path, proba=probabilities(world, which, form), target=targets(world, which), weight=columns["weight"])
        return path
    import pandas as pd

    frame = pd.DataFrame(columns)
    if path.suffix in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",", float_format="%.17g")
    elif path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=CHUNK)
    else:
        frame.to_feather(path)
    return path
