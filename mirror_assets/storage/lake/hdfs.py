"""HDFS: both readers take its address, and read their settings from `HADOOP_CONF_DIR`."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.storage.lake.lake_address import LakeAddress


@dataclass(frozen=True)
class HdfsStore:
    """A cluster's file system, or a folder of it."""

    root: LakeAddress

    @property
    def packages(self) -> tuple[str, ...]:
        """None: Spark brings Hadoop's client."""
        return ()

    def delta_uri(self, address: LakeAddress) -> str:
        """Return the address."""
        return address.uri

    def storage_options(self) -> dict[str, str]:
        """Return no options."""
        return {}

    def hadoop_settings(self) -> dict[str, str]:
        """Return no settings."""
        return {}
