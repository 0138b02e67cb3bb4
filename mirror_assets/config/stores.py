"""The stores of source tables, for both readers of Delta tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator
from typing_extensions import Self

from mirror_assets.config.setting_values import Address, LocalFile, Section, Text, is_uri, matching
from mirror_assets.storage.lake.azure import AzureCredential, AzureStore
from mirror_assets.storage.lake.google import GoogleCredential, GoogleStore
from mirror_assets.storage.lake.hdfs import HdfsStore
from mirror_assets.storage.lake.lake_address import LakeAddress, Scheme
from mirror_assets.storage.lake.lake_store import LakeStore
from mirror_assets.storage.lake.s3 import AwsCredential, S3Store

# The settings of each kind of store, besides its root and its credential.
_OWN = {
    Scheme.S3: {"region", "endpoint", "path_style", "profile", "role", "env_prefix"},
    Scheme.AZURE: {"endpoint", "env_prefix"},
    Scheme.GOOGLE: {"key_file", "env_prefix"},
    Scheme.HDFS: set(),
    None: set(),
}
_CREDENTIALS: Mapping[Scheme | None, type[Enum]] = {
    Scheme.S3: AwsCredential,
    Scheme.AZURE: AzureCredential,
    Scheme.GOOGLE: GoogleCredential,
}
_ENDPOINT = matching(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?", "a server such as https://minio.example.com:9000")
_ROLE = matching(r"arn:aws[a-z-]*:iam::\d{12}:role/.+", "a role's ARN, arn:aws:iam::<account>:role/<name>")
_PREFIX = matching("[A-Z][A-Z0-9_]*_", "capitals that end with an underscore, such as SALES_")


class StoreConfig(Section):
    """A store: its root, and the identity that reads it. Secrets are in the environment only."""

    root: Address = Field(description="Address of the folder that contains its tables, or a folder of this machine.")
    credential: Text = Field(default="default", description="Identity to read with; the kinds depend on the store.")
    region: Text | None = Field(default=None, description="S3: the bucket's region; null: that of the environment.")
    endpoint: Annotated[str, _ENDPOINT] | None = Field(
        default=None, description="Another server than the store's default."
    )
    path_style: bool | None = Field(
        default=None, description="S3: whether the bucket is in the path; null: if the endpoint isn't AWS's."
    )
    profile: Text | None = Field(default=None, description="S3: the profile, for `credential: profile`.")
    role: Annotated[str, _ROLE] | None = Field(
        default=None, description="S3: ARN of a role to assume with the credential."
    )
    key_file: LocalFile | None = Field(default=None, description="Google: file of a service account's key.")
    env_prefix: Annotated[str, _PREFIX] | None = Field(
        default=None, description="Prefix of the names of this identity's environment variables."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = {name for name in _OWN[Scheme.S3] | _OWN[Scheme.GOOGLE] if getattr(self, name) is not None}
        foreign = sorted(given - _OWN[self.scheme])
        if foreign:
            raise ValueError(f"`{foreign[0]}` is not a setting of {self.kind}")
        if (self.profile is None) is (self.credential == AwsCredential.PROFILE.value):
            raise ValueError("`credential: profile` requires `profile`, and the reverse")
        if self.key_file and self.credential != GoogleCredential.KEY_FILE.value:
            raise ValueError("`key_file` requires `credential: key_file`")
        if self.env_prefix and self.credential == "default":
            raise ValueError("`env_prefix` requires another credential than `default`, which uses what it finds")
        kinds = _CREDENTIALS.get(self.scheme)
        known = [str(kind.value) for kind in kinds] if kinds else ["default"]
        if self.credential not in known:
            listed = ", ".join(known)
            raise ValueError(f"{self.kind} has no credential {self.credential!r}; it is one of: {listed}")
        return self

    @property
    def address(self) -> LakeAddress | None:
        """The root's address; None for a folder of this machine."""
        return LakeAddress.parse(self.root) if is_uri(self.root) else None

    @property
    def scheme(self) -> Scheme | None:
        """The kind of store; None for a folder of this machine."""
        return self.address.scheme if self.address else None

    @property
    def kind(self) -> str:
        """The kind of store, for messages."""
        return f"a store {self.scheme.value}://" if self.scheme else "a folder of this machine"

    @property
    def store(self) -> LakeStore | None:
        """The store for both readers; None for a folder of this machine."""
        address, kind, prefix = self.address, self.credential, self.env_prefix or ""
        if address is None:
            return None
        if address.scheme is Scheme.S3:
            place = (self.region, self.endpoint, self.path_style)
            return S3Store(
                address, AwsCredential(kind), *place, profile=self.profile, role=self.role, env_prefix=prefix
            )
        if address.scheme is Scheme.AZURE:
            return AzureStore(address, AzureCredential(kind), self.endpoint, prefix)
        if address.scheme is Scheme.GOOGLE:
            return GoogleStore(address, GoogleCredential(kind), self.key_file, prefix)
        return HdfsStore(address)

    def table(self, path: str) -> str:
        """Return the address of the table at a path below the root. Raises ValueError for one that leads elsewhere."""
        if self.address is not None:
            return self.address.below(path).uri
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise ValueError(f"{path!r} leads out of the store {self.root}")
        return str(Path(self.root, path))
