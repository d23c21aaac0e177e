"""A small Debian with Python, as an image: what images that cannot be pulled are made of.

debootstrap takes it from the machine's own apt sources, so no host's name stands here.
"""

import io
import os
import re
import shutil
import ssl
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "stack"
RELEASE = "trixie"
PACKAGES = "python3,python3-venv,python3-pip,busybox,ca-certificates"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def tree() -> Path:
    """The files of the Debian, made once a clone."""
    return debootstrapped(CACHE / RELEASE, RELEASE, PACKAGES, _fit_out)


def debootstrapped(folder: Path, release: str, packages: str, fit_out: Callable[[Path], None]) -> Path:
    if not folder.is_dir():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        words = ["debootstrap", "--variant=minbase", f"--include={packages}", release, str(unfinished), mirror()]
        told = subprocess.run(words, check=False, capture_output=True, text=True, timeout=900)
        if told.returncode:
            raise RuntimeError(f"debootstrap ended with {told.returncode}: {told.stdout[-2000:]}{told.stderr[-2000:]}")
        fit_out(unfinished)
        unfinished.rename(folder)
    return folder


def mirror(archive: str = "debian") -> str:
    """Where this machine takes the archive's packages from."""
    place = rf"(\S+/{archive}/?)\s"
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for file in files:
        text = file.read_text() if file.suffix in (".list", ".sources") and file.exists() else ""
        if found := re.search(rf"^(?:URIs:\s*|deb\s+(?:\[.*\]\s+)?){place}", text, re.MULTILINE):
            return found[1]
    raise RuntimeError(f"no mirror of {archive} in /etc/apt: there is nothing to take its packages from")


def _fit_out(folder: Path) -> None:
    """As Python's own image: python and pip under /usr/local/bin; and trusting whom this machine trusts."""
    local = folder / "usr" / "local" / "bin"
    for name in ("python", "python3", "python3.13"):
        (local / name).symlink_to("/usr/bin/python3")
    (local / "pip").symlink_to("/usr/bin/pip3")
    for mark in folder.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        mark.unlink()
    (folder / "usr" / "bin" / "wget").symlink_to("/bin/busybox")
    shutil.rmtree(folder / "var" / "cache" / "apt")
    trust_and_ask_as_this_machine(folder)


def trust_and_ask_as_this_machine(folder: Path) -> None:
    """Its certificates, and where its pip looks."""
    trusted = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    shutil.copy(os.environ.get("SSL_CERT_FILE", trusted), folder / "etc" / "ssl" / "certs" / "ca-certificates.crt")
    (folder / "etc" / "pip.conf").write_text(_pip_settings())


def _pip_settings() -> str:
    """Where this machine's pip looks, so that a build in the image looks there too."""
    told = {name: value for name in ("index-url", "trusted-host")
            if (value := os.environ.get(f"PIP_{name.upper().replace('-', '_')}"))}  # fmt: skip
    lines = [f"{name} = {value}" for name, value in {"cert": "/etc/ssl/certs/ca-certificates.crt", **told}.items()]
    return "\n".join(["[global]", *lines, ""])


def packed(folder: Path) -> bytes:
    """A folder as the tar file that an image is imported from or built with."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(folder, arcname=".")
    return buffer.getvalue()
