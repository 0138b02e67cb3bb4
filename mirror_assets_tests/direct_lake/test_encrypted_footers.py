"""Files with encrypted footers or columns: said to be so, whichever it is."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig

from mirror_assets.errors import StopError
from mirror_assets_tests.direct_lake.parquet_files import read, write


class _Keys(KmsClient):  # type: ignore[misc]
    """Keeps keys as they are."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        del master_key_identifier
        return b64encode(key_bytes)


@pytest.mark.parametrize(("plaintext_footer", "why"), [(True, "its columns are encrypted"), (False, "it is encrypted")])
def test_an_encrypted_file_is_named(tmp_path: Path, plaintext_footer: bool, why: str) -> None:
    configuration = EncryptionConfiguration("footer", column_keys={"a": ["id"]}, plaintext_footer=plaintext_footer)
    properties = CryptoFactory(lambda _: _Keys()).file_encryption_properties(KmsConnectionConfig(), configuration)
    write(tmp_path, "a.parquet", pa.table({"id": [1], "text": ["a"]}), encryption_properties=properties)
    with pytest.raises(StopError, match=f"a.parquet can't be read: {why}"):
        read(tmp_path)
