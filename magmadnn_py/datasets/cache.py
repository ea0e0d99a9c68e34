"""The cache folder of the data sets, and downloads."""

import hashlib
import http.client
import queue
import threading
import time
import urllib.request
from pathlib import Path

from ..utils.files import cache_root

CONNECT_SECONDS = 5.0  # a machine without network must reach the next source soon
DOWNLOAD_SECONDS = 300.0  # a server that trickles is given up after this
CHUNK_BYTES = 1 << 18


def cache_folder(name: str) -> Path:
    """Folder `datasets/<name>` under `MAGMADNN_CACHE`, by default under the user's cache folder."""
    return cache_root() / "datasets" / name


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
