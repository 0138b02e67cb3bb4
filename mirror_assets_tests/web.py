"""A receiver of Apprise's JSON on loopback: it takes, refuses, hangs, or answers late, as it is told."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class WebReceiver:
    """What arrived, in order, and how it answers: a status, after so many seconds.

    `statuses` are for the next requests; when they are used up, it answers 200. While it `is_down`, it answers 503.
    """

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    late_seconds: float = 0.0
    is_down: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def take(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        body = json.loads(await request.text())
        with self._lock:
            status = 503 if self.is_down else self.statuses.pop(0) if self.statuses else 200
            if status < 300:
                self.bodies.append(body)
                self.headers.append(dict(request.headers))
        await asyncio.sleep(self.late_seconds)
        return web.Response(status=status, text="ok" if status < 300 else "not now")

    def titles(self) -> list[str]:
        """The titles of what arrived."""
        return [body["title"] for body in self.bodies]

    def messages(self) -> list[str]:
        """The texts of what arrived."""
        return [body["message"] for body in self.bodies]

    def wait_for(self, count: int, seconds: float = 10.0) -> None:
        """Wait until so many messages have arrived."""
        deadline = time.monotonic() + seconds
        while len(self.bodies) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(self.bodies) >= count, self.bodies


@contextmanager
def web_receiver() -> Iterator[WebReceiver]:
    """Serve a receiver at `url`."""
    receiver, loop, ready = WebReceiver(), asyncio.new_event_loop(), threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/hook/secret-path", receiver.take)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        receiver.url = f"json://127.0.0.1:{runner.addresses[0][1]}/hook/secret-path"
        return runner

    def serve() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
