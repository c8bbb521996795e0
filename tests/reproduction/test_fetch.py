"""Files are found locally, in the cache or at their owner's; what is wrong is said, and nothing half is kept."""

from __future__ import annotations

import hashlib
import http.server
import io
import threading
import zipfile
from dataclasses import replace

import pytest

from reproduction.datasets import SOURCES, DataError, cache_folder, fetch, local_folder
from reproduction.datasets.fetch import digest

CONTENT = b"low,low,2,2,small,low,unacc\n"


def archive(content=CONTENT, member="car.data", nested=False):
    """A zip archive with one file, perhaps inside another archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as files:
        files.writestr("readme.txt", "nothing here")
        files.writestr(f"folder/{member}", content)
    return archive(buffer.getvalue(), "inner.zip") if nested else buffer.getvalue()


class Server:
    """Serves one answer, counts the questions."""

    def __init__(self):
        self.body, self.length, self.status, self.asked = archive(), None, 200, 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.asked += 1
                self.send_response(owner.status)
                self.send_header("Content-Length", str(owner.length or len(owner.body)))
                self.end_headers()
                self.wfile.write(owner.body)

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_port}/car.zip"


@pytest.fixture
def server():
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    monkeypatch.delenv("METRICWISE_DATA", raising=False)
    monkeypatch.setenv("METRICWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def source(server):
    return replace(SOURCES["car"], url=server.url, sha256=hashlib.sha256(CONTENT).hexdigest())


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("nested", [False, True])
def test_download_then_cache(server, source, cache, nested):
    server.body = archive(nested=nested)
    path = fetch(source)
    assert path == cache / "car" / "car.data"
    assert path.read_bytes() == CONTENT
    assert fetch(source) == path
    assert server.asked == 1
    assert files_in(cache) == [path]


def test_damaged_cache_is_fetched_again(server, source, cache):
    path = fetch(source)
    path.write_bytes(b"damaged")
    assert fetch(source).read_bytes() == CONTENT
    assert server.asked == 2


def test_wrong_hash(server, source, cache):
    server.body = archive(b"something else\n")
    with pytest.raises(DataError, match=r"car: car.data from http.* must have sha256 .*, got .*Nothing was kept"):
        fetch(source)
    assert files_in(cache) == []


def test_truncated(server, source, cache):
    server.length = len(server.body)
    server.body = server.body[:-30]
    with pytest.raises(DataError, match=r"car: .*Nothing was kept"):
        fetch(source)
    assert files_in(cache) == []


def test_truncated_but_complete_answer(server, source, cache):
    server.body = server.body[:-30]
    with pytest.raises(DataError, match=r"must be a zip archive, got \d+ bytes that are none.*truncated"):
        fetch(source)
    assert files_in(cache) == []


def test_error_page(server, source, cache):
    server.status = 503
    with pytest.raises(DataError, match=r"cannot fetch http.*503.*METRICWISE_DATA"):
        fetch(source)
    assert files_in(cache) == []


def test_dead_server(server, source, cache):
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(DataError, match=r"cannot fetch http.*Nothing was kept.*METRICWISE_DATA"):
        fetch(source)
    assert files_in(cache) == []


def test_archive_without_the_file(server, source, cache):
    server.body = archive(member="cars.data")
    with pytest.raises(DataError, match=r"must hold car\.data, and does not"):
        fetch(source)


def test_without_pooch(source, cache, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(DataError, match=r"needs pooch: pip install --group reproduction, or set METRICWISE_DATA"):
        fetch(source)


def test_local_folder_needs_no_pooch(source, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    (tmp_path / "car").mkdir()
    (tmp_path / "car" / "car.data").write_bytes(CONTENT)
    monkeypatch.setenv("METRICWISE_DATA", str(tmp_path))
    assert fetch(source) == tmp_path / "car" / "car.data"


def test_local_folder_with_another_file(tmp_path, monkeypatch):
    (tmp_path / "car").mkdir()
    (tmp_path / "car" / "car.data").write_bytes(b"other")
    with pytest.raises(DataError, match="must have sha256"):
        fetch(SOURCES["car"], tmp_path)
    assert fetch(SOURCES["car"], tmp_path, verify=False).read_bytes() == b"other"
    with pytest.raises(DataError, match=r"must hold nursery/nursery\.data, and does not"):
        fetch(SOURCES["nursery"], tmp_path)


def test_local_folder_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICWISE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="METRICWISE_DATA must name a folder"):
        local_folder()
    monkeypatch.delenv("METRICWISE_DATA")
    assert local_folder() is None


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("METRICWISE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "metricwise"


def test_arff_header_does_not_count():
    one = b"@relation a\n@attribute x {1}\n\n@data\n1,2\n3,4\n"
    two = b"@RELATION 'b'\r\n% words\r\n@attribute  x {1}\r\n@DATA\r\n1,2\r\n3,4\r\n\r\n"
    assert digest(one, "x.arff") == digest(two, "x.arff")
    assert digest(one, "x.arff") != digest(one.replace(b"3,4", b"3,5"), "x.arff")
    assert digest(one, "x.csv") != digest(two, "x.csv")


@pytest.mark.parametrize("name", list(SOURCES))
def test_sources_say_where_and_under_which_terms(name):
    source = SOURCES[name]
    assert source.url.startswith("https://")
    assert len(source.sha256) == 64
    assert source.licence
    assert source.citation
