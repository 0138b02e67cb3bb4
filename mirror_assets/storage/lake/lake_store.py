"""The interface of stores of source tables, for their two readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mirror_assets.storage.lake.lake_address import LakeAddress


class LakeStore(Protocol):
    """A store of source tables, and the identity that reads it. Nothing in it is secret."""

    @property
    def root(self) -> LakeAddress:
        """The folder above all of its tables."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """Maven coordinates of the JARs that Spark needs for it."""
        ...

    def delta_uri(self, address: LakeAddress) -> str:
        """Return the address of a folder as deltalake takes it."""
        ...

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options, with credentials that are valid now. Raises credential_incomplete."""
        ...

    def hadoop_settings(self) -> dict[str, str]:
        """Return Hadoop's settings by name. Secrets in it are references to environment variables (`${env.NAME}`)."""
        ...


def prefixed(prefix: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of one identity: its variables with the prefix, by the names that the SDKs use."""
    return {name[len(prefix) :]: value for name, value in environment.items() if name.startswith(prefix)}
