"""What OneLake answered, for those who want to see it: statuses, error codes, and what it says about waiting."""

from __future__ import annotations

from azure.core.pipeline import PipelineResponse
from azure.core.rest import HttpRequest, HttpResponse

_WAITING = ("Retry-After", "x-ms-retry-after-ms", "RateLimit-Remaining", "x-ms-ratelimit-remaining")


class Witness:
    """Collects the answers of clients that have it as their hook."""

    def __init__(self) -> None:
        self._heard: list[str] = []
        self.versions: set[str] = set()

    def __call__(self, response: PipelineResponse[HttpRequest, HttpResponse]) -> None:
        """Keep what the answer says; nothing of it is secret."""
        answer, request = response.http_response, response.http_request
        code = answer.headers.get("x-ms-error-code", "")
        waiting = [f"{name}: {answer.headers[name]}" for name in _WAITING if name in answer.headers]
        self._heard.append(" ".join([request.method, str(answer.status_code), code, *waiting]).strip())
        if version := answer.headers.get("x-ms-version"):
            self.versions.add(version)

    def heard(self) -> str:
        """The answers since the last call, one after another."""
        told, self._heard = self._heard, []
        return ", ".join(told)
