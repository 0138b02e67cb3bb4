"""PagerDuty's Events API on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web

from mirror_assets_tests.worlds.onelake.tls import LoopbackServer


class LoopbackPagerDuty(LoopbackServer):
    """Takes events for one routing key; `statuses` are for the next requests."""

    def __init__(self, folder: Path, key: str) -> None:
        super().__init__(folder)
        self._key = key
        self.events: list[dict[str, Any]] = []
        self.statuses: list[int] = []

    def application(self) -> web.Application:
        """The path to which events are sent."""
        app = web.Application()
        app.router.add_post("/v2/enqueue", self._take)
        return app

    async def _take(self, request: web.Request) -> web.Response:
        event = await request.json()
        if self.statuses:
            return web.json_response({"status": "error", "routing_key": self._key}, status=self.statuses.pop(0))
        if event.pop("routing_key") != self._key:
            return web.json_response({"status": "invalid event", "errors": ["'routing_key' is invalid"]}, status=400)
        self.events.append(event)
        return web.json_response({"status": "success", "dedup_key": event["dedup_key"]}, status=202)
