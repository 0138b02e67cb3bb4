"""Buckets of Google Cloud Storage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from mirror_assets.lakes.azure_identity import variable
from mirror_assets.lakes.errors import CREDENTIAL_INCOMPLETE
from mirror_assets.lakes.lake_store import LakeStore

# Part of Hadoop since 3.5.0, the Hadoop of Spark 4.2.
HADOOP_GCP = "org.apache.hadoop:hadoop-gcp:3.5.0"
KEY_FILE = "GOOGLE_APPLICATION_CREDENTIALS"


class GoogleCredential(str, Enum):
    """The identity that reads a bucket. `default`: Google's application default credentials."""

    DEFAULT = "default"
    KEY_FILE = "key_file"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True)
class GoogleStore(LakeStore):
    """A bucket, or a folder of one. `key_file` is a service account's; by default that of the environment."""

    credential: GoogleCredential = GoogleCredential.DEFAULT
    key_file: Path | None = None
    env_prefix: str = ""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)

    packages = (HADOOP_GCP,)

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options. Raises CREDENTIAL_INCOMPLETE."""
        if self.credential is GoogleCredential.ANONYMOUS:
            return {"google_skip_signature": "true"}
        if self.credential is not GoogleCredential.KEY_FILE:
            return {}
        name = self.env_prefix + KEY_FILE
        file = str(self.key_file) if self.key_file else self.environment.get(name)
        if not file:
            raise CREDENTIAL_INCOMPLETE(kind=self.credential.value, missing=(name,))
        return {"google_service_account": file}

    def hadoop_settings(self) -> dict[str, str]:
        """Return Hadoop's settings; its file system has one identity for all buckets."""
        system = {"fs.gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"}
        if self.credential is GoogleCredential.ANONYMOUS:
            return system | {"fs.gs.auth.type": "UNAUTHENTICATED"}
        if self.credential is GoogleCredential.DEFAULT:
            return system | {"fs.gs.auth.type": "APPLICATION_DEFAULT"}
        path = str(self.key_file) if self.key_file else variable(self.env_prefix + KEY_FILE)
        return system | {
            "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
            "fs.gs.auth.service.account.json.keyfile": path,
        }
