"""The user's cache folder, and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

import platformdirs


def cache_root() -> Path:
    """`MAGMADNN_CACHE`, by default this library's folder in the user's cache folder."""
    return Path(os.environ.get("MAGMADNN_CACHE") or platformdirs.user_cache_dir("magmadnn_py")).expanduser()


def atomic_write(path: str | os.PathLike, *parts: bytes) -> None:
    """Writes `parts` one after another as the file `path`, making its folder if need be.

    The bytes go to a new name in the same folder, which is then renamed: a reader, or another process writing
    the same file, sees a whole file or none.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as file:
            for part in parts:
                file.write(part)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def set_aside(path: Path) -> None:
    """Renames a bad file to `<name>.bad`, so that it is not read again; stays if it cannot be renamed."""
    with contextlib.suppress(OSError):
        os.replace(path, path.with_name(path.name + ".bad"))
