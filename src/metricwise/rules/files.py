"""Writing a text, or bytes, to where a path leads: whole or not at all into a file, straight into anything else.

Owns what becomes of the file that is there. Loaded where a rule meets a file: most never do.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["write_bytes", "write_text"]

_STREAMS = {"stdin": 0, "stdout": 1, "stderr": 2}


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text in UTF-8; see :func:`write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes; a file that is there keeps its permissions, a link stays a link, a device or a pipe what it is.

    Parameters
    ----------
    path : path
        A file is replaced in one step, so that readers see the old content or the new one, and a failure leaves the
        old one. Pipes, terminals, other devices, and streams of this process have no old content: they are written to.
    content : bytes
    """
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
        _replace(Path(os.path.realpath(path)), content, old)
        return
    with path.open("wb") as file:
        file.write(content)


def _own_stream(path: str) -> int | None:
    """Return the descriptor that a path such as /dev/stdout or /dev/fd/3 means.

    Opening that path would be another thing where the stream goes to a file: from its start, over what is there.
    """
    found = re.fullmatch(rf"/dev/(stdin|stdout|stderr)|(?:/dev|/proc/(?:self|{os.getpid()}))/fd/(\d+)", path)
    if found is None or os.name != "posix":
        return None
    return _STREAMS[found[1]] if found[1] else int(found[2])


def _write_stream(stream: int, content: bytes) -> None:
    for own in (sys.stdout, sys.stderr):  # what was printed before comes before
        if own is not None:
            own.flush()
    with os.fdopen(os.dup(stream), "wb") as file:
        file.write(content)


def _replace(path: Path, content: bytes, old: os.stat_result | None) -> None:
    # A reader sees the old file or the new one: renaming within a directory is atomic.
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")

    def create(name: str, flags: int) -> int:
        # At no time can more people read the new file than could read the old one.
        return os.open(name, flags, 0o666 if old is None else 0o600)

    try:
        with open(temporary, "xb", opener=create) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if old is not None:
            _pass_on(old, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _pass_on(old: os.stat_result, path: Path) -> None:
    """Give a new file the owner, where one may, and the permissions of the old one."""
    new = path.stat()
    if hasattr(os, "chown") and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    path.chmod(stat.S_IMODE(old.st_mode))
