"""The process of a loopback bucket: moto's server, which checks signatures and policies, and what a test says to it.

It is a process of its own, because deltalake holds Python's lock while it waits for some answers.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from moto import settings
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.sts.models import sts_backends
from werkzeug.serving import WSGIRequestHandler, make_server

CONTROL = "/-/"
_KEY = re.compile(r"Credential=([^/]+)/")
_Start = Callable[..., Any]


class _Silent(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002
        """Nothing is printed."""


class _Watched:
    """The server's application, with a list of requests, answers that wait, and keys that end."""

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._requests: list[tuple[str, str, str, int]] = []
        self._slow, self._seconds = re.compile("$^"), 0.0

    def __call__(self, environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith(CONTROL):
            said = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            answer = getattr(self, path.removeprefix(CONTROL))(**said)
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(answer).encode()]
        key = _KEY.search(environ.get("HTTP_AUTHORIZATION", ""))
        if self._slow.search(path):
            time.sleep(self._seconds)

        def noted(status: str, headers: list[tuple[str, str]], *rest: object) -> object:
            self._requests.append((environ["REQUEST_METHOD"], path, key[1] if key else "", int(status[:3])))
            return start(status, headers, *rest)

        answered: Iterable[bytes] = self._app(environ, noted)
        return answered

    def requests(self) -> list[tuple[str, str, str, int]]:
        """Method, path, key and status of what has been asked since the last call."""
        found, self._requests = self._requests, []
        return found

    def slow(self, pattern: str, seconds: float) -> None:
        self._slow, self._seconds = re.compile(pattern), seconds

    def check(self) -> None:
        """From now on, whoever asks needs a key and a policy."""
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0

    def revoke(self, access_key: str) -> None:
        known = sts_backends[DEFAULT_ACCOUNT_ID]["aws"].assumed_roles
        known[:] = [role for role in known if role.access_key_id != access_key]


def main() -> None:
    """Serve until the process is ended; the first line printed is the port."""
    server = make_server("127.0.0.1", 0, _Watched(), threaded=True, request_handler=_Silent)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
