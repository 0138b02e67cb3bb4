"""AWS keys that expire and are fetched again: of a profile, a web identity, an instance, or an assumed role.

botocore fetches them. deltalake and obstore have providers of their own for some of these kinds, but deltalake's would
fetch keys for each table that it opens, and takes no provider written in Python.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol

from mirror_assets.storage.errors import PACKAGE_MISSING, aws_identity_unfit

# botocore's names of the providers of a credential.
_PROVIDERS = {"web_identity": ("assume-role-with-web-identity",), "instance": ("container-role", "iam-role")}


class Keys(Protocol):
    """Keys as botocore returns them."""

    access_key: str
    secret_key: str
    token: str | None


@dataclass(frozen=True)
class AwsIdentity:
    """An identity for AWS: the kind of a credential, and with `role` the ARN of the role that it assumes."""

    kind: str
    profile: str | None = None
    role: str | None = None
    region: str | None = None
    env_prefix: str = ""

    def keys(self) -> Keys:
        """Return keys that are valid now. botocore fetches new ones before they expire; one process caches one set.

        Raises package_missing without botocore, and aws_identity_unfit if it finds no credential.
        """
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as error:
            raise PACKAGE_MISSING(package="botocore", extra="s3") from error
        try:
            keys: Keys = _credentials(self).get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            raise aws_identity_unfit(self.kind, self.role, str(error)) from error
        return keys


@cache
def _credentials(identity: AwsIdentity) -> Any:  # noqa: ANN401 botocore has no types
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials, EnvProvider
    from botocore.session import Session

    session = Session(profile=identity.profile)
    if identity.kind == "environment":
        names = {"access_key": "AWS_ACCESS_KEY_ID", "secret_key": "AWS_SECRET_ACCESS_KEY", "token": "AWS_SESSION_TOKEN"}
        variables = {name: identity.env_prefix + variable for name, variable in names.items()}
        found = EnvProvider(os.environ, variables).load()
    elif identity.kind in _PROVIDERS:
        resolver = session.get_component("credential_provider")
        found = next(filter(None, (resolver.get_provider(name).load() for name in _PROVIDERS[identity.kind])), None)
    else:
        found = session.get_credentials()
    if found is None:
        raise aws_identity_unfit(identity.kind, identity.role, "this machine has none")
    if identity.role is None:
        return found
    client, named = partial(session.create_client, region_name=identity.region), {"RoleSessionName": "mirror-assets"}
    fetcher = AssumeRoleCredentialFetcher(client, found, identity.role, extra_args=named)
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
