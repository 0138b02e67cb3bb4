"""The SDK's errors, as tests look at them."""

from __future__ import annotations

from typing import cast

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpResponse


def refused(error: HttpResponseError) -> tuple[int, str]:
    """The status and the service's code. The SDK turns only some codes into classes of their own."""
    response = cast("HttpResponse", error.response)
    return response.status_code, response.headers.get("x-ms-error-code", "")
