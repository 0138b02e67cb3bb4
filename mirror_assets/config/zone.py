"""Opens the store of the landing zone that mirror.yaml names."""

from __future__ import annotations

from mirror_assets.config.zone_settings import LandingZoneConfig
from mirror_assets.storage import LocalStore, Store
from mirror_assets.storage.errors import ROOT_UNUSABLE


def open_zone(config: LandingZoneConfig) -> Store:
    """Return the landing zone's store; it makes no request yet.

    Raises SettingError for a path that is not a folder, missing credentials, and an API version that can't be used.
    """
    if config.path is not None:
        if config.path.exists() and not config.path.is_dir():
            raise ROOT_UNUSABLE(root=str(config.path), why="it is a file, not a folder")
        return LocalStore(config.path)
    from mirror_assets.storage.onelake.clients import shared_clients
    from mirror_assets.storage.onelake.onelake_store import OneLakeStore

    place = config.onelake
    assert place is not None  # noqa: S101 it is one of the two
    return OneLakeStore(shared_clients(place.address, place.credential, place.api_version, place.ca_bundle))
