"""In the place of DCGM's exporter: it tells the counters of a recorded scrape, under the GPUs' names of this machine's
stand-in, and takes the same words and the same web configuration.
"""

import argparse
import signal
import ssl
import sys
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import bcrypt
import yaml

SCRAPE = Path("/scrape.txt").read_bytes()
words = argparse.ArgumentParser()
words.add_argument("-f", type=Path, required=True)
words.add_argument("-c", type=int, required=True)
words.add_argument("--web-config-file", default="")
told = words.parse_args()
assert "DCGM_FI_" in told.f.read_text()
configuration = yaml.safe_load(Path(told.web_config_file).read_text()) if told.web_config_file else {}


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        status = 200 if is_admitted(self.headers.get("Authorization", "")) else 401
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(SCRAPE if status == 200 else b"Unauthorized\n")

    def log_message(self, *_):
        pass


def is_admitted(header):
    users = configuration.get("basic_auth_users")
    if not users:
        return True
    user, _, password = b64decode(header.removeprefix("Basic ")).decode().partition(":")
    return user in users and bcrypt.checkpw(password.encode(), users[user].encode())


server = ThreadingHTTPServer(("", 9400), Answer)
if tls := configuration.get("tls_server_config"):
    folder = Path(told.web_config_file).parent
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / tls["cert_file"], folder / tls["key_file"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
server.serve_forever()
