"""How often a channel may be used, how much it may keep, how long it is waited for: every number, once."""

from typing import NamedTuple


class Pace(NamedTuple):
    """The first message of a quiet channel goes after `settle_seconds`, in which a storm becomes one message. What
    comes within the next `gather_seconds` is one message at their end; so it goes for `burst` more of them, then there
    are `apart_seconds` between two, until the channel was quiet for as long. Pages and the rest are counted apart: no
    page waits because a ticket was sent."""

    gather_seconds: float
    apart_seconds: float
    burst: int = 1
    settle_seconds: float = 0.0


PACES = {
    # A mailbox keeps each of them, and a provider that gets many takes them for spam.
    "email": Pace(10, 60, 1, 0.2),
    # Slack takes one a second of a webhook; people read slower.
    "slack": Pace(3, 15, 2, 0.2),
    # A program reads it.
    "webhook": Pace(0.3, 1, 60, 0.2),
    # A phone rings each time.
    "apprise": Pace(5, 30, 1, 0.2),
    # It groups by itself; this only keeps a storm from being a request each.
    "alertmanager": Pace(0.1, 0.5),
}

# --- Of a message ---
# Findings that are told with all that is known; of the rest a line each,
TOLD_WHOLE = 20
# as long as it is mail. In a chat they are counted by their kind.
CHAT_TOLD_WHOLE = 8
# What a message in a chat may be long, in characters: Telegram takes 4,096, Discord cuts at 2,000 and is sent several.
CHAT_CHARACTERS = 3500
# What hangs on a finding, and how long a sentence may be.
EVIDENCE_KEPT = 20
SENTENCE_CHARACTERS = 1000

# --- Of a queue, a channel: what waits, and what was told and has not ended ---
QUEUE_ENTRIES = 2000
QUEUE_BYTES = 2 * 2**20
# What could not be told for so long is news to nobody.
KEPT_SECONDS = 3 * 86400.0
# A disk that takes longer is not waited for: a page must not hang on it.
DISK_SECONDS = 0.25
LOAD_SECONDS = 1.0

# --- Of an attempt ---
# A name server, a connection, an answer: each,
SOCKET_SECONDS = 10.0
# and all of it together, whatever the receiver does.
ATTEMPT_SECONDS = 20.0
# After a failure; it doubles up to the second, a quarter more or less by chance, so that a fleet does not come at once.
BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 1.0, 60.0
# A receiver that asks for more time than this gets this.
MAX_RETRY_AFTER_SECONDS = 900.0
# A message that is refused for what it says, or by a wrong password, is tried so often: over some three minutes.
REFUSALS = 8
# What is started beside the agent is looked at again after the first, then after the second until it is there.
AGAIN_SECONDS, UNTIL_SECONDS = 5.0, 60.0
# When the agent ends, what waits gets a last attempt of this.
STOP_SECONDS = 3.0

# --- Of Alertmanager ---
REFRESH_SECONDS = 60.0
# An alert ends by itself when no agent speaks of it any more.
ALERT_LASTS_SECONDS = 300.0
# What ends before Alertmanager told of it is told to nobody: it waits 3 s in ours, 30 s as shipped.
FIRES_SECONDS = 35.0
# Prometheus's rule of the same name ends later: it is evaluated now and then, and a page's goes on for two minutes,
# also where the run has ended. Ours lasts until then: what it keeps quiet would be told as soon as it is gone.
LINGERS_SECONDS = {"page": 180.0, "ticket": 60.0, "info": 60.0}

# --- Of the dead man's switch ---
HEARTBEAT_SECONDS = 60.0
