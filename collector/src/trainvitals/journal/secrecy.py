"""What a configuration must not tell to all who may read the journal.

names_secret("dbPassword", "x")         -> True
names_secret("max_tokens", 512)         -> False
without_secrets("mysql://u:pw@host/db") -> "mysql://(hidden)@host/db"
"""

import re
from itertools import pairwise

HIDDEN = "(hidden)"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = re.compile(
    r"(password|passwd|passphrase|apikey|accesskey|secretkey|privatekey|sshkey|authtoken|accesstoken)s?$"
    r"|^(pwd|secrets?|credentials?|authorization|cookies?)$")  # fmt: skip
_OF_KEYS = frozenset(
    ("api", "access", "private", "secret", "account", "auth", "signing", "encryption", "ssh", "wandb", "openai",
     "anthropic", "comet", "neptune", "hf", "aws", "azure", "service")
)  # fmt: skip
_OF_PASS = frozenset(("db", "database", "user", "smtp", "mail", "email", "admin", "root", "proxy", "ftp", "redis"))
_OF_TOKENS = frozenset(
    ("hf", "hub", "huggingface", "auth", "oauth", "access", "api", "bearer", "wandb", "secret", "session", "refresh",
     "github", "gitlab", "jwt")
)  # fmt: skip
# Tokens of text, and what is counted in them.
_OF_TEXT = frozenset(
    ("eos", "bos", "pad", "unk", "mask", "sep", "cls", "eot", "eod", "eom", "image", "video", "audio",
     "special", "stop", "start", "end", "begin", "n", "num", "max", "min", "per", "each", "next", "first",
     "last", "prompt", "think", "fim", "prefix", "suffix", "middle", "placeholder", "additional", "class",
     "instance", "trigger", "decoder", "forced")
)  # fmt: skip
_URL_USER = re.compile(
    r"\b([a-z][a-z0-9+.-]{0,30}://)(?:[^\s/@:]*:[^\s/\"']*|(?<=http://)[^\s/@]+|(?<=https://)[^\s/@]+)@",
    re.IGNORECASE)  # fmt: skip
_BEARER = re.compile(r"\b(Bearer) +[\w.~+/=-]{8,}", re.IGNORECASE)
# As on a command line, in the text of an object, in a connection's settings.
_ASSIGNED = re.compile(
    r"(?<![\w-])([\w-]{1,100})(=|[\"']: ?|(?<=-key) |(?<=-token) |(?<=-password) )(\"[^\"]*\"|'[^']*'|[^\s,;&)}]+)"
)


def names_secret(key: str, value: object) -> bool:
    """Whether the key names something secret and the value may be it."""
    if isinstance(value, bool) or (isinstance(value, (str, list, tuple, dict, int, type(None))) and not value):
        return False
    words = [word.lower() for word in _WORD.findall(key)]
    pairs = list(pairwise(words))
    if any(map(_SECRET.search, words)) or any(a in _OF_KEYS and b in ("key", "keys") for a, b in pairs):
        return True
    if words == ["pass"] or any(a in _OF_PASS and b == "pass" for a, b in pairs):
        return isinstance(value, str)
    return not isinstance(value, (int, float)) and _names_token(words, pairs) and not _is_of_text(value)


def _names_token(words: list[str], pairs: list[tuple[str, str]]) -> bool:
    if any(a in _OF_TOKENS and b in ("token", "tokens") for a, b in pairs):
        return True
    return words[-1:] == ["token"] and _OF_TEXT.isdisjoint(words)


def _is_of_text(value: object) -> bool:
    """As <pad>, [MASK] and the like."""
    return isinstance(value, str) and value[0] + value[-1] in ("<>", "[]")


def without_secrets(text: str) -> str:
    if "://" in text:
        text = _URL_USER.sub(rf"\1{HIDDEN}@", text)
    if "=" in text or ":" in text or "--" in text:
        text = _ASSIGNED.sub(_assigned, text)
    return _BEARER.sub(rf"\1 {HIDDEN}", text)


def _assigned(match: re.Match[str]) -> str:
    key, between, value = match.groups()
    return f"{key}{between}{HIDDEN}" if names_secret(key, value.strip("\"'")) else match[0]
