"""What comes in and what goes out, as values that know no server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror_assets_tests.worlds.onelake.operations import Operation


@dataclass(frozen=True)
class Request:
    """One request, read whole."""

    method: str
    url_path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    operation: Operation
    path: str
    """The path below the item, such as `Files/LandingZone/orders`; empty for what concerns no item."""


@dataclass(frozen=True)
class Answer:
    """What a request is answered with."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def of_json(cls, status: int, document: object, headers: Mapping[str, str] | None = None) -> Answer:
        return cls(status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(document).encode())
