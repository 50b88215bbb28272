"""A bucket on loopback: as much of the Cloud Storage JSON API as gcsfs and tensorstore use.

Objects live in memory, have generations, and are written whole, under the conditions that a request
names. `requests` counts them by method and kind.
"""

import collections
import contextlib
import email
import http.server
import json
import threading
import time
import urllib.parse


class Bucket:
    """All objects, and the server that hands them out."""

    def __init__(self):
        self.objects: dict[str, tuple[int, bytes]] = {}  # name -> (generation, content)
        self.requests = collections.Counter()
        self._generation = int(time.time() * 1e6)
        self._uploads: dict[str, tuple[str, dict]] = {}
        self._lock = threading.Lock()

    def put(self, name: str, content: bytes, query: dict) -> dict | None:
        """Stores an object; None where its generation is not the one that was asked for."""
        with self._lock:
            held = self.objects.get(name, (0, b""))[0]
            if "ifGenerationMatch" in query and int(query["ifGenerationMatch"]) != held:
                return None
            self._generation += 1
            self.objects[name] = self._generation, content
            return self.describe(name)

    def describe(self, name: str) -> dict:
        generation, content = self.objects[name]
        return {
            "kind": "storage#object",
            "name": name,
            "bucket": "bench",
            "generation": str(generation),
            "metageneration": "1",
            "size": str(len(content)),
            "contentType": "application/octet-stream",
            "updated": "2026-01-01T00:00:00.000Z",
            "timeCreated": "2026-01-01T00:00:00.000Z",
        }

    def listing(self, query: dict) -> dict:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        items, prefixes = [], set()
        with self._lock:
            for name in sorted(self.objects):
                if not name.startswith(prefix) or name < query.get("startOffset", ""):
                    continue
                rest = name[len(prefix) :]
                if delimiter and delimiter in rest:
                    prefixes.add(prefix + rest.split(delimiter)[0] + delimiter)
                else:
                    items.append(self.describe(name))
        return {"kind": "storage#objects", "items": items, "prefixes": sorted(prefixes)}


class _Handler(http.server.BaseHTTPRequestHandler):
    bucket: Bucket
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def _handle(self):
        url = urllib.parse.urlsplit(self.path)
        query = {key: values[0] for key, values in urllib.parse.parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path == "/batch/storage/v1":
            return self._batch(body)
        path = url.path.removeprefix("/download").removeprefix("/upload")
        path = path.removeprefix("/storage/v1/b/bench").removeprefix("/o")
        name = urllib.parse.unquote(path.removeprefix("/"))
        kind = "upload" if url.path.startswith("/upload") else "object" if name else "listing"
        self.bucket.requests[self.command, kind] += 1
        if kind == "upload":
            return self._upload(query, body)
        return self._object(self.command, name, query)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _handle

    def _upload(self, query, body):
        bucket = self.bucket
        if self.command == "PUT" or "upload_id" in query:
            name, query = bucket._uploads.pop(query["upload_id"])
        elif query["uploadType"] == "resumable":
            name = query.get("name") or json.loads(body)["name"]
            key = str(len(bucket._uploads) + time.monotonic_ns())
            bucket._uploads[key] = name, query
            host = self.headers["Host"]
            place = f"http://{host}/upload/storage/v1/b/bench/o?upload_id={key}"
            return self._reply(200, b"{}", {"Location": place})
        elif query["uploadType"] == "multipart":
            header = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            about, content = email.message_from_bytes(header + body).get_payload()
            name, body = json.loads(about.get_payload())["name"], content.get_payload(decode=True)
        else:
            name = query["name"]
        stored = bucket.put(name, body, query)
        return self._json(412 if stored is None else 200, stored or {})

    def _object(self, method, name, query):
        bucket = self.bucket
        if not name:
            return self._json(200, bucket.listing(query))
        source, _, target = name.partition("/rewriteTo/b/bench/o/")
        if target:
            done = bucket.put(urllib.parse.unquote(target), bucket.objects[source][1], query)
            return self._json(200, {"done": True, "resource": done})
        if name not in bucket.objects:
            return self._json(404, {"error": {"code": 404, "message": "Not Found"}})
        if method == "DELETE":
            del bucket.objects[name]
            return self._reply(204, b"")
        generation, content = bucket.objects[name]
        if query.get("alt") != "media":
            return self._json(200, bucket.describe(name))
        headers = {"x-goog-generation": str(generation), "Content-Type": "application/octet-stream"}
        asked = self.headers.get("Range")
        if not asked:
            return self._reply(200, content, headers)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        if not first:
            first, last = max(0, len(content) - int(last)), ""
        end = min(int(last) + 1 if last else len(content), len(content))
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(content)}"
        return self._reply(206, content[int(first) : end], headers)

    def _batch(self, body):
        """Many deletions in one request."""
        header = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = []
        for number, part in enumerate(email.message_from_bytes(header + body).get_payload()):
            line = part.get_payload().splitlines()[0].split()
            name = urllib.parse.unquote(line[1].split("/o/", 1)[1].split("?")[0])
            self.bucket.requests["DELETE", "object"] += 1
            found = self.bucket.objects.pop(name, None)
            code = "204 No Content" if found else "404 Not Found"
            parts.append(
                "--done\r\nContent-Type: application/http\r\n"
                f"Content-ID: <response-{number + 1}>\r\n\r\nHTTP/1.1 {code}\r\n"
                "Content-Length: 0\r\n\r\n\r\n"
            )
        text = "".join(parts) + "--done--\r\n"
        self._reply(200, text.encode(), {"Content-Type": "multipart/mixed; boundary=done"})

    def _json(self, code, content):
        self._reply(code, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _reply(self, code, content, headers=()):
        self.send_response(code)
        for key, value in dict(headers).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextlib.contextmanager
def served():
    """Serves an empty bucket; yields (bucket, environment for a process that uses gs://bench)."""
    bucket = Bucket()
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *unused: None  # clients leave as soon as they know enough
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    environment = {
        "STORAGE_EMULATOR_HOST": address,
        "TENSORSTORE_GCS_HTTP_URL": address,
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "token",
        "NO_GCE_CHECK": "true",
    }
    try:
        yield bucket, environment
    finally:
        server.shutdown()
        server.server_close()
