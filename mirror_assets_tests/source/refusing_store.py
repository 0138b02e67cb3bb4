"""A server that knows S3's protocol only to refuse: each request gets the same error."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True)
class S3Error:
    """An error of S3, as its reference lists them; `region` is the bucket's, in a header beside it.

    `on` is what a path must contain to be refused; other requests find no object, and list none.
    """

    status: int
    code: str
    message: str = ""
    region: str = ""
    on: str = ""

    @property
    def body(self) -> bytes:
        """The error as it goes over the wire."""
        text = f"<Error><Code>{self.code}</Code><Message>{self.message}</Message><RequestId>R</RequestId></Error>"
        return f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()


S3_ERRORS = {
    error.code: error
    for error in (
        S3Error(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature."),
        S3Error(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."),
        S3Error(400, "ExpiredToken", "The provided token has expired."),
        S3Error(400, "InvalidToken", "The provided token is malformed or otherwise invalid."),
        S3Error(403, "RequestTimeTooSkewed", "The difference between the request time and now is too large."),
        S3Error(403, "AccessDenied", "Access Denied"),
        S3Error(301, "PermanentRedirect", "Use the specified endpoint.", region="eu-central-1"),
        S3Error(400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-central-1'"),
        S3Error(404, "NoSuchBucket", "The specified bucket does not exist"),
        S3Error(503, "SlowDown", "Please reduce your request rate."),
        S3Error(429, "TooManyRequests", "Please reduce your request rate."),
        S3Error(500, "InternalError", "We encountered an internal error. Please try again."),
    )
}


_NO_OBJECT = S3Error(404, "NoSuchKey")
_NO_OBJECTS = b"<ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>"


@contextmanager
def refusing(error: S3Error, certificate: Path | None = None) -> Iterator[str]:
    """Answer each request on a port of this machine with the error; yield the server's address.

    `certificate` is a PEM file with the server's key and certificate, for TLS.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            is_refused, lists = error.on in self.path, "list-type=2" in self.path
            answer = error if is_refused else _NO_OBJECT
            status, body = (200, _NO_OBJECTS) if lists and not is_refused else (answer.status, answer.body)
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            if answer.region:
                self.send_header("x-amz-bucket-region", answer.region)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextmanager
def silent() -> Iterator[str]:
    """Take connections on a port of this machine and never answer; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def closed_port() -> str:
    """Return the address of a port of this machine where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    return f"http://127.0.0.1:{port}"
