"""A mail server on loopback that speaks TLS and asks for a login, with a certificate of a signer made for it.

with mail_server(folder, "starttls") as server: …; server.box.mails
"""

import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.ports import free_port

USER, PASSWORD = "tv@gpu.example", "hush-mail-password"


def certificates(folder: Path, name: str = "127.0.0.1") -> tuple[Path, Path]:
    """The signer's certificate, and a file with the server's and its key."""
    folder.mkdir(exist_ok=True)
    signer_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    signer = _certificate("signer", "signer", signer_key, signer_key, x509.BasicConstraints(ca=True, path_length=None))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))])
    server = _certificate(name, "signer", key, signer_key, names)
    pem = serialization.Encoding.PEM
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "signer.pem").write_bytes(signer.public_bytes(pem))
    (folder / "server.pem").write_bytes(server.public_bytes(pem) + plain)
    return folder / "signer.pem", folder / "server.pem"


def _certificate(of: str, by: str, key: Any, signer_key: Any, *more: x509.ExtensionType) -> x509.Certificate:
    now = datetime.now(timezone.utc)
    subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (of, by))
    builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
               .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
               .not_valid_after(now + timedelta(days=1)))  # fmt: skip
    for extension in more:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(signer_key, hashes.SHA256())


@dataclass
class Box:
    """`answer` is what it says to a mail, `refuse` to a recipient."""

    mails: list[Message] = field(default_factory=list)
    tried: int = 0
    logins: list[bytes] = field(default_factory=list)
    answer: str = "250 OK"
    refuse: dict[str, str] = field(default_factory=dict)

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.tried += 1
        if self.answer.startswith("250"):
            mail = message_from_bytes(envelope.content)
            mail["rcpt"] = ",".join(envelope.rcpt_tos)
            self.mails.append(mail)
        return self.answer

    def login(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login)
        is_right = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=is_right, handled=False)


@dataclass
class MailServer:
    box: Box
    port: int
    signer: Path
    way: str

    def environ(self, **more: str) -> dict[str, str]:
        login = {"SMTP_USER": USER, "SMTP_PASSWORD": PASSWORD} if self.way != "none" else {}
        return {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(self.port), "SMTP_TLS": self.way,
                "SMTP_FROM": "TrainVitals <tv@gpu.example>", "SMTP_TO": "a@gpu.example, b@gpu.example",
                **login, **more}  # fmt: skip


@contextmanager
def mail_server(folder: Path, way: str = "starttls", port: int = 0) -> Iterator[MailServer]:
    signer, pem = certificates(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    box = Box()

    class Server(Controller):
        def factory(self) -> SMTP:
            more = {} if way == "none" else {"authenticator": box.login, "auth_required": True}
            starttls = {"tls_context": context, "require_starttls": True} if way == "starttls" else {}
            return SMTP(box, hostname="mail.example", **more, **starttls,
                        **({"auth_require_tls": False} if way == "tls" else {}))  # fmt: skip

    controller = Server(box, hostname="127.0.0.1", port=port or free_port(),
                        **({"ssl_context": context} if way == "tls" else {}))  # fmt: skip
    controller.start()
    try:
        yield MailServer(box, controller.port, signer, way)
    finally:
        controller.stop()


def header(mail: Message, name: str) -> str:
    return str(make_header(decode_header(mail[name])))


def body(mail: Message) -> str:
    return bytes(mail.get_payload(decode=True)).decode()  # type: ignore[arg-type]
