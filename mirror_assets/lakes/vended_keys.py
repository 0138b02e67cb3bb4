"""Credentials that a catalog vends for one table: cached in memory until shortly before they expire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirror_assets.lakes.azure import SAS_TOKEN
from mirror_assets.lakes.lake_store import Scheme
from mirror_assets.lakes.s3 import KEY, SECRET, TOKEN

if TYPE_CHECKING:
    # It loads a part of Azure's SDK.
    from mirror_assets.lakes.unity import TemporaryCredentials

# Keys are renewed this long before they expire, or after half of their lifetime, if that is later.
_RENEWED_BEFORE_SECONDS = 300.0
# The lifetime of keys without an expiry: the shortest that AWS and Azure allow.
_DEFAULT_SECONDS = 900.0


@dataclass(frozen=True)
class VendedKeys:
    """Keys for one kind of store, by the names of the environment variables that its SDKs read.

    `ends` is their expiry in seconds since 1970; None if the catalog does not report it.
    """

    scheme: Scheme
    variables: Mapping[str, str] = field(repr=False)
    ends: float | None = None

    @classmethod
    def of(cls, vended: TemporaryCredentials) -> VendedKeys | None:
        """Return the keys in an answer; None if it has none that both readers can use."""
        ends = None if vended.expiration_time is None else vended.expiration_time / 1000
        if (aws := vended.aws_temp_credentials) is not None:
            named = {KEY: aws.access_key_id, SECRET: aws.secret_access_key, TOKEN: aws.session_token or ""}
            return cls(Scheme.S3, named, ends)
        if (azure := vended.azure_user_delegation_sas) is not None:
            return cls(Scheme.AZURE, {SAS_TOKEN: azure.sas_token}, ends)
        return None


class RenewedKeys:
    """The keys of one table, fetched on use; threads may share them, and one of them fetches."""

    def __init__(self, fetch: Callable[[], VendedKeys], now: Callable[[], float] = time.time) -> None:
        """Nothing is fetched yet."""
        self._fetch, self._now, self._lock = fetch, now, threading.Lock()
        self._keys: VendedKeys | None = None
        self._renew_at = 0.0

    def current(self) -> VendedKeys:
        """Return keys that are valid now and for a while. Raises the errors of the fetch."""
        with self._lock:
            if self._keys is None or self._now() >= self._renew_at:
                began, self._keys = self._now(), self._fetch()
                left = _DEFAULT_SECONDS if self._keys.ends is None else self._keys.ends - began
                self._renew_at = began + max(left - _RENEWED_BEFORE_SECONDS, left / 2)
            return self._keys
