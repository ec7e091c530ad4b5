"""A store of objects that speaks as much of S3 as pyarrow's client asks for: a file system of no machine's own."""

from __future__ import annotations

import io
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _asked(self) -> tuple[str, dict[str, str]]:
        path, _, query = self.path.partition("?")
        return urllib.parse.unquote(path).lstrip("/"), dict(urllib.parse.parse_qsl(query, keep_blank_values=True))

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command in self.server.failing:
            self._body()
            self._answer(501, b"<Error><Code>NotImplemented</Code></Error>")  # clients repeat a request after a 500
            return False
        return True

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        headers = {"Content-Length": str(len(body)), **(headers or {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b"".join(_chunks(self.rfile))
        self.rfile.readline()
        return (
            b"".join(_chunks(io.BytesIO(body))) if "aws-chunked" in self.headers.get("Content-Encoding", "") else body
        )

    def do_GET(self) -> None:
        path, query = self._asked()
        if "/" not in path.rstrip("/"):
            self._answer(200, _listing(self.server.objects, path.rstrip("/"), query))
        elif path not in self.server.objects:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            content = self.server.objects[path]
            about = {"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "ETag": '"1"'}
            asked = self.headers.get("Range", "")
            if self.command == "GET" and asked.startswith("bytes="):
                first, _, last = asked.removeprefix("bytes=").partition("-")
                part = content[int(first) : int(last or len(content)) + 1]
                about["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
                self._answer(206, part, about)
            else:
                self._answer(200, content, about)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        path, query = self._asked()
        body = self._body()
        source = urllib.parse.unquote(self.headers.get("x-amz-copy-source", "")).strip("/")
        if source:
            self.server.objects[path] = self.server.objects[source]
            self._answer(200, b'<CopyObjectResult><ETag>"1"</ETag></CopyObjectResult>')
        elif "uploadId" in query:
            self.server.parts[path, int(query["partNumber"])] = body
            self._answer(200, headers={"ETag": '"1"'})
        elif self.headers.get("If-None-Match") and path in self.server.objects:
            self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        else:
            self.server.objects[path] = body
            self._answer(200, headers={"ETag": '"1"'})

    def do_POST(self) -> None:
        path, query = self._asked()
        self._body()
        if "uploads" in query:
            self._answer(200, b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
        else:
            numbers = sorted(number for key, number in self.server.parts if key == path)
            self.server.objects[path] = b"".join(self.server.parts.pop((path, number)) for number in numbers)
            self._answer(200, b'<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>')

    def do_DELETE(self) -> None:
        path, _ = self._asked()
        self.server.objects.pop(path, None)
        self._answer(204)


def _chunks(stream: Any) -> Iterator[bytes]:
    """The pieces of a body, each with its size in front."""
    while (size := int(stream.readline().partition(b";")[0], 16)) > 0:
        yield stream.read(size)
        stream.readline()


def _listing(objects: dict[str, bytes], bucket: str, query: dict[str, str]) -> bytes:
    prefix, delimiter, after = (query.get(name, "") for name in ("prefix", "delimiter", "start-after"))
    files, folders = [], set()
    for path, content in sorted(objects.items()):
        key = path.removeprefix(f"{bucket}/")
        if path == key or not key.startswith(prefix) or key <= after:
            continue
        if delimiter and delimiter in key[len(prefix) :]:
            folders.add(prefix + key[len(prefix) :].partition(delimiter)[0] + delimiter)
        else:
            files.append((key, len(content)))
    entries = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><ETag>1</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        "</Contents>"
        for key, size in files
    ) + "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders))
    count = len(files) + len(folders)
    text = f"<ListBucketResult><KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
    return text.encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.parts: dict[tuple[str, int], bytes] = {}
        self.failing: set[str] = set()


class Store:
    """The objects of a server, {bucket/key: content}, and the URIs by which a client finds them.

    It answers 501 to requests by one of the methods `failing`.
    """

    def __init__(self, server: _Server) -> None:
        self.objects = server.objects
        self.failing = server.failing
        self._address = f"127.0.0.1%3A{server.server_address[1]}"

    def uri(self, key: str) -> str:
        """Of a key in the bucket `store`; a user and a password are in it."""
        return f"s3://user:secret@store/{key}?endpoint_override={self._address}&scheme=http&region=here"


@contextmanager
def object_store() -> Iterator[Store]:
    """Serves a store until the end of the block."""
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Store(server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
