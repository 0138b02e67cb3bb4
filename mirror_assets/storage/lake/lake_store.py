"""The interface of stores of source tables, for their two readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from mirror_assets.storage.lake.address import LakeAddress


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


class Prefixed(Mapping[str, str]):
    """The environment of one identity: its variables have a prefix before the names that the SDKs use."""

    def __init__(self, prefix: str, environment: Mapping[str, str]) -> None:
        self._prefix, self._environment = prefix, environment

    def __getitem__(self, name: str) -> str:
        return self._environment[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        cut = len(self._prefix)
        return (name[cut:] for name in self._environment if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)
