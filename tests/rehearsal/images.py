"""What the machines of the rehearsal start from: a Debian as its installer leaves it, with systemd and sshd.

    image(client, "bookworm", True)  ->  "trainvitals-rehearsal/bookworm-engine:0c1f5e22a9d4"

The tree is kept under .cache, the images by the engine. They are made anew when this file changes.
"""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.stack.bases import ROOT, debootstrapped, mirror, trust_and_ask_as_this_machine

CACHE = ROOT / ".cache" / "rehearsal"
USER = "admin"
PACKAGES = "systemd,systemd-sysv,libpam-systemd,dbus,openssh-server,sudo,python3,iproute2,procps,kmod,ca-certificates"
ENGINE = ROOT / ".cache" / "tools" / "engine"
_SECONDS = 900
# What apt must be told to reach this machine's mirrors.
_APT = re.compile(r"^Acquire::(?:Check-Valid-Until|https?|ForceIPv4).*", re.MULTILINE)
_FILES = Path(__file__).parent / "image"
_SYSTEM = f"""\
FROM {{base}}
COPY etc /etc/
RUN useradd --create-home --shell /bin/bash {USER} \\
    && echo '{USER} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/{USER} \\
    && rm -rf /etc/ssh/ssh_host_* && : >/etc/machine-id \\
    && mkdir -p /var/lib/apt/lists/partial && touch --date=@0 /var/lib/apt/lists \\
    && systemctl enable --quiet proc-sys.service ssh-keys.service
ENV container=docker
STOPSIGNAL SIGRTMIN+3
CMD ["/sbin/init"]
"""
# dpkg knows nothing of it: as somebody installed it by hand.
_ENGINE = """\
FROM {base}
RUN apt-get -qq update && apt-get -qq -y install --no-install-recommends iptables runc libdevmapper1.02.1 >/dev/null \\
    && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY usr /usr/
RUN groupadd --system docker && systemctl enable --quiet docker.socket docker.service
"""


def image(client: Any, release: str, engine: bool) -> str:
    name = f"trainvitals-rehearsal/{release}:{_recipe()}"
    if not client.images.list(name=name):
        _build(_imported(client, release), name, _SYSTEM, _FILES / "etc")
    if not engine:
        return name
    with_engine = name.replace(":", "-engine:")
    if not client.images.list(name=with_engine):
        subprocess.run([ROOT / "scripts" / "fetch-tools", "engine"], check=True, capture_output=True, timeout=_SECONDS)
        _build(name, with_engine, _ENGINE, ENGINE / "usr")
    return with_engine


def _recipe() -> str:
    files = [Path(__file__), *sorted(path for path in _FILES.rglob("*") if path.is_file())]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _imported(client: Any, release: str) -> str:
    name = f"trainvitals-rehearsal/{release}:{hashlib.sha256(PACKAGES.encode()).hexdigest()[:12]}"
    if not client.images.list(name=name):
        repository, _, tag = name.partition(":")
        folder = debootstrapped(CACHE / f"{release}-{tag}", release, PACKAGES, lambda made: _fit_out(made, release))
        # Not through this process: the tree is a few hundred megabytes.
        with subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE) as packing:
            subprocess.run(["docker", "import", "-", f"{repository}:{tag}"], stdin=packing.stdout, check=True,
                           capture_output=True, timeout=_SECONDS)  # fmt: skip
    return name


def _fit_out(folder: Path, release: str) -> None:
    trust_and_ask_as_this_machine(folder)
    for name in ("cache/apt", "lib/apt/lists"):
        shutil.rmtree(folder / "var" / name)
    main, security = mirror(), mirror("debian-security")
    suites = [(main, release), (main, f"{release}-updates"), (security, f"{release}-security")]
    lines = "".join(f"deb {place} {suite} main\n" for place, suite in suites)
    (folder / "etc/apt/sources.list").write_text(lines)
    told = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True, timeout=30).stdout
    settings = [*_APT.findall(told), 'Acquire::Languages "none";', 'Acquire::Retries "3";']
    (folder / "etc/apt/apt.conf.d/90machine").write_text("\n".join([*settings, ""]))


def _build(base: str, name: str, dockerfile: str, files: Path) -> None:
    context = CACHE / "context"
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(files, context / files.name, symlinks=True, ignore=shutil.ignore_patterns("doc", "man"))
    (context / "Dockerfile").write_text(dockerfile.format(base=base))
    words = ["docker", "build", "--quiet", "--tag", name, str(context)]
    told = subprocess.run(words, check=False, capture_output=True, text=True, timeout=_SECONDS)
    if told.returncode:
        raise RuntimeError(f"{name} cannot be made: {told.stderr[-2000:]}")
