"""The stores of source tables, for both readers of Delta tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator
from typing_extensions import Self

from mirror_assets.lakes.azure import AzureCredential, AzureStore
from mirror_assets.lakes.google import GoogleCredential, GoogleStore
from mirror_assets.lakes.lake_store import LakeAddress, LakeStore, Scheme
from mirror_assets.lakes.s3 import AwsCredential, S3Store
from mirror_assets.settings import LocalFile, Section, Text, is_uri, local_path, local_source, matching

# A password before the host, or a signed request of Azure Storage, S3 or Google Cloud Storage.
_SECRETS = re.compile(r"://[^/?#@]*:[^/?#@]*@|[?&](sig|x-amz-signature|x-goog-signature)=", re.IGNORECASE)
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


def address_of(value: object, info: ValidationInfo) -> object:
    """Return the absolute path of a local path, and a store's address in the spelling that both readers take.

    Raises ValueError for anything else. Databricks' own addresses are unchanged: reading them reports the next step.
    """
    if isinstance(value, str) and _SECRETS.search(value):
        raise ValueError(
            "credentials in a URI end up in Dagster's storage; remove them, and set a `credential` in `stores`"
        )
    value = local_source(value)
    if isinstance(value, str) and is_uri(value) and not value.lower().startswith("dbfs:"):
        return LakeAddress.parse(value).uri
    return local_path(value, info)


Address = Annotated[str, BeforeValidator(address_of)]


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
        return LakeStore(address)

    def table(self, path: str) -> str:
        """Return the address of the table at a path below the root. Raises ValueError for one that leads elsewhere."""
        if self.address is not None:
            return self.address.below(path).uri
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise ValueError(f"{path!r} leads out of the store {self.root}")
        return str(Path(self.root, path))
