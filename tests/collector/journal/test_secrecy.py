"""What is hidden of a configuration, and what is not."""

import argparse
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from trainvitals.journal.configuration import taken
from trainvitals.journal.secrecy import names_secret, without_secrets

SECRET = ["token", "GITHUB_TOKEN", "hf_token", "hfToken", "HFToken", "push_to_hub_token", "aws_session_token",
          "accessToken", "access_tokens", "auth_token_value", "dbPassword", "password", "passwords", "Passphrase",
          "pwd", "MYSQL_PWD", "secretKey", "secret-key", "aws_secret_access_key", "aws_access_key_id", "api_key",
          "apikey", "APIKey", "api_keys", "wandb-api-key", "private.key", "Authorization", "credentials",
          "client_secret", "wandb_api_key", "PASSWORD2"]  # fmt: skip
PUBLIC = ["tokens", "max_tokens", "tokens_per_batch", "num_tokens", "eos_token", "pad_token", "bos_token",
          "mask_token", "eos_token_id", "tokenizer", "tokenizer_name", "tokens_per_second", "image_token",
          "additional_special_tokens", "key", "keys", "monkey", "secretary", "keyboard", "lr", "passes", "author",
          "", "stop_token"]  # fmt: skip


@pytest.mark.parametrize("key", SECRET)
def test_a_key_that_names_a_secret_hides_it(key: str) -> None:
    assert taken({key: "hunter2"}) == {key: "(hidden)"}


@pytest.mark.parametrize("key", PUBLIC)
def test_a_key_that_names_none_hides_nothing(key: str) -> None:
    assert taken({key: "text", "n": 1}) == {key: "text", "n": 1}


@pytest.mark.parametrize(
    ("key", "value"),
    [("token", 5), ("user_token", "<|user|>"), ("token", ""), ("token", None), ("use_auth_token", True),
     ("api_keys", []), ("password", "")],
)  # fmt: skip
def test_a_value_that_is_no_secret_is_shown(key: str, value: object) -> None:
    assert not names_secret(key, value)


@dataclass
class Hub:
    token: str = "S"
    name: str = "hub"


class Client:
    def __repr__(self) -> str:
        return "Client(api_key='S', host='h', max_tokens=5)"


@pytest.mark.parametrize(
    ("value", "shown"),
    [([{"api_key": "S", "n": 1}], [{"api_key": "(hidden)", "n": 1}]), (Hub(), {"token": "(hidden)", "name": "hub"}),
     (argparse.Namespace(password="S", deep=[SimpleNamespace(pwd="S")]), {"password": "(hidden)",
                                                                          "deep": [{"pwd": "(hidden)"}]}),
     ({"headers": {"Authorization": "Bearer S"}}, {"headers": {"Authorization": "(hidden)"}}),
     (["--wandb-api-key=S", "--lr=1"], ["--wandb-api-key=(hidden)", "--lr=1"]),
     (["--password", "S", "--lr", "1"], ["--password", "(hidden)", "--lr", "1"]),
     (Client(), "Client(api_key=(hidden), host='h', max_tokens=5)"), ((Hub,), [str(Hub)])],
)  # fmt: skip
def test_what_is_nested_hides_its_secrets_too(value: Any, shown: Any) -> None:
    assert taken({"value": value}) == {"value": shown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [("mysql://u:pw@h/db", "mysql://(hidden)@h/db"), ("redis://:pw@h:6379", "redis://(hidden)@h:6379"),
     ("postgresql+psycopg://u:p@ss@h", "postgresql+psycopg://(hidden)@h"),
     ("https://ghp_x@github.com/a", "https://(hidden)@github.com/a"), ("ssh://git@host/x", "ssh://git@host/x"),
     ("http://host:80/a@b", "http://host:80/a@b"), ("s3://bucket/key", "s3://bucket/key"),
     ("https://h/?token=S&lr=1", "https://h/?token=(hidden)&lr=1"),
     ("Server=h;Pwd=S;Db=x", "Server=h;Pwd=(hidden);Db=x"),
     ("X: Bearer abcdefgh1", "X: Bearer (hidden)"), ("a = b", "a = b"), ("eos_token=</s>", "eos_token=</s>")],
)  # fmt: skip
def test_a_text_hides_what_it_says_of_users_and_passwords(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize("text", ["a" * 10_000 + "=", "://" * 3000 + ":" * 1000, "a://" + ":" * 9000, "a-" * 5000 + "=",
                                  "http://" + "x" * 9990, "=" * 10_000, "Bearer " * 1400])  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    without_secrets(text)
    assert time.process_time() - began < 0.5
