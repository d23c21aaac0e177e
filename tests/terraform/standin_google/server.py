"""Serves schemas to Terraform as a provider does, by tfplugin5 on a socket of Unix."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import grpc

from tests.terraform.standin_google.wire import first, message

ADDRESS = "registry.terraform.io/hashicorp/"
NESTING = {"single": 1, "list": 2, "set": 3}
# Answered with no diagnostics. Everything else is unimplemented, and Terraform says so.
AGREED = ("ValidateResourceTypeConfig", "ValidateDataSourceConfig", "Configure", "Stop")


def attribute(name, told):
    return message(
        (1, name), (2, json.dumps(told.type)), (4, told.required), (5, told.optional), (6, told.computed)
    )  # fmt: skip


def nested(name, block):
    return message((1, name), (2, body(block.schema)), (3, NESTING[block.nesting]), (4, block.least), (5, block.most))


def body(schema):
    attributes = [(2, attribute(name, told)) for name, told in sorted(schema["attributes"].items())]
    return message(*attributes, *((3, nested(name, block)) for name, block in sorted(schema["blocks"].items())))


def schemas(number, those):
    return [(number, message((1, name), (2, message((2, body(schema)))))) for name, schema in sorted(those.items())]


def answer(provider, resources, data_sources):
    """GetSchema's: of the provider itself, of resources and of data sources."""
    own = message((2, body(provider)))
    return message((1, own), *schemas(2, resources), *schemas(3, data_sources))


def handlers(told):
    answers = {"GetSchema": lambda _: told, "PrepareProviderConfig": lambda asked: message((1, first(1, asked)))}
    answers |= dict.fromkeys(AGREED, lambda _: b"") | {"GetFunctions": lambda _: b""}
    return {
        name: grpc.unary_unary_rpc_method_handler(lambda asked, _, to=to: to(asked)) for name, to in answers.items()
    }


def serve(told, socket):
    """Until its stop() is called."""
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("tfplugin5.Provider", handlers(told))])
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


def reattach(provider, socket):
    """What TF_REATTACH_PROVIDERS says of it. With Test Terraform does not end the process when it is done."""
    where = {"Network": "unix", "String": str(socket)}
    told = {"Protocol": "grpc", "ProtocolVersion": 5, "Pid": os.getpid(), "Test": True, "Addr": where}
    return json.dumps({ADDRESS + provider: told})
