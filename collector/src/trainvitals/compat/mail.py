"""One e-mail by SMTP, from a thread of its own: who sends waits so long and no longer.

mail = Mail({"smtp_server": "mail.example.org", "smtp_port": 587, "username": "me", "password": "…",
             "from": "me@example.org", "to": ["you@example.org"]})
mail.send("Subject", "Text")  ->  "" or why it was not sent; a password is never in it
"""

import base64
import ipaddress
import smtplib
import ssl
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from typing import Any

from trainvitals.run.harmless import told

# Of each answer, and of the whole.
ANSWER_SECONDS = 10.0
WAIT_SECONDS = 15.0
HIDDEN = "(hidden)"
_TLS = ("starttls", "tls", "none")


class Mail:
    """Keys are smtp_server, smtp_port (587), from, to, username, password or password_file, and tls: starttls, tls (for
    port 465) or none. On this machine itself no certificate is asked for."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = dict(config)
        self._host, self._port = str(config["smtp_server"]), int(config.get("smtp_port") or 587)
        self._tls = str(config.get("tls") or ("tls" if self._port == smtplib.SMTP_SSL_PORT else "starttls")).lower()
        self._to = _addresses(config["to"])
        self._from = _line(config.get("from") or config.get("username") or self._to[0])
        self._under_way: threading.Thread | None = None
        if self._tls not in _TLS:
            raise ValueError(f"tls: {self._tls!r} is none of {', '.join(_TLS)}")

    def send(self, subject: str, text: str) -> str:
        if self._under_way is not None and self._under_way.is_alive():
            return f"{self._host} has not answered to the one before"
        answers: list[str] = []
        self._under_way = threading.Thread(target=self._try, args=(subject, text, answers), name="trainvitals-mail",
                                           daemon=True)  # fmt: skip
        self._under_way.start()
        self._under_way.join(WAIT_SECONDS)
        return answers[0] if answers else f"{self._host} has not answered for {WAIT_SECONDS:g} s"

    def _try(self, subject: str, text: str, answers: list[str]) -> None:
        password = ""
        try:
            password = self._password()
            self._hand_over(self._message(subject, text), password)
        except Exception as error:
            answers.append(self._without(password, told(error)))
        else:
            answers.append("")

    def _message(self, subject: str, text: str) -> EmailMessage:
        message = EmailMessage()
        message["Subject"], message["From"], message["To"] = _line(subject), self._from, ", ".join(self._to)
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="trainvitals.invalid")
        message.set_content(text)
        return message

    def _hand_over(self, message: EmailMessage, password: str) -> None:
        user = str(self._config.get("username") or "")
        is_here = _is_here(self._host)
        context = _trusting() if is_here else ssl.create_default_context()
        with self._connected(context) as server:
            if self._tls == "starttls" and (not is_here or server.has_extn("starttls")):
                server.starttls(context=context)
                server.ehlo()
            elif self._tls == "none" and user and not is_here:
                raise ValueError("tls is none: a password is not sent for all to read; give starttls or tls")
            if user:
                server.login(user, password)
            server.send_message(message)

    def _connected(self, context: ssl.SSLContext) -> smtplib.SMTP:
        server = (smtplib.SMTP_SSL(self._host, self._port, timeout=ANSWER_SECONDS, context=context)
                  if self._tls == "tls" else smtplib.SMTP(self._host, self._port, timeout=ANSWER_SECONDS))  # fmt: skip
        server.ehlo()
        return server

    def _password(self) -> str:
        if file := self._config.get("password_file"):
            return Path(str(file)).expanduser().read_text(encoding="utf-8").strip()
        return str(self._config.get("password") or "")

    def _without(self, password: str, words: str) -> str:
        """A server may repeat what it was sent."""
        user = str(self._config.get("username") or "")
        for secret in (password, _encoded(password), _encoded(f"\0{user}\0{password}")) if password else ():
            words = words.replace(secret, HIDDEN)
        return words


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode().rstrip("=")


def _line(text: object) -> str:
    """A header is one line, whatever an alert says."""
    return " ".join(str(text).split())[:300]


def _addresses(given: object) -> list[str]:
    found = given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    addresses = [_line(one) for one in found if str(one).strip()]
    if not addresses:
        raise ValueError("to: give the address of who is told")
    return addresses


def _is_here(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
