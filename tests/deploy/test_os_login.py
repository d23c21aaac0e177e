"""Who is from outside the organisation logs in under the name that OS Login has for them."""

import pytest

from deploy import os_login
from deploy.cloud import CLOUDS
from tests.deploy.conftest import Program

INVENTORY = '"gpu_nodes":\n  "hosts":\n    "a":\n      "ansible_user": "ada_l_example_com"\n'


def gcloud(program: Program, mail: str, profile: str) -> None:
    program("gcloud", f'case "$*" in "auth list"*) echo {mail} ;; *describe-profile*) {profile} ;; esac')


@pytest.mark.parametrize(("mail", "profile", "wanted"), [
    ("Ada.L@example.com", "echo ext_ada_l_example_com", "ext_ada_l_example_com"),
    ("ada.l@example.com", "echo ada", "ada"),
    ("ada.l@example.com", "echo ada_l_example_com", "ada_l_example_com"),
    ("ada.l@example.com", "exit 1", "ada_l_example_com"),
    ("bob@example.com", "echo bob", "ada_l_example_com"),
    ("", "echo bob", "ada_l_example_com"),
])  # fmt: skip
def test_the_user_is_the_one_that_os_login_names(program: Program, mail: str, profile: str, wanted: str) -> None:
    gcloud(program, mail, profile)
    assert os_login.named(CLOUDS["gcp"], INVENTORY) == INVENTORY.replace("ada_l_example_com", wanted)


def test_amazon_s_machines_have_the_user_of_the_module(program: Program) -> None:
    program("gcloud", "echo somebody")
    assert os_login.named(CLOUDS["aws"], INVENTORY) == INVENTORY
