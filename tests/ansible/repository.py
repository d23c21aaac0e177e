"""An apt repository signed with a key of its own, in the place of one that cannot be reached.

key = Key(folder)
publish(folder / "debian", [Package("docker-ce", "29.0.0", files=tree)], key, "trixie", "stable")
key.fingerprint  ->  "41E5…"
"""

import hashlib
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_SECONDS = 300


class Package(NamedTuple):
    name: str
    version: str
    depends: str = ""
    files: Path | None = None


class Key:
    def __init__(self, home: Path) -> None:
        self._home = home
        home.mkdir(mode=0o700, parents=True)
        self.run("--passphrase", "", "--quick-generate-key", "tests", "ed25519", "sign", "never")
        told = self.run("--with-colons", "--fingerprint")
        self.fingerprint = next(line.split(":")[9] for line in told.splitlines() if line.startswith("fpr:"))

    def run(self, *words: str | Path) -> str:
        command = ["gpg", "--homedir", str(self._home), "--batch", "--yes", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS).stdout


def publish(root: Path, packages: Iterable[Package], key: Key, suite: str = "", component: str = "") -> None:
    """Without a suite all of it lies in one folder, as NVIDIA has it."""
    lists = root / "dists" / suite / component / "binary-amd64" if suite else root
    lists.mkdir(parents=True, exist_ok=True)
    index = "\n".join(_entry(root, package) for package in packages)
    (lists / "Packages").write_text(index)
    top = root / "dists" / suite if suite else root
    digest = hashlib.sha256(index.encode()).hexdigest()
    name = (lists / "Packages").relative_to(top)
    (top / "Release").write_text(
        f"Suite: {suite}\nCodename: {suite}\nComponents: {component}\nArchitectures: amd64\n"
        f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {digest} {len(index.encode())} {name}\n"
    )
    key.run("--clearsign", "--output", top / "InRelease", top / "Release")
    key.run("--armor", "--output", root / "gpg", "--export")


def _entry(root: Path, package: Package) -> str:
    """Builds the package, and says of it what an index says."""
    control = f"Package: {package.name}\nVersion: {package.version}\nArchitecture: amd64\nMaintainer: tests\n"
    control += f"Depends: {package.depends}\n" if package.depends else ""
    control += "Description: a stand-in\n"
    folder = root / "build" / package.name
    if package.files:
        shutil.copytree(package.files, folder / "usr", symlinks=True, ignore=shutil.ignore_patterns("share"))
    (folder / "DEBIAN").mkdir(parents=True)
    (folder / "DEBIAN" / "control").write_text(control)
    made = root / f"{package.name}.deb"
    # Unpacked: it is looked at once.
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", folder, made], check=True,
                   capture_output=True, timeout=_SECONDS)  # fmt: skip
    shutil.rmtree(folder)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    return f"{control}Filename: {made.name}\nSize: {made.stat().st_size}\nSHA256: {digest}\n"
