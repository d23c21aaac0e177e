"""Every image that the stack names, under the names that machines of the rehearsal are to have them by.

    packed(client)  ->  .cache/rehearsal/images/named-4f0c9d81aa20.tar

Prometheus, Alertmanager, node-exporter and the collector are the real programs. Grafana and DCGM's exporter are
stand-ins, which answer what health checks, Prometheus and the verification ask: those two cannot be had where nothing
can be pulled, and the machines have no GPU.
"""

import importlib.util
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.compose.files import ROOT, SERVICES
from tests.rehearsal.archives import archive
from tests.stack import images

COLLECTOR = "trainvitals/collector"
STAND_INS = {"grafana/grafana": "grafana", "nvcr.io/nvidia/k8s/dcgm-exporter": "dcgm"}
SCRAPE = ROOT / "tests" / "prometheus" / "fixtures" / "dcgm-4.8.prom"
_FOLDER = Path(__file__).parent / "stand_ins"


@cache
def release(root: Path = ROOT) -> tuple[str, str]:
    """The hashes of the release and of its image's source, as the role has them."""
    spec = importlib.util.spec_from_file_location(
        "stack_release", ROOT / "ansible/roles/stack/library/stack_release.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return tuple(module.digest(root, module.files(root, which)) for which in (module.SHIPPED, module.SOURCE))  # type: ignore[return-value]


@cache
def docker() -> str:
    """The command that talks to the engine, with what builds."""
    words = [ROOT / "scripts" / "start-engine"]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout.strip()


@cache
def names(client: Any) -> dict[str, str]:
    """What each image is called here, and on a machine."""
    found = {}
    for image in {service["image"] for service in SERVICES.values()}:
        name = image.partition(":")[0]
        if name in STAND_INS:
            found[_stand_in(client, STAND_INS[name])] = image
        elif name.startswith("prom/"):
            assert images.made(client, image), image
            found[image] = image
    made = collector(client)
    return {**found, made: made}


def collector(client: Any, root: Path = ROOT) -> str:
    source = release(root)[1]
    name = f"{COLLECTOR}:{source}"
    if not client.images.list(name=name):
        assert images.made(client, "python:3.13-slim-trixie")
        words = [
            docker(),
            "build",
            "--quiet",
            "--label",
            f"trainvitals.source={source}",
            "--tag",
            name,
            "--build-context",
            f"requirements={root / 'requirements'}",
            root / "collector",
        ]
        subprocess.run(words, check=True, capture_output=True, timeout=900)
    return name


def _stand_in(client: Any, name: str) -> str:
    """Not under the maker's name here: other tests of this engine may have an image of it."""
    # For what checks passwords as exporters do.
    library = f"COPY --from={collector(client)} /opt/trainvitals /opt/trainvitals\n" if name == "dcgm" else ""
    python = "/opt/trainvitals/bin/python" if library else "/usr/bin/python3"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(_FOLDER / f"{name}.py", Path(folder, "answer.py"))
        shutil.copy(SCRAPE, Path(folder, "scrape.txt"))
        Path(folder, "Dockerfile").write_text(
            f"FROM {images.BASE}\n{library}RUN mkdir -p /var/lib/grafana && chown 472:0 /var/lib/grafana\n"
            f'COPY answer.py scrape.txt /\nENTRYPOINT ["{python}", "/answer.py"]\n'
        )
        tag = f"trainvitals-rehearsal/{name}:latest"
        subprocess.run(
            [docker(), "build", "--quiet", "--tag", tag, folder], check=True, capture_output=True, timeout=300
        )
    return tag


def packed(client: Any) -> Path:
    """All of them as docker save packs them, under the names that they have on a machine."""
    wanted = names(client)
    made = archive(client, wanted)
    named = made.with_name(f"named-{made.name}")
    if not named.exists():
        unfinished = named.with_suffix(f".{os.getpid()}")
        with tarfile.open(made) as source, tarfile.open(unfinished, "w") as target:
            for member in source:
                content = source.extractfile(member)
                if content and member.name == "manifest.json":
                    text = content.read().decode()
                    for here, there in wanted.items():
                        text = text.replace(json.dumps(here), json.dumps(there))
                    member.size, content = len(text.encode()), io.BytesIO(text.encode())
                target.addfile(member, content)
        unfinished.rename(named)
    return named
