"""Hours in which tickets wait: Quiet(QuietHours("22:00", "07:00", "Europe/Berlin")).is_now(time.time())"""

import logging
from datetime import datetime, timezone, tzinfo

from trainvitals.alerting.channels import QuietHours

log = logging.getLogger("trainvitals.notify")


class Quiet:
    def __init__(self, hours: QuietHours | None) -> None:
        self._hours = hours
        self._zone: tzinfo = _zone(hours.zone) if hours else timezone.utc

    def is_now(self, now: float) -> bool:
        if self._hours is None:
            return False
        start, end, _ = self._hours
        time = datetime.fromtimestamp(now, self._zone).strftime("%H:%M")
        return start <= time < end if start < end else time >= start or time < end


def _zone(name: str) -> tzinfo:
    # Loaded where somebody has quiet hours.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        log.warning("QUIET_HOURS: this machine knows no time zones (install tzdata): %s is taken for UTC", name)
        return timezone.utc
