"""A mail server on loopback: STARTTLS or TLS, login, and the faults that such have."""

import base64
import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress

import pytest


def make_certificate(folder):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=mail", "-keyout", folder / "mail.key", "-out", folder / "mail.crt"],
                   check=True, capture_output=True)  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "mail.crt", folder / "mail.key")
    return context


class MailServer:
    """`fault`: "hangs" never answers, "closes" hangs up, "echoes" refuses a login and repeats what it was sent."""

    def __init__(self, context, starttls=True, fault=""):
        self.context, self.starttls, self.fault = context, starttls, fault
        self.mails, self.logins = [], []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._listening.close()

    def _serve(self):
        with suppress(OSError):
            while True:
                threading.Thread(target=self._talk, args=(self._listening.accept()[0],), daemon=True).start()

    def _talk(self, connection):
        with suppress(OSError, ValueError):
            if self.fault == "hangs":
                time.sleep(60)
            if self.fault == "closes":
                connection.close()
            if not self.starttls:
                connection = self.context.wrap_socket(connection, server_side=True)
            self._converse(connection, is_safe=not self.starttls)

    def _converse(self, connection, is_safe, greeting="220 mail"):
        file = connection.makefile("rwb")

        def say(*lines):
            for line in lines:
                file.write(line.encode() + b"\r\n")
            file.flush()

        if greeting:
            say(greeting)
        while line := file.readline().decode().strip():
            word = line.split()[0].upper()
            if word == "EHLO":
                say("250-mail", "250 AUTH PLAIN" if is_safe else "250 STARTTLS")
            elif word == "STARTTLS":
                say("220 go on")
                return self._converse(self.context.wrap_socket(connection, server_side=True), True, greeting="")
            elif word == "AUTH":
                _, user, password = base64.b64decode(line.split()[2]).decode().split("\0")
                self.logins.append((user, password, is_safe))
                say(f"535 no: {line} {password}" if self.fault == "echoes" else "235 welcome")
            elif word == "DATA":
                say("354 go on")
                lines = []
                while (line := file.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(line)
                self.mails.append("\n".join(lines))
                say("250 taken")
            else:
                say("221 bye" if word == "QUIT" else "250 fine")
        return None
