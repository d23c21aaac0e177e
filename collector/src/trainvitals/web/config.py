"""The web configuration file of Prometheus's exporters: TLS, basic auth, headers.

tls_server_config: {cert_file: server.crt, key_file: server.key}
basic_auth_users: {prometheus: $2y$10$…}

What cannot be honoured is refused, never left out; and no error shows a value, for it may be a secret.
"""

import hashlib
import hmac
import re
import ssl
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainvitals.errors import SettingError

_TLS_KEYS = {"cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version", "max_version"}
_KEYS = {"tls_server_config", "basic_auth_users", "http_server_config"}
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"NoClientCert": ssl.CERT_NONE, "RequestClientCert": ssl.CERT_NONE,
                "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
                "RequireAndVerifyClientCert": ssl.CERT_REQUIRED}  # fmt: skip
_BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_HIDDEN = "(not shown)"
# One password can be written in many headers: in what case `Basic` is, for one.
_MAX_GOOD = 64
# bcrypt looks at no more of a password: what is longer would be let in by its beginning.
_BCRYPT_BYTES = 72


@dataclass(slots=True)
class WebConfig:
    users: dict[str, bytes] = field(default_factory=dict, repr=False)
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    # Replaced, not changed: it is read in another thread.
    _good: tuple[bytes, ...] = field(default=(), repr=False)

    def admits(self, authorization: str) -> bool:
        """Whether a request's Authorization header names a user and their password."""
        if not self.users or self.has_admitted(authorization):
            return True
        if not self._is_right(authorization):
            return False
        self._good = (*self._good, _digest(authorization))[-_MAX_GOOD:]
        return True

    def has_admitted(self, authorization: str) -> bool:
        """Without bcrypt, which is slow by design."""
        digest = _digest(authorization)
        return any(hmac.compare_digest(digest, good) for good in self._good)

    def _is_right(self, authorization: str) -> bool:
        import bcrypt

        scheme, _, encoded = authorization.partition(" ")
        try:
            user, _, password = b64decode(encoded, validate=True).decode().partition(":")
        except (Base64Error, UnicodeDecodeError, ValueError):
            return False
        known = self.users.get(user)
        # An unknown user takes as long as a wrong password.
        expected = known or next(iter(self.users.values()))
        secret = password.encode()
        right = bcrypt.checkpw(secret[:_BCRYPT_BYTES], expected) and len(secret) <= _BCRYPT_BYTES
        return right and known is not None and scheme.lower() == "basic"


@dataclass(frozen=True, slots=True)
class Asks:
    """What whoever calls must do and bring."""

    has_tls: bool = False
    has_users: bool = False
    wants_certificate: bool = False

    @property
    def is_locked(self) -> bool:
        return self.has_users or self.wants_certificate


def _digest(authorization: str) -> bytes:
    return hashlib.sha256(authorization.encode()).digest()


def load(path: Path | None) -> WebConfig:
    if path is None:
        return WebConfig()
    content = _parse(path)
    _refuse_unknown(path, "", content, _KEYS)
    tls = _section(path, content, "tls_server_config", _TLS_KEYS)
    http = _section(path, content, "http_server_config", {"headers", "http2"})
    return WebConfig(
        users=_users(path, _section(path, content, "basic_auth_users")),
        headers=_headers(path, _section(path, http, "headers", prefix="http_server_config.")),
        tls=_tls_context(path, tls) if tls else None,
    )


def asks(path: Path) -> Asks:
    """Neither certificates nor bcrypt are needed for it: they may be elsewhere."""
    content = _parse(path)
    tls, users = _section(path, content, "tls_server_config"), _section(path, content, "basic_auth_users")
    mode = _choice(path, tls, "client_auth_type", _CLIENT_AUTH, "NoClientCert")
    return Asks(bool(tls), bool(users), mode == ssl.CERT_REQUIRED)


def _parse(path: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise SettingError("--web-config", path, f"mend its YAML{line}") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise SettingError("--web-config", path, "write it as YAML in UTF-8, readable by this user") from error
    if content is not None and not isinstance(content, dict):
        raise SettingError("--web-config", path, "write keys such as basic_auth_users and their values")
    return content or {}


def _section(path: Path, content: dict[str, Any], name: str, known: set[str] | None = None,
             prefix: str = "") -> dict[str, Any]:  # fmt: skip
    section = content.get(name)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise SettingError(f"{path}: {prefix}{name}", _HIDDEN, "give keys and values below it")
    if known is not None:
        _refuse_unknown(path, f"{name}.", section, known)
    return section


def _refuse_unknown(path: Path, prefix: str, content: dict[str, Any], known: set[str]) -> None:
    for name in content:
        if name not in known:
            raise SettingError(f"{path}: {prefix}{name}", _HIDDEN, f"known here: {', '.join(sorted(known))}")


def _users(path: Path, section: dict[str, Any]) -> dict[str, bytes]:
    if section:
        # Missing, it is to be missed now and not at the first request.
        import bcrypt  # noqa: F401
    for name, secret in section.items():
        if not _BCRYPT.fullmatch(str(secret)):
            key = f"{path}: basic_auth_users.{name}"
            raise SettingError(key, _HIDDEN, "give a bcrypt hash, made with `htpasswd -nBC 10 USER`")
    return {str(name): str(secret).encode() for name, secret in section.items()}


def _headers(path: Path, section: dict[str, Any]) -> dict[str, str]:
    headers = {str(name): str(value) for name, value in section.items()}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise SettingError(f"{path}: http_server_config.headers.{name}", value, "write it in plain ASCII")
    return headers


def _tls_context(path: Path, section: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    lowest, highest = (_choice(path, section, name, _VERSIONS, default)
                       for name, default in (("min_version", "TLS12"), ("max_version", "TLS13")))  # fmt: skip
    if lowest > highest:
        raise SettingError(f"{path}: tls_server_config.min_version", section["min_version"], "max_version is below it")
    context.minimum_version, context.maximum_version = lowest, highest
    _load_own(context, path, section)
    _load_clients(context, path, section)
    return context


def _load_own(context: ssl.SSLContext, path: Path, section: dict[str, Any]) -> None:
    cert, key = _beside(path, section, "cert_file"), _beside(path, section, "key_file")
    try:
        # An encrypted key would otherwise be asked for at the terminal.
        context.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        fix = f"give a certificate and its key, both PEM and without a password ({_words(error)})"
        raise SettingError(f"{path}: tls_server_config", f"{cert}, {key}", fix) from error


def _load_clients(context: ssl.SSLContext, path: Path, section: dict[str, Any]) -> None:
    mode = _choice(path, section, "client_auth_type", _CLIENT_AUTH, "NoClientCert")
    checks, given = mode != ssl.CERT_NONE, section.get("client_ca_file") is not None
    if checks != given:
        key, value = f"{path}: tls_server_config.client_auth_type", section.get("client_auth_type", "NoClientCert")
        fix = "name a client_ca_file too" if checks else "client_ca_file needs RequireAndVerifyClientCert"
        raise SettingError(key, value, fix)
    if given:
        authority = _beside(path, section, "client_ca_file")
        try:
            context.load_verify_locations(authority)
        except (OSError, ValueError) as error:
            fix = f"give certificates in PEM ({_words(error)})"
            raise SettingError(f"{path}: tls_server_config.client_ca_file", authority, fix) from error
    context.verify_mode = mode


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _choice(path: Path, section: dict[str, Any], name: str, choices: dict[str, Any], default: str) -> Any:
    value = str(section.get(name) or default)
    if value not in choices:
        raise SettingError(f"{path}: tls_server_config.{name}", value, f"choose one of {', '.join(choices)}")
    return choices[value]


def _beside(path: Path, section: dict[str, Any], name: str) -> Path:
    """File names in the configuration start from its folder."""
    value = section.get(name)
    if not value or not isinstance(value, str) or "\0" in value:
        raise SettingError(f"{path}: tls_server_config.{name}", value or "", "name a file")
    return path.parent / value
