"""The stores of landing zones and of source tables, and one interface for those of landing zones."""

from mirror_assets.storage.errors import PathChanged, PathExists, PathMissing
from mirror_assets.storage.local import LocalStore
from mirror_assets.storage.store import Content, FileInfo, Store

__all__ = ["Content", "FileInfo", "LocalStore", "PathChanged", "PathExists", "PathMissing", "Store"]
