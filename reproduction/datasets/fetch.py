"""Find a file of a data set: in a local folder, in the cache, or at its owner's.

Owns the environment variables, the cache and the download. Must not know what the files mean.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from pathlib import Path

from .sources import Source

__all__ = ["DataError", "cache_folder", "digest", "fetch", "local_folder"]

_TIMEOUT = 30  # seconds without an answer


class DataError(OSError):
    """A data file that is missing, cannot be fetched, or is not what it should be."""


def local_folder() -> Path | None:
    """Return the folder that the environment variable ``METRICWISE_DATA`` names; None where it is not set.

    Examples
    --------
    >>> from reproduction.datasets import local_folder
    >>> folder = local_folder()
    >>> folder is None or folder.is_dir()
    True
    """
    named = os.environ.get("METRICWISE_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(f"METRICWISE_DATA must name a folder, got {named!r}.")
    return folder


def cache_folder() -> Path:
    """Return the folder that downloads are kept in: ``METRICWISE_CACHE``, or metricwise in the user's cache."""
    named = os.environ.get("METRICWISE_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "metricwise"


def digest(content: bytes, name: str) -> str:
    """Return the sha256 of a file's content; of an ARFF file, of its data section with plain line ends.

    The headers of ARFF files differ between copies of one data set, in the name of the relation and in spaces.
    """
    if name.endswith(".arff"):
        lines = content.replace(b"\r\n", b"\n").split(b"\n")
        start = next((i for i, line in enumerate(lines) if line.strip().lower() == b"@data"), -1)
        rows = (line.strip() for line in lines[start + 1 :])
        content = b"\n".join(row for row in rows if row and not row.startswith(b"%"))
    return hashlib.sha256(content).hexdigest()


def fetch(source: Source, folder: Path | str | None = None, *, verify: bool = True) -> Path:
    """Return the path of a data file, downloading it if need be.

    Parameters
    ----------
    source : Source
    folder : path, optional
        A local folder that holds the file; None takes ``METRICWISE_DATA``, then the cache, then the owner's address.
    verify : bool, default=True
        Compare a local file's sha256.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    DataError
        The file is missing, cannot be fetched, or has another sha256. No half file is left.
    """
    root = local_folder() if folder is None else Path(folder)
    if root is not None:
        path = root / source.path
        if not path.is_file():
            raise DataError(f"{source.name}: the folder {root} must hold {source.path}, and does not.")
        if verify:
            _check(path.read_bytes(), source, str(path))
        return path
    path = cache_folder() / source.path
    if path.is_file() and digest(path.read_bytes(), source.member) == source.sha256:
        return path
    content = _member(_download(source), source)
    _check(content, source, source.url)
    _write(path, content)
    return path


def _check(content: bytes, source: Source, where: str) -> None:
    found = digest(content, source.member)
    if found != source.sha256:
        raise DataError(
            f"{source.name}: {source.member} from {where} must have sha256 {source.sha256}, got {found}. Nothing was "
            "kept. The file was changed or damaged: fetch it again, or set METRICWISE_DATA to a folder that holds "
            f"the right {source.path}."
        )


def _download(source: Source) -> bytes:
    """Return the archive."""
    try:
        import pooch
    except ImportError as error:
        raise DataError(
            f"{source.name}: downloading needs pooch: pip install --group reproduction, or set METRICWISE_DATA to a "
            f"folder that holds {source.path} (from {source.url})."
        ) from error
    with tempfile.TemporaryDirectory(prefix="metricwise-") as folder:
        downloader = pooch.HTTPDownloader(timeout=_TIMEOUT)
        logger = pooch.get_logger()
        level = logger.level
        logger.setLevel("ERROR")
        try:
            downloaded = pooch.retrieve(source.url, None, fname="archive.zip", path=folder, downloader=downloader)
            return Path(downloaded).read_bytes()
        except OSError as error:  # what requests raises is one too
            raise DataError(
                f"{source.name}: cannot fetch {source.url} ({_words(error)}). Nothing was kept. Try again later, or "
                f"set METRICWISE_DATA to a folder that holds {source.path}."
            ) from error
        finally:
            logger.setLevel(level)


def _words(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text if len(text) <= 200 else text[:200] + '...'}"


def _member(archive: bytes, source: Source) -> bytes:
    """Return the file from the archive, also from an archive inside it."""
    try:
        found = _search(archive, source.member)
    except zipfile.BadZipFile as error:
        raise DataError(
            f"{source.name}: {source.url} must be a zip archive, got {len(archive)} bytes that are none ({error}): a "
            "truncated download or an error page. Nothing was kept; try again."
        ) from error
    if found is None:
        raise DataError(f"{source.name}: the archive {source.url} must hold {source.member}, and does not.")
    return found


def _search(archive: bytes, member: str) -> bytes | None:
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        names = files.namelist()
        for name in names:
            if name.rsplit("/", 1)[-1] == member:
                return files.read(name)
        for name in names:
            if name.endswith(".zip"):
                found = _search(files.read(name), member)
                if found is not None:
                    return found
    return None


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
