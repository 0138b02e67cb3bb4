"""Stores of source tables: the address of a folder in one, and the base of all kinds, for both readers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar
from urllib.parse import SplitResult, unquote, urlsplit


class Scheme(str, Enum):
    """The kinds of stores, by the scheme of their canonical addresses."""

    S3 = "s3"
    AZURE = "abfss"
    GOOGLE = "gs"
    HDFS = "hdfs"


_SCHEMES = {
    "s3": Scheme.S3,
    "s3a": Scheme.S3,
    "s3n": Scheme.S3,
    "abfss": Scheme.AZURE,
    "abfs": Scheme.AZURE,
    "wasbs": Scheme.AZURE,
    "wasb": Scheme.AZURE,
    "gs": Scheme.GOOGLE,
    "hdfs": Scheme.HDFS,
}
_GOOGLE_HOST = "storage.googleapis.com"
_AZURE_HOST = re.compile(r"[^.]+\.(dfs|blob)\.")
_S3_HOST = re.compile(r"(?:(?P<bucket>.+)\.)?s3[.-](?:[a-z0-9-]+\.)?amazonaws\.com(?:\.cn)?")
_AZURE_SHAPE = "abfss://<container>@<account>.dfs.core.windows.net/<path>"
_SHAPES = f"s3://<bucket>/<path>, {_AZURE_SHAPE}, gs://<bucket>/<path> or hdfs://<host>:<port>/<path>"


@dataclass(frozen=True)
class LakeAddress:
    """A folder of a store: its scheme, its authority (bucket, container@host, host:port), and its path.

    The path is decoded, and has no slash at its ends; it is empty for the whole bucket.
    """

    scheme: Scheme
    authority: str
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> LakeAddress:
        """Parse the address of a folder as Spark, deltalake or a portal writes it.

        Raises ValueError for any other address; its message has the spelling to write.
        """
        parts = urlsplit(text.strip())
        if "?" in text or "#" in text or ":" in parts.netloc.rpartition("@")[0]:
            raise ValueError(f"expected an address without credentials, query and fragment, got {shown(parts)!r}")
        if parts.scheme in ("http", "https"):
            scheme, authority, path = _of_portal(parts)
        elif parts.scheme in _SCHEMES:
            scheme, authority, path = _SCHEMES[parts.scheme], unquote(parts.netloc), unquote(parts.path)
        else:
            raise ValueError(f"{shown(parts)!r} has a scheme that is not known here; write {_SHAPES}")
        if scheme is Scheme.AZURE:
            container, _, host = authority.rpartition("@")
            if not container or not host:
                raise ValueError(f"{shown(parts)!r} names no container and account; write {_AZURE_SHAPE}")
            authority = f"{container}@{host.replace('.blob.', '.dfs.', 1)}"
        elif not authority or "@" in authority:
            raise ValueError(f"{shown(parts)!r} names no store; write {_SHAPES}")
        return cls(scheme, authority, _clean(path, parts))

    @property
    def uri(self) -> str:
        """The address as both readers take it."""
        return f"{self.scheme.value}://{self.authority}/{self.path}".rstrip("/")

    @property
    def container(self) -> str:
        """The bucket, or the container of an account."""
        return self.authority.partition("@")[0]

    @property
    def host(self) -> str:
        """The host in the address, with its port if it has one; for a bucket, its name."""
        return self.authority.rpartition("@")[2]

    def below(self, path: str) -> LakeAddress:
        """Return the folder at a path below this one. Raises ValueError for a path that leads elsewhere."""
        return replace(self, path="/".join(filter(None, (self.path, _clean(path)))))

    def holds(self, other: LakeAddress) -> bool:
        """Whether the other folder is this one, or below it."""
        is_same_store = (self.scheme, self.authority) == (other.scheme, other.authority)
        return is_same_store and f"{other.path}/".startswith(f"{self.path}/" if self.path else "")


def shown(url: SplitResult) -> str:
    """Return the URL without parts that may be secret: a password before the host, a signature after the path."""
    user, at, host = url.netloc.rpartition("@")
    return url._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query="", fragment="").geturl()


def _of_portal(parts: SplitResult) -> tuple[Scheme, str, str]:
    """Return scheme, authority and path of an address that a portal shows as `https://`. Raises ValueError."""
    whole = unquote(parts.path)
    container, _, path = whole.lstrip("/").partition("/")
    if parts.netloc == _GOOGLE_HOST and container:
        return Scheme.GOOGLE, container, path
    if _AZURE_HOST.match(parts.netloc) and container:
        return Scheme.AZURE, f"{container}@{parts.netloc}", path
    s3 = _S3_HOST.fullmatch(parts.netloc)
    if s3 and s3["bucket"]:
        return Scheme.S3, s3["bucket"], whole
    if s3 and container:
        return Scheme.S3, container, path
    raise ValueError(f"{shown(parts)!r} is not the address of a table; write {_SHAPES}")


def _clean(path: str, parts: SplitResult | None = None) -> str:
    names = [name for name in path.split("/") if name]
    if any(name in (".", "..") for name in names):
        raise ValueError(f"{shown(parts) if parts else path!r} leaves its folder; write it without `.` and `..`")
    return "/".join(names)


@dataclass(frozen=True)
class LakeStore:
    """A store of source tables, and the identity that reads it. Nothing in it is secret.

    This one is for HDFS: both readers take its address, and read their settings from `HADOOP_CONF_DIR`.
    """

    root: LakeAddress
    """The folder above all of its tables."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Maven coordinates of the JARs that Spark needs for it."""

    def delta_uri(self, address: LakeAddress) -> str:
        """Return the address of a folder as deltalake takes it."""
        return address.uri

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options, with credentials that are valid now. Raises CREDENTIAL_INCOMPLETE."""
        return {}

    def hadoop_settings(self) -> dict[str, str]:
        """Return Hadoop's settings by name. Secrets in it are references to environment variables (`${env.NAME}`)."""
        return {}

    def with_keys(self, variables: Mapping[str, str]) -> LakeStore:
        """Return the store with vended keys in place of its own identity: region and server remain.

        The keys are by the names of the environment variables that the store's SDKs read.
        """
        raise TypeError(f"{self.root.uri} is in a store that can't be read with {', '.join(variables)}")

    def reach_settings(self) -> dict[str, str]:
        """Return Hadoop's settings of its region and server, without an identity."""
        return {}

    def own_names(self) -> dict[str, str]:
        """Return Hadoop's settings of an identity, and their names for this bucket or account only.

        A setting for one bucket or account overrides one for all, which may be that of another table of the store.
        """
        return {}


def prefixed(prefix: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of one identity: its variables with the prefix, by the names that the SDKs use."""
    return {name[len(prefix) :]: value for name, value in environment.items() if name.startswith(prefix)}
