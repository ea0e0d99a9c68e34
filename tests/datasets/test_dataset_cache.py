"""Downloads from a local server, and the cache folder."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from magmadnn_py.datasets import cache

FETCH = cache.fetch  # the real one: the fixture `isolated` replaces it in the module


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing":
            return self.send_error(404)
        if self.path == "/slow":
            time.sleep(1.0)
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(bytes(400 if self.path == "/cut" else 1000))

    def log_message(self, *_):
        pass


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # the client has gone, as it should


@pytest.fixture
def server():
    server = QuietServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_fetch(server):
    assert FETCH(f"{server}/good", largest=1000) == bytes(1000)


@pytest.mark.parametrize(
    ("page", "largest", "reason"),
    [
        ("missing", 1000, "404"),
        ("cut", 1000, "400 of 1000 bytes|IncompleteRead"),
        ("good", 999, "longer than the 999 bytes"),
    ],
)
def test_fetch_fails_with_a_reason(server, page, largest, reason):
    with pytest.raises(OSError, match=reason):
        FETCH(f"{server}/{page}", largest)


def test_fetch_gives_up_on_a_silent_server(server, monkeypatch):
    monkeypatch.setattr(cache, "CONNECT_SECONDS", 0.2)
    with pytest.raises(OSError, match="no answer within 0.2 s|timed out"):
        FETCH(f"{server}/slow", 1000)


def test_fetch_gives_up_on_a_silent_name_server(monkeypatch):
    monkeypatch.setattr(cache, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: time.sleep(1.0))
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="no answer within 0.1 s"):
        FETCH("http://nowhere.invalid/", 10)
    assert time.monotonic() - start < 0.9


def test_fetch_refused_connection():
    with pytest.raises(OSError):
        FETCH("http://127.0.0.1:9/", 10)


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MAGMADNN_CACHE", str(tmp_path))
    assert cache.cache_folder("mnist") == tmp_path / "datasets" / "mnist"
    monkeypatch.delenv("MAGMADNN_CACHE")
    default = cache.cache_folder("mnist")
    assert default.parts[-2:] == ("datasets", "mnist") and "magmadnn_py" in default.parts
