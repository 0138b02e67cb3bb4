"""Turns what a reader says of a store's fault into one error, whether deltalake or Spark meets it first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from mirror_assets.source.errors import SourceUnavailable, SourceUnreadable
from mirror_assets.source.store_faults import DENIED, FAULTS, StoreFault

_REGION = re.compile(r"(?:expecting|to region|in region) ['\[]?([a-z]{2}(?:-[a-z]+)+-\d)")
_STORE = re.compile(r"\b(s3|s3a|s3n|abfss?|wasbs?|gs|hdfs)://([^/\s'\"`,?()]+)")
# Hadoop's errors of Azure have the address of the request in place of the file's.
_ACCOUNT = re.compile(r"https?://([^/\s'\",?]+\.(?:dfs|blob)\.[^/\s'\",?]+)/([^/\s'\",?]+)")
_ONE_SCHEME = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss"}
# Where each reader names the object that it asked for: deltalake, object_store, Hadoop.
_OBJECTS = (
    re.compile(r"for path (\S+)"),
    re.compile(r"Error performing GET \S+[?&]prefix=([^&\s]+)"),
    re.compile(r"Error performing \w+ https?://[^/\s]+/([^\s?]+)"),
    re.compile(r"\b(?:s3a?|abfss?|gs|hdfs)://[^/\s]+/([^\s:,]+)"),
)
_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    "abfss": "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or AZURE_STORAGE_SAS_TOKEN",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
}
_ENDPOINTS = {"s3": " (by default AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL)"}


@dataclass(frozen=True)
class FoundFault:
    """A fault as a reader's text tells it.

    `sign` is the store's own word for it, `region` the bucket's and `path` the object's, if they are named.
    """

    fault: StoreFault
    sign: str
    region: str | None = None
    path: str | None = None


def find_fault(text: str) -> FoundFault | None:
    """Return the cause that a reader's error tells; None when it is no fault of a store."""
    for fault in FAULTS:
        if sign := fault.sign_in(text):
            region = _REGION.search(text)
            return FoundFault(fault, sign, region and region[1], _path(text) if fault is DENIED else None)
    return None


def fault_error(subject: str, store: str | None, found: FoundFault) -> SourceUnreadable | SourceUnavailable:
    """Return the error for it; `subject` names the table, `store` is the store's address, if it is known."""
    scheme, named = (store.partition("://")[0], f"the store {store}") if store else ("", "its store")
    says = found.fault.says.format(region=f", {found.region}" if found.region else "")
    told = f"{found.sign}: {found.path}" if found.path else found.sign
    next_step = found.fault.next_step.format(
        variables=_VARIABLES.get(scheme, "its variables"), endpoint=_ENDPOINTS.get(scheme, "")
    )
    why = f"{named} {says} ({told})"
    return (SourceUnavailable if found.fault.passes else SourceUnreadable)(subject, why, next_step)


def store_named(text: str) -> str | None:
    """Return the address of the first store that the text names, in the spelling of mirror.yaml; None without one."""
    if found := _STORE.search(text):
        return f"{_ONE_SCHEME.get(found[1], found[1])}://{found[2]}"
    if account := _ACCOUNT.search(text):
        return f"abfss://{account[2]}@{account[1].replace('.blob.', '.dfs.', 1)}"
    return None


def _path(text: str) -> str | None:
    found = next((match[1] for pattern in _OBJECTS if (match := pattern.search(text))), None)
    return unquote(found).rstrip(".:") if found else None
