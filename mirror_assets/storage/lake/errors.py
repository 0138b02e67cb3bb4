"""Errors of the stores of source tables."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError


def package_missing(package: str, extra: str) -> SettingError:
    """A credential needs a package that only some stores need."""
    return SettingError(
        f"the package {package} is needed for this credential, and is not installed.",
        f"run `pip install 'mirror-assets[{extra}]'`, or choose another credential.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def aws_identity_unfit(kind: str, role: str | None, why: str) -> SettingError:
    """AWS's SDK finds no such credential, or AWS refuses it."""
    assumed = f", to assume {role}" if role else ""
    return SettingError(
        f"the AWS credential {kind}{assumed} can't be used: {why}.",
        "correct the profile, the variables or the role's trust policy, or choose another credential.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def identity_refused(root: str, why: str) -> SettingError:
    """The authority issued no token for a store."""
    return SettingError(
        f"no token was issued for {root}: {' '.join(why.split())[:300].rstrip('.')}.",
        "check the store's `credential` in `stores`, and its variables in the environment.",
        code=ErrorCode.TOKEN_REFUSED,
    )


def spark_cannot_sign_in(master: str) -> SettingError:
    """The executors of a cluster can't ask this process for tokens."""
    return SettingError(
        f"executors of {master} have no way to the credentials `default` and `certificate` of an Azure store.",
        "name another in `stores`: client_secret, managed_identity, workload_identity or sas.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def stores_collide(root: str, setting: str) -> SettingError:
    """Two stores need two values of one setting of Hadoop."""
    return SettingError(
        f"Spark can't reach {root} beside another store: both set {setting}, which has one value.",
        "give stores of one bucket, or of one account, the same kind of credential; or mirror them by two mirror.yaml.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )
