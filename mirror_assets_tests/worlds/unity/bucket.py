"""The bucket of the S3 server with keys for single tables in it, as a catalog vends them; they end on time."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sts.models import sts_backends
from werkzeug.wrappers import Request

from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, S3Request, S3Server
from mirror_assets_tests.worlds.unity.server import Table

_GRACE = 2.0
_READING = ("s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation", "s3:HeadObject")


@dataclass
class LoopbackBucket:
    """`lifetime`: seconds for which vended keys are good."""

    server: S3Server
    lifetime: float = 3600.0
    _roles: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.server.url

    def reset(self) -> None:
        """Keys last an hour, nothing is slow, and nothing has been asked."""
        self.lifetime = 3600.0
        self.server.forget()

    def requests(self) -> list[S3Request]:
        """Return what has been asked of the bucket since the last call."""
        found = [asked for asked in self.server.seen if asked.path.startswith(f"/{BUCKET}")]
        self.server.seen.clear()
        return found

    def slow(self, pattern: str, seconds: float) -> None:
        """Let requests for paths that match wait so long."""

        def wait(request: Request) -> None:
            if re.search(pattern, request.path):
                time.sleep(seconds)

        self.server.fault = wait

    @property
    def writer(self) -> dict[str, str]:
        """Options of deltalake for an identity that may do anything."""
        return {**self.server.options, "aws_conditional_put": "etag"}

    def uri(self, path: str) -> str:
        """The address of a table."""
        return f"s3://{BUCKET}/{path}"

    def vend(self, table: Table) -> dict[str, Any]:
        """Return TemporaryCredentials that read the table and nothing else, and are void when they end."""
        if table.table_id not in self._roles:
            assert table.location is not None
            prefix = table.location.removeprefix(f"s3://{BUCKET}/")
            # moto asks for listing by the bucket alone, whatever the prefix is.
            objects = [f"arn:aws:s3:::{BUCKET}{below}" for below in ("", f"/{prefix}", f"/{prefix}/*")]
            may = {"Effect": "Allow", "Action": list(_READING), "Resource": objects}
            self._roles[table.table_id] = self.server.role_of(f"reads-{table.table_id}", may)
        sts, role = self.server.client("sts"), self._roles[table.table_id]
        made = sts.assume_role(RoleArn=role, RoleSessionName=uuid.uuid4().hex)["Credentials"]
        # A little later than it says: a request that was signed in time is still good when it arrives.
        timer = threading.Timer(self.lifetime + _GRACE, _revoke, [made["AccessKeyId"]])
        timer.daemon = True
        timer.start()
        keys = {
            "access_key_id": made["AccessKeyId"],
            "secret_access_key": made["SecretAccessKey"],
            "session_token": made["SessionToken"],
        }
        return {"aws_temp_credentials": keys, "expiration_time": int((time.time() + self.lifetime) * 1000)}

    def keys_of(self, requests: Iterable[S3Request]) -> list[str]:
        """The keys that signed these requests, in the order in which they were first used."""
        return list(dict.fromkeys(request.access_key for request in requests))


def _revoke(access_key: str) -> None:
    """Let the key of an assumed role be unknown."""
    known = sts_backends[DEFAULT_ACCOUNT_ID]["aws"].assumed_roles
    known[:] = [role for role in known if role.access_key_id != access_key]
