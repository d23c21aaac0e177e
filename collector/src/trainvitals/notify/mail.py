"""E-mail by SMTP: encrypted by STARTTLS or from the first byte, with the certificate looked at, and a login.

A certificate of one's own: SSL_CERT_FILE names the file of who signed it.
"""

import re
import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from trainvitals.alerting.channels import HIDDEN, Values
from trainvitals.errors import SettingError
from trainvitals.notify.channel import Channel, Unsent
from trainvitals.notify.limits import SOCKET_SECONDS, TOLD_WHOLE
from trainvitals.notify.message import Message
from trainvitals.notify.request import words
from trainvitals.notify.words import subject, text

_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")


class Mail(Channel):
    kind = "email"

    def __init__(self, key: str, values: Values, *, only_pages: bool = False) -> None:
        super().__init__(key, [values["SMTP_PASSWORD"] or ""], only_pages=only_pages)
        self._values = values

    def send(self, message: Message) -> None:
        mail = self._mail(message)
        try:
            with self._server() as server:
                # Some of several who are refused are no reason to tell the others again.
                server.send_message(mail)
        except (OSError, smtplib.SMTPException, UnicodeError) as error:
            raise self._unsent(error) from None

    def check(self) -> str:
        """As far as to the login."""
        host = f"{self._values['SMTP_HOST']}:{self._values['SMTP_PORT']}"
        try:
            with self._server():
                return ""
        except (smtplib.SMTPAuthenticationError, UnicodeError) as error:
            raise SettingError("SMTP_PASSWORD", HIDDEN, self.hide(
                f"{host} takes no such login: {_words(error)}; some providers want a password made for programs"
            )) from None  # fmt: skip
        except ssl.SSLCertVerificationError as error:
            fix = "name the server as its certificate does, or its signer's file in SSL_CERT_FILE"
            raise SettingError("SMTP_HOST", host, f"{self.hide(_words(error))}; {fix}") from None
        except (OSError, smtplib.SMTPException) as error:
            fix = "look at SMTP_HOST, SMTP_PORT and SMTP_TLS"
            raise SettingError("SMTP_HOST", host, f"{self.hide(_words(error))}; {fix}") from None

    @contextmanager
    def _server(self) -> Iterator[smtplib.SMTP]:
        values = self._values
        host, port = values["SMTP_HOST"].strip("[]"), values["SMTP_PORT"]
        # Not its own idea of this machine's name: that asks the name server.
        own = _own_name()
        if values["SMTP_TLS"] == "tls":
            context = ssl.create_default_context()
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, own, timeout=SOCKET_SECONDS, context=context)
        else:
            server = smtplib.SMTP(host, port, own, timeout=SOCKET_SECONDS)
        with server:
            if values["SMTP_TLS"] == "starttls":
                server.starttls(context=ssl.create_default_context())
            if values["SMTP_USER"]:
                server.login(values["SMTP_USER"], values["SMTP_PASSWORD"])
            yield server

    def _mail(self, message: Message) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = subject(message)
        mail["From"], mail["To"] = self._values["SMTP_FROM"], self._values["SMTP_TO"]
        mail["Date"], mail["Message-ID"] = formatdate(), make_msgid(domain=_own_name())
        # No answer of somebody who is away.
        mail["Auto-Submitted"] = "auto-generated"
        if message.severity == "page" and message.goes_on:
            mail["Importance"] = "high"
        mail.set_content(text(message, TOLD_WHOLE) + "\n")
        return mail

    def _unsent(self, error: Exception) -> Unsent:
        """What begins with 5 is meant for good; so is a login or a sender that is not taken."""
        code = error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else 0
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            code = min((answer[0] for answer in error.recipients.values()), default=0)
        is_refused = code >= 500 or isinstance(error, (ssl.SSLCertVerificationError, smtplib.SMTPNotSupportedError,
                                                       UnicodeError))  # fmt: skip
        return Unsent(_words(error), is_refused=is_refused)


def _words(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(f"{code} {_text(said)}" for code, said in error.recipients.values())
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    if isinstance(error, UnicodeError):
        return "user and password must be of plain letters"
    return words(error)


def _text(said: bytes | str) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else said


def _own_name() -> str:
    return _UNSAFE.sub("-", socket.gethostname()).strip("-.") or "localhost"
