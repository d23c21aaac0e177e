import json
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.terraform import support
from tests.terraform.standin_google import packages, published, server
from tests.terraform.standin_google.told import schemas as told_schemas

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

    def serve(schemas, name="google", provider=PROVIDER):
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        resources = {name: one for (kind, name), one in schemas.items() if kind == "resource"}
        data_sources = {name: one for (kind, name), one in schemas.items() if kind == "data"}
        told = server.answer(provider, resources, data_sources)
        started.append((server.serve(told, folder / "socket"), folder))
        return {"TF_REATTACH_PROVIDERS": server.reattach(name, folder / "socket")}

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


@pytest.fixture(scope="session")
def mocked(module, serving):
    """The same for terraform test: AWS's provider, which is slow to start, only says its schema, once."""
    made = {}

    def of(cloud):
        where, env = module(cloud)
        if cloud == "aws" and not made:
            made.update(_said(where, serving))
        return where, env | (made if cloud == "aws" else {})

    return of


def _said(where, serving):
    told = json.loads(support.run(where, "providers", "schema", "-json"))["provider_schemas"]
    wanted = [one for one in packages.used(where) if one[1].startswith("aws_")]
    provider, schemas = told_schemas(told[f"{server.ADDRESS}aws"], wanted)
    return serving(schemas, "aws", provider)


def _initialised(cloud, folder, request):
    support.program()
    where = support.copy_of(folder, cloud)
    if cloud == "gcp":
        env = request.getfixturevalue("serving")(request.getfixturevalue("google_6"))
        support.run(where, "init", "-input=false", **env)
        return where, env
    support.run(where, "init", "-input=false", f"-plugin-dir={support.plugins(cloud)}")
    return where, {}
