"""The web configuration file of Prometheus's exporters: TLS, basic auth, headers.

tls_server_config: {cert_file: server.crt, key_file: server.key}
basic_auth_users: {prometheus: $2y$10$…}
"""

import hashlib
import hmac
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


@dataclass(slots=True)
class WebConfig:
    users: dict[str, bytes] = field(default_factory=dict, repr=False)
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    _good: set[bytes] = field(default_factory=set, repr=False)

    def admits(self, authorization: str) -> bool:
        """Whether a request's Authorization header names a user and their password."""
        if not self.users:
            return True
        digest = hashlib.sha256(authorization.encode()).digest()
        if any(hmac.compare_digest(digest, good) for good in self._good):
            return True
        if not self._is_right(authorization):
            return False
        self._good.add(digest)
        return True

    def _is_right(self, authorization: str) -> bool:
        import bcrypt

        scheme, _, encoded = authorization.partition(" ")
        try:
            user, _, password = b64decode(encoded, validate=True).decode().partition(":")
        except (Base64Error, UnicodeDecodeError, ValueError):
            return False
        known = self.users.get(user)
        expected = known or next(iter(self.users.values()))
        right = bcrypt.checkpw(password.encode()[:72], expected)
        return right and known is not None and scheme.lower() == "basic"


def load(path: Path | None) -> WebConfig:
    if path is None:
        return WebConfig()
    content = _parse(path)
    _refuse_unknown(path, "", content, _KEYS)
    tls = _section(path, content, "tls_server_config")
    _refuse_unknown(path, "tls_server_config.", tls, _TLS_KEYS)
    http = _section(path, content, "http_server_config")
    _refuse_unknown(path, "http_server_config.", http, {"headers", "http2"})
    return WebConfig(
        users=_users(path, _section(path, content, "basic_auth_users")),
        headers={str(name): str(value) for name, value in (http.get("headers") or {}).items()},
        tls=_tls_context(path, tls) if tls else None,
    )


def _parse(path: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingError("--web-config", path, f"mend the file: {' '.join(str(error).split())}") from error
    if content is not None and not isinstance(content, dict):
        raise SettingError("--web-config", path, "write keys such as basic_auth_users and their values")
    return content or {}


def _section(path: Path, content: dict[str, Any], name: str) -> dict[str, Any]:
    section = content.get(name) or {}
    if not isinstance(section, dict):
        raise SettingError(f"{path}: {name}", section, "give keys and values below it")
    return section


def _refuse_unknown(path: Path, prefix: str, content: dict[str, Any], known: set[str]) -> None:
    for name, value in content.items():
        if name not in known:
            raise SettingError(f"{path}: {prefix}{name}", value, f"use {', '.join(sorted(known))}")


def _users(path: Path, section: dict[str, Any]) -> dict[str, bytes]:
    for name, secret in section.items():
        if not str(secret).startswith(("$2a$", "$2b$", "$2y$")):
            key = f"{path}: basic_auth_users.{name}"
            raise SettingError(key, "(not shown)", "give a bcrypt hash, made with `htpasswd -nBC 10 USER`")
    return {str(name): str(secret).encode() for name, secret in section.items()}


def _tls_context(path: Path, section: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _choice(path, section, "min_version", _VERSIONS, "TLS12")
    context.maximum_version = _choice(path, section, "max_version", _VERSIONS, "TLS13")
    context.verify_mode = _choice(path, section, "client_auth_type", _CLIENT_AUTH, "NoClientCert")
    cert, key = _beside(path, section, "cert_file"), _beside(path, section, "key_file")
    try:
        context.load_cert_chain(cert, key)
        if section.get("client_ca_file"):
            context.load_verify_locations(_beside(path, section, "client_ca_file"))
    except (OSError, ssl.SSLError) as error:
        raise SettingError(f"{path}: tls_server_config", f"{cert}, {key}", str(error)) from error
    return context


def _choice(path: Path, section: dict[str, Any], name: str, choices: dict[str, Any], default: str) -> Any:
    value = section.get(name) or default
    if value not in choices:
        raise SettingError(f"{path}: tls_server_config.{name}", value, f"choose one of {', '.join(choices)}")
    return choices[value]


def _beside(path: Path, section: dict[str, Any], name: str) -> Path:
    """File names in the configuration start from its folder."""
    if not section.get(name):
        raise SettingError(f"{path}: tls_server_config.{name}", "", "name a file")
    return path.parent / str(section[name])
