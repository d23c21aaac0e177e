import shutil
import tempfile
from pathlib import Path

import pytest
from tests.terraform import support
from tests.terraform.standin_google import packages, published, server

PROVIDER = {
    "attributes": {
        **{name: published.Attribute("string", optional=True) for name in ("project", "region", "zone")},
        "default_labels": published.Attribute(["map", "string"], optional=True),
    },
    "blocks": {},
}


@pytest.fixture(scope="session")
def google_6():
    """The published schema of what terraform/gcp names, as (kind, name) → schema."""
    archive = packages.npm_archive(support.CACHE)
    if not archive:
        pytest.skip(f"{packages.NPM} cannot be had here: no npm, or no registry")
    wanted = packages.used(support.TERRAFORM / "gcp")
    sources = packages.sources(archive, [packages.folder(*one) for one in wanted])
    found = [published.schema(source) for source in sources]
    return {("data" if kind == "data" else "resource", name): schema for kind, name, schema in found}


@pytest.fixture(scope="session")
def serving():
    """Serves a schema as the provider google; gives what terraform needs in its environment."""
    started = []

    def serve(schemas):
        folder = Path(tempfile.mkdtemp(prefix="google-"))
        by_kind = [
            {name: one for (kind, name), one in schemas.items() if kind == which} for which in ("resource", "data")
        ]
        told = server.answer(PROVIDER, *by_kind)
        started.append((server.serve(told, folder / "socket"), folder))
        return {"TF_REATTACH_PROVIDERS": server.reattach(folder / "socket")}

    yield serve
    for running, folder in started:
        running.stop(grace=1).wait(10)
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def module(tmp_path_factory, request):
    """A module as it is in a clone, after its init: (folder, environment)."""
    made = {}

    def of(cloud):
        if cloud not in made:
            made[cloud] = _initialised(cloud, tmp_path_factory.mktemp(cloud), request)
        return made[cloud]

    return of


def _initialised(cloud, folder, request):
    support.program()
    where = support.copy_of(folder, cloud)
    if cloud == "gcp":
        env = request.getfixturevalue("serving")(request.getfixturevalue("google_6"))
        support.run(where, "init", "-input=false", **env)
        return where, env
    support.run(where, "init", "-input=false", f"-plugin-dir={support.plugins(cloud)}")
    return where, {}
