"""The schema of a newer google, made of that of 6.50 and of the argument names in pulumi-gcp's wheel.

    class InstanceArgs:
        def __init__(__self__, *, boot_disk: …, machine_type: …, network_interfaces: …, labels: … = None):

becomes: google_compute_instance has these arguments, three of them required. network_interfaces is the plural of 6.50's
block network_interface.
"""

import ast
import re
import zipfile

PLACES = {
    "google_compute_": "compute",
    "google_os_login_": "oslogin",
    "google_project_service": "projects",
    "google_project_iam_": "projects",
    "google_project": "organizations",
    "google_client_": "organizations",
    "google_service_account": "serviceaccount",
}


def major(archive):
    return int(re.search(r"pulumi_gcp-(\d+)\.", archive.name)[1])


def schemas(archive, older):
    """Of those of older that the wheel still has. Data sources ask for little, and are left as they were."""
    with zipfile.ZipFile(archive) as packed:
        arguments = {place: _arguments(packed, place) for place in set(PLACES.values())}
    kept = {}
    for (kind, name), schema in older.items():
        classes = arguments[place_of(name)]
        if kind == "data" or _class(name) in classes:
            kept[kind, name] = schema if kind == "data" else _narrowed(schema, _class(name), classes)
    return kept


def place_of(name):
    return next(place for start, place in PLACES.items() if name.startswith(start))


def _class(name):
    """google_compute_router_nat → RouterNatArgs, google_project_iam_member → IAMMemberArgs, as pulumi names them."""
    for start in ("google_compute_", "google_os_login_", "google_project_", "google_service_"):
        name = name.removeprefix(start)
    return "".join("IAM" if word == "iam" else word.capitalize() for word in name.split("_")) + "Args"


def _arguments(packed, place):
    """Each class of arguments: {name: (required, the class that its value is of, if any)}."""
    found = {}
    for name in packed.namelist():
        if re.fullmatch(rf"pulumi_gcp/{place}/[a-z_]+\.py", name) and not name.endswith("outputs.py"):
            for node in ast.parse(packed.read(name)).body:
                if isinstance(node, ast.ClassDef) and node.name.endswith("Args"):
                    found[node.name] = _signature(node)
    return found


def _signature(node):
    made = next(part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__")
    pairs = zip(made.args.kwonlyargs, made.args.kw_defaults, strict=True)
    return {argument.arg: (default is None, _value(argument)) for argument, default in pairs}


def _value(argument):
    inner = re.search(r"'(\w+Args)'", ast.unparse(argument.annotation))
    return inner and inner[1]


def _narrowed(schema, name, classes):
    told = classes[name]
    attributes = {key: _attribute(one, _find(key, told)) for key, one in schema["attributes"].items()}
    kept = {key: one for key, one in attributes.items() if one}
    blocks = {}
    for key, block in schema["blocks"].items():
        if key == "timeouts":
            blocks[key] = block
        elif found := _find(key, told):
            blocks[key] = _block(block, found, classes)
    return {"attributes": kept, "blocks": blocks}


def _find(key, told):
    plurals = (key, key + "s", key + "es", key.removesuffix("y") + "ies")
    return next((told[each] for each in plurals if each in told), None)


def _attribute(attribute, found):
    if found is None:
        return attribute._replace(optional=False) if attribute.computed else None
    required, _ = found
    return attribute._replace(required=required, optional=not required, computed=attribute.computed and not required)


def _block(block, found, classes):
    required, inner = found
    narrowed = _narrowed(block.schema, inner, classes) if inner in classes else block.schema
    return block._replace(schema=narrowed, least=int(required))
