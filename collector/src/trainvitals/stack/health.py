"""The container's health check: whether the agent answers and goes on reading.

A GPU that is missing is the machine's trouble, which alerts tell of; the container is none the worse for it.
"""

import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping

SECONDS = 4.0


def problem(environ: Mapping[str, str], port: int = 8080) -> str:
    """Nothing where all is well."""
    scheme = "https" if environ.get("TRAINVITALS_WEB_CONFIG") else "http"
    schemes = (scheme, "http") if scheme == "https" else (scheme,)
    told = ""
    for scheme in schemes:
        try:
            return _agent_s_own(_ask(f"{scheme}://127.0.0.1:{port}/healthz"))
        except OSError as error:
            told = str(error)
    return f"the agent does not answer: {told}"


def _ask(url: str) -> str:
    # Its own certificate need not have this address in it.
    context = ssl._create_unverified_context() if url.startswith("https") else None
    try:
        with urllib.request.urlopen(url, timeout=SECONDS, context=context) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


def _agent_s_own(text: str) -> str:
    return "; ".join(line for line in text.splitlines() if line != "ok" and " GPUs answer" not in line)
