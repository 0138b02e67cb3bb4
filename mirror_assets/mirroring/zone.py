"""Opens the landing zone that mirror.yaml names."""

from __future__ import annotations

from mirror_assets.config import Config, LandingZoneConfig, Staging
from mirror_assets.delta.session import spark_settings
from mirror_assets.storage import LocalStore, Store
from mirror_assets.storage.credentials import CredentialKind, credential_of
from mirror_assets.storage.errors import RootUnusable
from mirror_assets.storage.onelake.abfs import HADOOP_AZURE, abfs_settings
from mirror_assets.storage.onelake.clients import open_clients, shared_clients
from mirror_assets.storage.onelake.store import OneLakeStore
from mirror_assets.storage.onelake.witness import Witness


def open_zone(config: LandingZoneConfig) -> Store:
    """The landing zone's store; no request is made yet.

    Raises RootUnusable for a path that is no folder, CredentialIncomplete and ApiVersionRefused.
    """
    if config.path is not None:
        if config.path.exists() and not config.path.is_dir():
            raise RootUnusable(str(config.path), "it is a file, not a folder")
        return LocalStore(config.path)
    place = config.onelake
    assert place is not None  # noqa: S101 it is one of the two
    return OneLakeStore(shared_clients(place.address, place.credential, place.api_version, place.ca_bundle))


def open_watched_zone(config: LandingZoneConfig) -> tuple[Store, Witness]:
    """The same with a witness of its answers; a folder of this machine gives none."""
    witness, place = Witness(), config.onelake
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


def session_settings(config: Config) -> dict[str, str]:
    """Settings of the configuration's Spark session, which reaches OneLake only where it has to."""
    reach = _reach(config)
    return spark_settings(reach | config.spark.settings, [HADOOP_AZURE] if reach else ())


def _reach(config: Config) -> dict[str, str]:
    """How Spark reaches the landing zone, for `staging: direct`, or the mirrored tables beside it, to compare them."""
    zone, fabric = config.landing_zone.onelake, config.mirror.fabric
    if zone is not None and zone.staging is Staging.DIRECT:
        return abfs_settings(zone.address, zone.credential)
    if fabric is not None and fabric.credential is not CredentialKind.DEFAULT:
        return abfs_settings(fabric.tables(zone), fabric.credential)
    return {}
