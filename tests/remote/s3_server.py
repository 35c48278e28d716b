#!/usr/bin/env python3
"""An S3 server with one bucket in memory, for tests of remote tiers.

usage: s3_server.py PORT KEY SECRET BUCKET LOG [TOKEN]

It has GET with Range, HEAD, PUT with If-Match and If-None-Match, and DELETE, by path (/BUCKET/key). It checks each request's signature
by itself, after Amazon's description of Signature Version 4, and writes a line "METHOD path status" to LOG.
"""
from __future__ import annotations

import datetime
import hashlib
import hmac
import re
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

PORT, KEY, SECRET, BUCKET, LOG = sys.argv[1:6]
TOKEN = sys.argv[6] if len(sys.argv) > 6 else ""
CLOCK_SECONDS = 900


class Refused(Exception):
    """Its texts: status, S3's code."""


def signature_of(secret: str, scope: str, text: str) -> str:
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body together
    disable_nagle_algorithm = True
    objects: ClassVar[dict[str, bytes]] = {}
    lock: ClassVar[threading.Lock] = threading.Lock()

    def log_message(self, *_arguments: object) -> None:
        pass

    def handle_expect_100(self) -> bool:
        go_on = super().handle_expect_100()
        self.wfile.flush()
        return go_on

    def check_signature(self, body: bytes) -> None:
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization", ""))
        if not found:
            raise Refused(403, "AccessDenied")
        key, scope, signed, signature = found.groups()
        if key != KEY:
            raise Refused(403, "InvalidAccessKeyId")
        date = self.headers.get("x-amz-date", "")
        stamp = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs((datetime.datetime.now(datetime.timezone.utc) - stamp).total_seconds()) > CLOCK_SECONDS:
            raise Refused(403, "RequestTimeTooSkewed")
        if not re.fullmatch(re.escape(date[:8]) + r"/[a-z0-9-]+/s3/aws4_request", scope):
            raise Refused(403, "AuthorizationHeaderMalformed")
        names = signed.split(";")
        wanted = {"host", "x-amz-date", "x-amz-content-sha256"} | ({"x-amz-security-token"} if TOKEN else set())
        if any(name not in self.headers for name in names):
            raise Refused(403, "SignatureDoesNotMatch")
        if names != sorted(names) or not wanted <= set(names):
            raise Refused(403, "AccessDenied")
        if self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch")
        if TOKEN and self.headers["x-amz-security-token"] != TOKEN:
            raise Refused(403, "InvalidToken")
        path, _, query = self.path.partition("?")
        headers = "".join(f"{name}:{' '.join(self.headers[name].split())}\n" for name in names)
        canonical = "\n".join([self.command, path, "&".join(sorted(query.split("&"))) if query else "", headers, signed,
                               self.headers["x-amz-content-sha256"]])
        text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        if not hmac.compare_digest(signature_of(SECRET, scope, text), signature):
            raise Refused(403, "SignatureDoesNotMatch")

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path} {status}\n")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status != 204 and "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self.check_signature(body)
            if not self.path.startswith(f"/{BUCKET}/"):
                raise Refused(404, "NoSuchBucket")
            with self.lock:
                {"GET": self.get, "HEAD": self.get, "PUT": self.put, "DELETE": self.delete}[self.command](body)
        except Refused as refused:
            status, code = refused.args
            text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>refused</Message></Error>'
            self.reply(status, text.encode())

    do_GET = do_HEAD = do_PUT = do_DELETE = answer  # noqa: N815 - the base class names them

    def etag(self) -> str:
        return '"' + hashlib.md5(self.objects[self.path]).hexdigest() + '"' if self.path in self.objects else ""

    def get(self, _body: bytes) -> None:
        if self.path not in self.objects:
            raise Refused(404, "NoSuchKey")
        data = self.objects[self.path]
        if self.command == "HEAD":
            return self.reply(200, Content_Length=str(len(data)), ETag=self.etag())
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not found:
            return self.reply(200, data, ETag=self.etag())
        first, last = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
        if first >= len(data):
            return self.reply(416, Content_Range=f"bytes */{len(data)}")
        return self.reply(206, data[first:last + 1], ETag=self.etag(), Content_Range=f"bytes {first}-{last}/{len(data)}")

    def put(self, body: bytes) -> None:
        if self.headers.get("If-None-Match") == "*" and self.path in self.objects:
            raise Refused(412, "PreconditionFailed")
        if "If-Match" in self.headers and self.headers["If-Match"] != self.etag():
            raise Refused(412 if self.path in self.objects else 404, "PreconditionFailed")
        self.objects[self.path] = body
        self.reply(200, ETag=self.etag())

    def delete(self, _body: bytes) -> None:
        self.objects.pop(self.path, None)
        self.reply(204)


class Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    Server(("127.0.0.1", int(PORT)), Handler).serve_forever()
