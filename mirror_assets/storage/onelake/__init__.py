"""A landing zone on OneLake, through azure-storage-file-datalake (reference `onelake`)."""

from mirror_assets.storage.onelake.address import OneLakeAddress
from mirror_assets.storage.onelake.store import OneLakeStore

__all__ = ["OneLakeAddress", "OneLakeStore"]
