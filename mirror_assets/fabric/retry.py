"""How often a request to Fabric is repeated, and how long a pause that Fabric asks for is waited."""

from __future__ import annotations

from typing import Any

from azure.core.pipeline import PipelineResponse
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest, HttpResponse

_TRIES = 5
_SECONDS = 180
_LONGEST_PAUSE = 60.0


class FabricRetry(RetryPolicy[HttpRequest, HttpResponse]):
    """azure-core's policy, which obeys Retry-After, but for minutes and not for hours: who asks comes back anyway."""

    def __init__(self) -> None:
        super().__init__(retry_total=_TRIES, retry_status=_TRIES, timeout=_SECONDS)

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        """Whether the answer is a passing failure that is worth the pause that it asks for."""
        pause = self.get_retry_after(response) or 0.0
        return pause <= _LONGEST_PAUSE and super().is_retry(settings, response)
