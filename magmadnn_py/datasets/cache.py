"""The cache folder of the data sets, downloads, and files that appear whole or not at all."""

import contextlib
import hashlib
import http.client
import os
import queue
import secrets
import threading
import time
import urllib.request
from pathlib import Path

import platformdirs

CONNECT_SECONDS = 5.0  # a machine without network must reach the next source soon
DOWNLOAD_SECONDS = 300.0  # a server that trickles is given up after this
CHUNK_BYTES = 1 << 18


def cache_folder(name: str) -> Path:
    """Folder `datasets/<name>` under `MAGMADNN_CACHE`, by default under the user's cache folder."""
    root = os.environ.get("MAGMADNN_CACHE") or platformdirs.user_cache_dir("magmadnn_py")
    return Path(root).expanduser() / "datasets" / name


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


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def fetch(url: str, largest: int) -> bytes:
    """Body of `url`, of at most `largest` bytes.

    Raises OSError with the reason: no answer within CONNECT_SECONDS, an HTTP error, too long, or cut short.
    """
    try:
        with _open_url(url) as response:
            return _read_body(response, largest)
    except http.client.HTTPException as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _open_url(url: str):
    # urlopen's own timeout does not cover the name look-up, so it runs in a thread that can be left behind.
    answers: queue.SimpleQueue = queue.SimpleQueue()

    def ask() -> None:
        request = urllib.request.Request(url, headers={"User-Agent": "magmadnn_py"})
        try:
            answers.put(urllib.request.urlopen(request, timeout=CONNECT_SECONDS))
        except BaseException as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=CONNECT_SECONDS)
    except queue.Empty:
        raise TimeoutError(f"no answer within {CONNECT_SECONDS:g} s") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _read_body(response, largest: int) -> bytes:
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    promised = response.length
    body = bytearray()
    while chunk := response.read(CHUNK_BYTES):
        body += chunk
        if len(body) > largest:
            raise OSError(f"longer than the {largest} bytes it may have")
        if time.monotonic() > deadline:
            raise TimeoutError(f"not finished within {DOWNLOAD_SECONDS:g} s")
    if promised is not None and len(body) != promised:
        raise OSError(f"cut short: {len(body)} of {promised} bytes came")
    return bytes(body)
