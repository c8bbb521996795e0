"""Writing of text and bytes: a file is replaced completely or not at all, streams and devices are written to."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

_HAS_LOCKS = os.name == "posix"  # on Windows a file that is open cannot be removed anyway
if _HAS_LOCKS:
    import fcntl

_STREAMS = {"stdin": 0, "stdout": 1, "stderr": 2}
_NAME_KEPT = 40  # characters; names have at most 255 bytes
_WRITES: ContextVar[Writes | None] = ContextVar("_WRITES", default=None)  # where files that are replaced are noted


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text in UTF-8; see :func:`write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes; a file that is there keeps its permissions, a link stays a link, a device or a pipe what it is."""
    path = Path(path)
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"There is no folder {folder}", str(path))
    stream = _own_stream(str(path))
    if stream is not None:
        _write_stream(stream, content)
        return
    try:
        old = path.stat()
    except FileNotFoundError:
        old = None
    if old is None or stat.S_ISREG(old.st_mode):
        with replacing(Path(os.path.realpath(path))) as file:
            file.write(content)
        return
    with path.open("wb") as file:
        file.write(content)


def _own_stream(path: str) -> int | None:
    """Return the descriptor that a path such as /dev/stdout or /dev/fd/3 means.

    Opening that path would be another thing where the stream goes to a file: from its start, over what is there.
    """
    match = re.fullmatch(rf"/dev/(stdin|stdout|stderr)|(?:/dev|/proc/(?:self|{os.getpid()}))/fd/(\d+)", path)
    if match is None or os.name != "posix":
        return None
    return _STREAMS[match[1]] if match[1] else int(match[2])


def _write_stream(stream: int, content: bytes) -> None:
    for standard in (sys.stdout, sys.stderr):  # what was printed before comes before
        if standard is not None:
            standard.flush()
    with os.fdopen(os.dup(stream), "wb") as file:
        file.write(content)


class Writes:
    """Files that are about to be replaced, and the new ones: which were, is looked up when it is asked.

    An interrupt may come at any moment, also between a deed and the note that it is done.
    """

    def __init__(self) -> None:
        self._pairs: list[tuple[Path, os.stat_result]] = []

    def announce(self, path: Path, new: os.stat_result) -> None:
        """Note that a file is about to take the place of another."""
        self._pairs.append((path, new))

    def done(self) -> list[Path]:
        """Return the files that were replaced."""
        return [path for path, new in self._pairs if path.exists() and os.path.samestat(path.stat(), new)]


@contextmanager
def noting_writes() -> Iterator[Writes]:
    """Note the files that are replaced meanwhile, so that who is interrupted can say what was written."""
    writes = Writes()
    token = _WRITES.set(writes)
    try:
        yield writes
    finally:
        _WRITES.reset(token)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once it is complete; a failure leaves the old one, and nothing else.

    A writer that was killed leaves its unfinished file. The next one that writes to the same path removes it, and knows
    by the lock, which ends with its process, that nobody is writing to it.
    """
    try:
        old = path.stat()
    except FileNotFoundError:
        old = None
    _remove_abandoned(path)
    temporary = path.with_name(f"{_unfinished(path)}{secrets.token_hex(8)}.tmp")
    try:  # from here on, because an interrupt may come at once after the file was made
        # At no time can more people read the new file than could read the old one.
        with _locked_file(temporary, 0o666 if old is None else 0o600) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if old is not None:
                _pass_on(old, temporary)
            if _HAS_LOCKS:  # else an open file cannot be renamed
                _rename(temporary, path)
        if not _HAS_LOCKS:
            _rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _rename(temporary: Path, path: Path) -> None:
    """Put a complete file in the place of `path`."""
    writes = _WRITES.get()
    if writes is not None:
        writes.announce(path, temporary.stat())
    temporary.replace(path)


def _unfinished(path: Path) -> str:
    """How names of unfinished files for a path start: not all of its name, so that it is not too long."""
    return f".{path.name[:_NAME_KEPT]}."


def _locked_file(temporary: Path, mode: int) -> BinaryIO:
    """Create an empty file, and lock it."""
    while True:
        file = open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115  # handed on
        try:
            if _lock(file) is not False and temporary.exists():
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # taken for abandoned before it was locked, and removed
        temporary.unlink(missing_ok=True)


def _lock(file: BinaryIO) -> bool | None:
    """Lock a file: whether nobody else holds the lock, None where the file system has no locks."""
    if not _HAS_LOCKS:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _remove_abandoned(path: Path) -> None:
    """Remove what killed writers to the same path have left."""
    pattern = re.compile(re.escape(_unfinished(path)) + r"[0-9a-f]{16}\.tmp")
    others: list[Path] = []
    with suppress(OSError):  # a folder that may be written and not listed
        others = [other for other in path.parent.iterdir() if pattern.fullmatch(other.name)]
    for other in others:
        with suppress(OSError):  # of another user, or gone already
            if not _HAS_LOCKS:
                other.unlink()  # fails while it is open
                continue
            with other.open("rb+") as file:
                if _lock(file):
                    other.unlink()


def _pass_on(old: os.stat_result, path: Path) -> None:
    """Give a new file the owner, where one may, and the permissions of the old one."""
    new = path.stat()
    if hasattr(os, "chown") and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    path.chmod(stat.S_IMODE(old.st_mode))
