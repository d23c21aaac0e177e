"""In the place of Grafana, which cannot be had where nothing can be pulled: it answers what the health check, the
verification and Prometheus ask, keeps what it is given, and asks the data source of its provisioning as Grafana does.
"""

import base64
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEPT = Path("/var/lib/grafana/grafana.db")
PROVISIONING = Path("/etc/grafana/provisioning/datasources/prometheus.yml")


def data_source():
    """Address and uid, of a file that has each on a line of its own."""
    lines = [line.strip(" -") for line in PROVISIONING.read_text().splitlines()]
    told = dict(line.split(": ", 1) for line in lines if ": " in line)
    return told["url"], told["uid"]


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/api/health":
            return self.tell(200, {"database": "ok", "version": "13.1.2"})
        if self.path == "/metrics":
            return self.tell(200, b'grafana_build_info{version="13.1.2"} 1\n')
        if not self.is_admin():
            return self.tell(401, {"message": "Invalid username or password"})
        if self.path == "/kept":
            return self.tell(200, KEPT.read_bytes() if KEPT.exists() else b"")
        url, uid = data_source()
        if self.path == f"/api/datasources/uid/{uid}/health":
            return self.ask(url)
        return self.tell(404, {"message": "Not found"})

    def do_PUT(self):
        if not self.is_admin():
            return self.tell(401, {"message": "Invalid username or password"})
        KEPT.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
        return self.tell(200, {})

    def ask(self, url):
        try:
            with urllib.request.urlopen(f"{url}/api/v1/query?query=1", timeout=5) as answer:
                status = json.load(answer)["status"]
            return self.tell(200, {"status": "OK", "message": status})
        except (OSError, ValueError) as error:
            return self.tell(400, {"status": "ERROR", "message": str(error)})

    def is_admin(self):
        password = Path(os.environ["GF_SECURITY_ADMIN_PASSWORD__FILE"]).read_text().strip()
        expected = base64.b64encode(f"admin:{password}".encode()).decode()
        return self.headers.get("Authorization") == f"Basic {expected}"

    def tell(self, status, body):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
ThreadingHTTPServer(("", 3000), Answer).serve_forever()
