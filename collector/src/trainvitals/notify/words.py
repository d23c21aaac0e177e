"""What a message says, in plain text: where, what, what to do first, since when, where to read on.

[page] TrainingNonFinite · run gemma · rank 0 · gpu1
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from trainvitals.detect.advice import runbook
from trainvitals.detect.finding import Place
from trainvitals.errors import plain
from trainvitals.journal.record import timestamp_at
from trainvitals.notify.message import Item, Message

Safe = Callable[[str], str]


def place(where: Place, host: str) -> str:
    named = [("run", where.run), ("rank", where.rank), ("GPU", where.gpu)]
    parts = [f"{name} {value}" for name, value in named if value]
    if where.uuid and not where.gpu:
        parts.append(where.uuid)
    return " · ".join([*parts, *filter(None, (where.part, host))])


def name(item: Item, host: str) -> str:
    return f"{item.finding.kind} · {place(item.finding.place, host)}"


def subject(message: Message) -> str:
    first, rest = message.items[0], len(message.items) - 1
    mark = message.severity if message.goes_on or first.state == "over" else "resolved"
    trial = "TEST " if message.is_trial else ""
    return plain(f"{trial}[{mark}] {name(first, message.host)}" + (f" and {rest} more" if rest else ""))


def text(message: Message, whole: int, longest: int | None = None, safe: Safe = plain) -> str:
    """The first `whole` findings with all that is known; of the rest a line each, or, where it must not become longer
    than that many characters, how many there are of a kind."""
    blocks = [_block(item, message.host, safe) for item in message.items[:whole]]
    rest = message.items[whole:]
    if longest is not None:
        while len(blocks) > 1 and sum(map(len, blocks)) > longest:
            blocks.pop()
        rest = message.items[len(blocks) :]
        blocks = [_cut(block, longest) for block in blocks]
    if rest:
        blocks.append("\n".join(_counted(rest) if longest else _listed(rest, message.host, safe)))
    if message.page:
        blocks.append(f"Now: {message.page}/")
    return "\n\n".join(blocks)


def _block(item: Item, host: str, safe: Safe) -> str:
    return "\n".join(_lines(item, host, safe))


def _lines(item: Item, host: str, safe: Safe) -> Iterator[str]:
    finding = item.finding
    yield safe(f"{_mark(item)} {name(item, host)}")
    yield safe(finding.what)
    if finding.todo and item.goes_on:
        yield f"Do first: {safe(finding.todo)}"
    for one in item.change.evidence:
        yield f"With it: {safe(one.kind)}: {safe(one.what)}"
    if item.more:
        yield f"With it: {item.more} more"
    yield _when(item)
    if link := runbook(finding.kind):
        yield f"Read on: {link}"


def _mark(item: Item) -> str:
    """What has ended is said to be over first."""
    return {"open": f"[{item.severity}]", "worse": f"[{item.severity}, was less]", "resolved": "[resolved]",
            "over": f"[{item.severity}, over]"}[item.state]  # fmt: skip


def _when(item: Item) -> str:
    if item.goes_on:
        return f"since {_moment(item.change.opened)}"
    return f"from {_moment(item.change.opened)} to {_moment(item.change.when)}"


def _moment(when: float) -> str:
    return f"{timestamp_at(when)[:19].replace('T', ' ')} UTC"


def _listed(items: Sequence[Item], host: str, safe: Safe) -> Iterator[str]:
    return (safe(f"{_mark(item)} {name(item, host)}: {item.finding.what}") for item in items)


def _counted(items: Sequence[Item]) -> Iterator[str]:
    yield f"And {len(items)} more:"
    counts = Counter((_mark(item), item.finding.kind) for item in items)
    for (mark, kind), count in counts.most_common(12):
        yield f"{mark} {kind}: {count}"
    if len(counts) > 12:
        yield f"… of {len(counts)} kinds in all"


def _cut(block: str, longest: int) -> str:
    return block if len(block) <= longest else f"{block[:longest]} …"


def description(item: Item) -> str:
    """One paragraph, as an annotation of an alert."""
    follows = [f"With it: {one.kind}: {one.what}" for one in item.change.evidence]
    more = [f"With it: {item.more} more"] if item.more else []
    return plain(" ".join([sentence(item.finding.what), item.finding.todo, *map(sentence, follows), *more]).strip())


def sentence(words: str) -> str:
    return words if words[-1:] in ("", ".", "!", "?") else f"{words}."
