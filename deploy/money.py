"""What machines cost, in words: rate(0.8)  ->  Price: about $0.80 an hour while they run"""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timezone
from typing import Any

YEAR = 365
UNKNOWN = "unknown; `prices` in terraform.tfvars or `stack_node_price` in hosts.yml makes it known"


def rate(price: float | None) -> str:
    return "Price: " + (UNKNOWN if price is None else f"about ${price:.2f} an hour while they run")


def aged(price: Mapping[str, Any], today: date) -> Iterator[str]:
    """A line where the table is over a year old."""
    days = (today - date.fromisoformat(price["as_of"])).days if price.get("as_of") else 0
    if days > YEAR:
        yield (f"The price table is of {price['as_of']}, {days // 30} months old: check it against {price['source']}"
               ", and set in `prices` what differs")  # fmt: skip


def elsewhere(price: Mapping[str, Any], region: str) -> Iterator[str]:
    """A line where the table is of another region."""
    if region and price.get("region") not in (None, region):
        dearer = f"{region} may cost up to a third more"
        yield f"The price is that of {price['region']}, but for what you set in `prices`: {dearer}"


def spent(outputs: Mapping[str, Any]) -> str:
    """By what Terraform told when it made them."""
    price, since = (outputs.get("price_per_hour") or {}).get("total"), outputs.get("since")
    if price is None or not since:
        return "What it cost is unknown."
    hours = (datetime.now(timezone.utc) - datetime.fromisoformat(since.replace("Z", "+00:00"))).total_seconds() / 3600
    return (
        f"There since {since}: {hours:.1f} h at ${price:.2f} are about ${hours * price:.2f}, if they ran all the time."
    )
