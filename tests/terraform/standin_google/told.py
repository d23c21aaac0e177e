"""A schema as `terraform providers schema -json` tells it, of a provider that is here but takes a second each time."""

from tests.terraform.standin_google.published import Attribute, Block


def schemas(told, wanted):
    """Of the provider itself, and of the resources and data sources that are wanted: (kind, name) → schema."""
    by_kind = {"resource": told["resource_schemas"], "data": told["data_source_schemas"]}
    return block(told["provider"]["block"]), {
        (kind, name): block(by_kind[kind][name]["block"]) for kind, name in wanted
    }


def block(told):
    attributes = {name: _attribute(one) for name, one in told.get("attributes", {}).items()}
    return {
        "attributes": attributes,
        "blocks": {name: _nested(one) for name, one in told.get("block_types", {}).items()},
    }


def _attribute(told):
    return Attribute(told["type"], *(told.get(word, False) for word in ("required", "optional", "computed")))


def _nested(told):
    return Block(block(told["block"]), told["nesting_mode"], told.get("min_items", 0), told.get("max_items", 0))
