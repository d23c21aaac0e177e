"""A snapshot as Prometheus metric families: a pure function, its families fresh each time.

render(snapshot, accept="")  ->  (b"# HELP gpu_power_draw_watts Power drawn…", "text/plain; …")
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate

from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Sample

from trainvitals.catalog import BY_NAME, SERIES, Metric
from trainvitals.model import Histogram, Labels, Reading, Snapshot, Value

_TYPES = {"gauge": "gauge", "counter": "counter", "histogram": "histogram", "states": "gauge"}
_ORDER = {name: place for place, name in enumerate(BY_NAME)}


def families(snapshot: Snapshot) -> list[Family]:
    """In catalogue order, so that two scrapes differ in values alone."""
    samples: dict[str, list[Sample]] = {}
    for reading in snapshot.readings:
        series = SERIES[reading.scope]
        for field, value in reading.values.items():
            found = series.get(field)
            if found is None:
                continue
            metric, extra = found
            into = samples.setdefault(metric.name, [])
            if type(value) is float:
                into.append(Sample(metric.name, _labels(reading.labels, extra), value))
            else:
                into.extend(_many(metric, reading, extra, value))
    return [_family(BY_NAME[name], samples[name]) for name in sorted(samples, key=_ORDER.__getitem__)]


def render(snapshot: Snapshot, accept: str = "") -> tuple[bytes, str]:
    """The text and its content type, in the format that the scraper asked for."""
    encode, content_type = choose_encoder(_format(accept))
    text = b"".join(_text(family, encode, content_type) for family in families(snapshot))
    return text + (_END if "openmetrics" in content_type else b""), content_type


_TEXT = "text/plain; version=0.0.4"
_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def _format(accept: str) -> str:
    """One of the two there are: what a scraper sends may be anything, and is not handed on."""
    return _OPENMETRICS if any(map(_is_openmetrics, accept.lower().split(","))) else _TEXT


def _is_openmetrics(part: str) -> bool:
    kind, *settings = (setting.replace(" ", "") for setting in part.split(";"))
    versions = [setting for setting in settings if setting.startswith("version=")]
    return kind == "application/openmetrics-text" and versions in ([], ["version=1.0.0"])


_END = b"# EOF\n"
_texts: dict[tuple[str, str], tuple[list[Sample], bytes]] = {}


def _text(family: Family, encode: Callable[["_Registry"], bytes], content_type: str) -> bytes:
    """Most families of a healthy node stand still from scrape to scrape: their text is made once."""
    known = _texts.get((content_type, family.name))
    if known is not None and known[0] == family.samples:
        return known[1]
    text = encode(_Registry([family])).removesuffix(_END)
    _texts[(content_type, family.name)] = (family.samples, text)
    return text


class _Registry:
    """What prometheus_client's encoders want to be handed."""

    def __init__(self, collected: list[Family]) -> None:
        self._collected = collected

    def collect(self) -> list[Family]:
        return self._collected


def _family(metric: Metric, samples: list[Sample]) -> Family:
    name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
    family = Family(name, metric.help, _TYPES[metric.kind])
    family.samples = samples
    return family


def _many(metric: Metric, reading: Reading, extra: Labels, value: Value) -> Iterator[Sample]:
    if isinstance(value, Histogram):
        yield from _histogram(metric.name, reading.labels, value)
    elif isinstance(value, tuple) and metric.split:
        for state in metric.split.values:
            labels = _labels(reading.labels, ((metric.split.label, state),))
            yield Sample(metric.name, labels, 1.0 if state in value else 0.0)
    elif isinstance(value, (int, float)):
        yield Sample(metric.name, _labels(reading.labels, extra), float(value))


def _histogram(name: str, labels: Labels, value: Histogram) -> Iterator[Sample]:
    bounds = [*map(str, value.bounds), "+Inf"]
    for bound, count in zip(bounds, accumulate(value.counts), strict=True):
        yield Sample(f"{name}_bucket", _labels(labels, (("le", bound),)), float(count))
    yield Sample(f"{name}_count", _labels(labels, ()), float(sum(value.counts)))
    yield Sample(f"{name}_sum", _labels(labels, ()), value.total)


@lru_cache(maxsize=16384)
def _labels(labels: Labels, extra: Labels) -> dict[str, str]:
    """Shared between scrapes; nobody writes to it."""
    return dict(labels + extra)
