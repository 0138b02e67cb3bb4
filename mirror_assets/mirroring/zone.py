"""Opens the landing zone that mirror.yaml names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from mirror_assets.config import Config, LandingZoneConfig, Staging
from mirror_assets.config.variables import fill_settings, has_reference
from mirror_assets.delta.session import HADOOP, open_session, spark_settings
from mirror_assets.storage import LocalStore, Store
from mirror_assets.storage.credentials import CredentialKind, credential_of
from mirror_assets.storage.errors import root_unusable
from mirror_assets.storage.onelake.abfs import HADOOP_AZURE, abfs_settings
from mirror_assets.storage.onelake.clients import ResponseRecorder, open_clients, shared_clients
from mirror_assets.storage.onelake.store import OneLakeStore


def open_zone(config: LandingZoneConfig) -> Store:
    """The landing zone's store; no request is made yet.

    Raises root_unusable for a path that is no folder, CredentialIncomplete and ApiVersionRefused.
    """
    if config.path is not None:
        if config.path.exists() and not config.path.is_dir():
            raise root_unusable(str(config.path), "it is a file, not a folder")
        return LocalStore(config.path)
    place = config.onelake
    assert place is not None  # noqa: S101 it is one of the two
    return OneLakeStore(shared_clients(place.address, place.credential, place.api_version, place.ca_bundle))


def open_watched_zone(config: LandingZoneConfig) -> tuple[Store, ResponseRecorder]:
    """The same with a witness of its answers; a folder of this machine gives none."""
    witness, place = ResponseRecorder(), config.onelake
    if place is None:
        return open_zone(config), witness
    credential = credential_of(place.credential, place.ca_bundle)
    clients = open_clients(place.address, credential, place.api_version, place.ca_bundle, witness)
    return OneLakeStore(clients), witness


def open_exchange(config: LandingZoneConfig) -> LocalStore | None:
    """The folder that Spark and this process share for `staging: upload`; None where Spark reaches the landing zone."""
    if config.onelake is None or config.onelake.staging is Staging.DIRECT:
        return None
    return LocalStore(config.onelake.staging_path)


@dataclass(frozen=True)
class SparkSettings:
    """What a session is to have beside our own settings: how it reaches OneLake, and what mirror.yaml writes.

    `written` refers to the environment, which is asked when a session opens.
    """

    reach: Mapping[str, str]
    written: Mapping[str, str]

    @classmethod
    def of(cls, config: Config) -> SparkSettings:
        """The configuration's; its sessions reach OneLake only where they have to."""
        return cls(spark_reach(config), config.spark.settings)

    @property
    def secret_names(self) -> frozenset[str]:
        """Settings that only a session gets, for which its own suffice; all others stand in the JVM's command line."""
        return frozenset(n for n, text in self.written.items() if n.startswith(HADOOP) and has_reference(text))

    def filled(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """All settings, as the environment fills them. Raises VariableUnset and PackageRefused."""
        written = fill_settings(self.written, environment)
        return spark_settings({**self.reach, **written}, [HADOOP_AZURE] if self.reach else ())

    def open(self, owner: str | None = None) -> SparkSession:
        """The owner's session, or a new one. Raises VariableUnset, PackageRefused and SparkNotStarted."""
        filled, secret = self.filled(), self.secret_names
        known = {name: value for name, value in filled.items() if name not in secret}
        return open_session(known, {name: filled[name] for name in secret}, owner)


def open_spark(config: Config, owner: str | None = None) -> SparkSession:
    """The owner's session, or a new one. Raises VariableUnset, PackageRefused and SparkNotStarted."""
    return SparkSettings.of(config).open(owner)


def spark_reach(config: Config) -> dict[str, str]:
    """How Spark reaches the landing zone, for `staging: direct`, or the mirrored tables beside it, to compare them."""
    zone, fabric = config.landing_zone.onelake, config.mirror.fabric
    if zone is not None and zone.staging is Staging.DIRECT:
        return abfs_settings(zone.address, zone.credential)
    if fabric is not None and fabric.credential is not CredentialKind.DEFAULT:
        return abfs_settings(fabric.tables(zone), fabric.credential)
    return {}
