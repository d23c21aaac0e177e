"""The schema of google 6.50, read from the classes that @cdktf/provider-google publishes for it.

    class ComputeFirewall … {                                    a resource, or a block of one
        this._allow = new ComputeFirewallAllowList(this, "allow", true);   a block, here of a set
        get name() { return this.getStringAttribute('name'); }             an argument
        set name(value) …  resetName() …                                   that may be given, and left out

A schema here is {"attributes": {name: Attribute}, "blocks": {name: Block}}.
"""

import re
from typing import NamedTuple

# The classes do not say which arguments a provider fills in where they are left out. These are those the modules read.
FILLED_IN = {"id", "network_ip", "nat_ip", "address", "project"}

SIMPLE = {"String": "string", "Number": "number", "Boolean": "bool", "Any": "dynamic"}

_CLASS = re.compile(r"^class (\w+) extends", re.MULTILINE)
_COMPLEX = re.compile(
    r"// \w+ - computed: (?P<computed>\w+), optional: (?P<optional>\w+), required: (?P<required>\w+)\n"
    r'\s+this\._\w+ = new (?P<kind>[\w.]+)\(this, "(?P<name>\w+)"(?:, (?P<set>true|false))?\);'
)
_PLAIN = re.compile(
    r"get (?P<camel>\w+)\(\) \{\s+return (?P<set>cdktf\.Fn\.tolist\()?this\.get(?P<of>\w+?)Attribute\('(?P<name>\w+)'\)"
)


class Attribute(NamedTuple):
    type: object
    required: bool = False
    optional: bool = False
    computed: bool = False


class Block(NamedTuple):
    schema: dict
    nesting: str
    least: int
    most: int


def schema(source):
    """Of the resource or data source that a module's index.js is about: kind, name and schema."""
    name, told = re.search(r'^(\w+)\.tfResourceType = "(\w+)"', source, re.MULTILINE).groups()
    kind = "data" if name.startswith("DataGoogle") else "resource"
    return kind, told, _schema(_bodies(source), name)


def _bodies(source):
    starts = [*_CLASS.finditer(source)]
    ends = [match.start() for match in starts[1:]] + [len(source)]
    return {match[1]: source[match.end() : end] for match, end in zip(starts, ends, strict=True)}


def _schema(bodies, name):
    body = bodies[name]
    found = {"attributes": {}, "blocks": {}}
    for match in _PLAIN.finditer(body):
        found["attributes"][match["name"]] = _plain(match, body)
    for match in _COMPLEX.finditer(body):
        where = "blocks" if match["computed"] == "false" and "cdktf." not in match["kind"] else "attributes"
        found[where][match["name"]] = (_block if where == "blocks" else _told)(match, bodies)
    return found


def _plain(match, body):
    camel = match["camel"]
    given = f"set {camel}(" in body
    optional = f"reset{camel[0].upper()}{camel[1:]}(" in body
    computed = not given or (optional and match["name"] in FILLED_IN)
    return Attribute(_type(match["of"], bool(match["set"])), given and not optional, optional, computed)


def _type(of, is_set):
    """getStringAttribute → string, getListAttribute → a list of strings, getNumberMapAttribute → a map of numbers."""
    if of in SIMPLE:
        return SIMPLE[of]
    kind = "map" if of.endswith("Map") else "set" if is_set else "list"
    return [kind, SIMPLE[of.removesuffix("Map").removesuffix("List") or "String"]]


def _block(match, bodies):
    single = match["kind"].endswith("OutputReference")
    inner = _schema(bodies, _reference(match["kind"]))
    if match["name"] == "timeouts":
        return Block(inner, "single", 0, 0)
    return Block(inner, "set" if match["set"] == "true" else "list", int(match["required"] == "true"), int(single))


def _told(match, bodies):
    """What a provider only tells is an attribute, its blocks are objects."""
    kind, optional = match["kind"], match["optional"] == "true"
    if kind.startswith("cdktf."):
        words = re.findall("[A-Z][a-z]+", kind)
        element = ["map", SIMPLE[words[0]]]
        return Attribute(["list", element] if words[-1] == "List" else element, False, optional, True)
    element = _object(_schema(bodies, _reference(kind)))
    return Attribute(["set" if match["set"] == "true" else "list", element], False, optional, True)


def _object(schema):
    blocks = {name: [block.nesting, _object(block.schema)] for name, block in schema["blocks"].items()}
    return ["object", {name: attribute.type for name, attribute in schema["attributes"].items()} | blocks]


def _reference(kind):
    return kind if kind.endswith("OutputReference") else kind.removesuffix("List") + "OutputReference"
