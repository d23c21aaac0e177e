"""The images that compose.yaml names: pulled where that works, else made of the distribution's programs.

made(docker.from_env(), "prom/prometheus:v3.5.3")  ->  True
"""

import io
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.stack.bases import RELEASE, ROOT, packed, tree

BASE = f"trainvitals-test/{RELEASE}:latest"
TOOLS = ROOT / ".cache" / "tools" / "bin"
PULL_SECONDS = 120
PATHS = "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin"


class Recipe(NamedTuple):
    """How a maker's image starts its program."""

    programs: tuple[str, ...]
    user: str
    words: tuple[str, ...] = ()
    folder: str = "/"
    # The distribution's program reads what its maker's has within it.
    reads: str = ""


RECIPES: Mapping[str, Recipe] = {
    "prom/prometheus": Recipe(("prometheus", "promtool"), "nobody", (
        "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"), "/prometheus"),
    "prom/alertmanager": Recipe(("alertmanager", "amtool"), "nobody", (
        "--config.file=/etc/alertmanager/alertmanager.yml", "--storage.path=/alertmanager"), "/alertmanager",
        "/usr/share/prometheus/alertmanager"),
    "prom/node-exporter": Recipe(("node_exporter",), "nobody"),
}  # fmt: skip


def made(client: Any, image: str) -> bool:
    """False where it can neither be pulled nor be made."""
    name, _, tag = image.partition("@")[0].partition(":")
    if client.images.list(name=f"{name}:{tag}") or _pulled(image):
        return True
    name = name.removeprefix("docker.io/")
    if name == "python":
        client.api.import_image_from_data(packed(tree()), repository=name, tag=tag, changes=[PATHS])
        return True
    if name not in RECIPES:
        return False
    _make(client, f"{name}:{tag}", RECIPES[name])
    return True


def _pulled(image: str) -> bool:
    try:
        return not subprocess.run(["docker", "pull", "-q", image], check=False, capture_output=True,
                                  timeout=PULL_SECONDS).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        return False


def _make(client: Any, image: str, recipe: Recipe) -> None:
    _require_version(image, TOOLS / recipe.programs[0])
    if not client.images.list(name=BASE):
        client.api.import_image_from_data(packed(tree()), repository=BASE.partition(":")[0], tag="latest")
    with tempfile.TemporaryDirectory() as folder:
        for program in recipe.programs:
            shutil.copy(TOOLS / program, folder)
        if recipe.reads:
            shutil.copytree(TOOLS.parent / "share" / Path(recipe.reads).name, Path(folder, "reads"))
        Path(folder, "Dockerfile").write_text(_dockerfile(recipe))
        client.images.build(fileobj=io.BytesIO(packed(Path(folder))), custom_context=True, tag=image, rm=True)


def _dockerfile(recipe: Recipe) -> str:
    words = ", ".join(f'"{word}"' for word in recipe.words)
    lines = [f"FROM {BASE}", f"COPY {' '.join(recipe.programs)} /bin/",
             *([f"COPY reads {recipe.reads}"] if recipe.reads else ()),
             f"RUN mkdir -p {recipe.folder} && chown {recipe.user} {recipe.folder}", f"USER {recipe.user}",
             f"WORKDIR {recipe.folder}", f'ENTRYPOINT ["/bin/{recipe.programs[0]}"]', f"CMD [{words}]"]  # fmt: skip
    return "\n".join(lines if recipe.folder == "/" else [*lines, f"VOLUME {recipe.folder}"])


def _require_version(image: str, program: Path) -> None:
    """The same version under the same name, or the test says nothing of what is shipped."""
    wanted = image.rpartition(":")[2].removeprefix("v")
    told = subprocess.run([program, "--version"], check=True, capture_output=True, text=True, timeout=30)
    if f"version {wanted}" not in f"{told.stdout}{told.stderr}":
        raise RuntimeError(f"{image} cannot be made: {program.name} here is {(told.stdout or told.stderr)[:60]!r}")
