"""The stores of landing zones, and one interface for all of them."""

from mirror_assets.zones.errors import PathChanged, PathExists, PathMissing
from mirror_assets.zones.local import LocalStore
from mirror_assets.zones.store import Content, FileInfo, Store

__all__ = ["Content", "FileInfo", "LocalStore", "PathChanged", "PathExists", "PathMissing", "Store"]
