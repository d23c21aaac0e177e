"""Dashboards as small descriptions, and the JSON that Grafana reads from them.

    Row("Heat", 8, (Panel("Temperature", "How hot each GPU is.", (Query("gpu_temperature_celsius", "GPU {{gpu}}"),),
                          unit="celsius", width=24),))

A panel takes its place from its row: rows lie one under the other, panels side by side, 24 columns in all.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from grafana import looks

Json = dict[str, Any]

COLUMNS = 24
SCHEMA_VERSION = 42
TAG = "trainvitals"
DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Query:
    """PromQL and what a series is called; `instant` where only the present counts: an old value never looks new."""

    expr: str
    legend: str = ""
    instant: bool = False
    table: bool = False

    def json(self, ref_id: str) -> Json:
        return {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": self.expr,
            "format": "table" if self.table else "time_series",
            "instant": self.instant or self.table,
            "legendFormat": self.legend or "__auto",
            "range": not (self.instant or self.table),
            "refId": ref_id,
        }


@dataclass(frozen=True)
class Steps:
    """Colours by value, from low to high; the first holds below all others."""

    base: str
    above: tuple[tuple[float, str], ...] = ()

    def json(self) -> Json:
        steps = [
            {"color": self.base, "value": None},
            *({"color": color, "value": value} for value, color in self.above),
        ]
        return {"mode": "absolute", "steps": steps}


@dataclass(frozen=True)
class Column:
    """Settings of what has this name in a panel: a column of a table, or a series."""

    name: str
    properties: Json

    def json(self) -> Json:
        return {
            "matcher": {"id": "byName", "options": self.name},
            "properties": [{"id": key, "value": value} for key, value in self.properties.items()],
        }


@dataclass(frozen=True)
class Panel:
    title: str
    description: str
    queries: tuple[Query, ...] = ()
    kind: str = "timeseries"
    unit: str = ""
    width: int = 12
    steps: Steps = Steps("green")
    no_value: str = ""
    decimals: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    mappings: tuple[Json, ...] = ()
    columns: tuple[Column, ...] = ()
    transformations: tuple[Json, ...] = ()
    options: Json = field(default_factory=dict)
    custom: Json = field(default_factory=dict)
    links: tuple[Json, ...] = ()

    def json(self, place: Json) -> Json:
        drawn: Json = {
            "id": number(self.title),
            "title": self.title,
            "description": self.description,
            "type": self.kind,
            "gridPos": place,
            "options": looks.options(self.kind, self.options),
        }
        if self.queries:
            drawn["datasource"] = DATASOURCE
            drawn["fieldConfig"] = {"defaults": self._defaults(), "overrides": [c.json() for c in self.columns]}
            drawn["targets"] = [query.json(chr(ord("A") + at)) for at, query in enumerate(self.queries)]
            drawn["transformations"] = list(self.transformations)
        return drawn

    def _defaults(self) -> Json:
        given = {
            "unit": self.unit,
            "noValue": self.no_value,
            "decimals": self.decimals,
            "min": self.minimum,
            "max": self.maximum,
            "mappings": list(self.mappings),
            "links": list(self.links),
        }
        fixed = {
            "color": looks.color(self.kind),
            "custom": looks.custom(self.kind, self.custom, lines=bool(self.steps.above)),
            "thresholds": self.steps.json(),
        }
        return {key: value for key, value in given.items() if value not in (None, "", [])} | fixed


@dataclass(frozen=True)
class Row:
    """Panels of one height side by side, under a heading where there is a title."""

    title: str
    height: int
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice above the dashboard: the values of a label, or with `text` a number that is typed in.

    With `pick`, a pattern, the values are taken from the query's result as it is ordered, the first being the default.
    """

    name: str
    label: str
    query: str
    several: bool = True
    text: bool = False
    pick: str = ""

    def json(self) -> Json:
        shared = {"name": self.name, "label": self.label}
        if self.text:
            chosen = {"selected": True, "text": self.query, "value": self.query}
            return {**shared, "type": "textbox", "query": self.query, "current": chosen, "options": [chosen]}
        return {
            **shared,
            "type": "query",
            "datasource": DATASOURCE,
            "query": {"qryType": 3 if self.pick else 1, "query": self.query, "refId": f"variable-{self.name}"},
            "regex": self.pick,
            "refresh": 2,
            "sort": 0 if self.pick else 7,
            "multi": self.several,
            "includeAll": self.several,
            **({"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}} if self.several else {}),
        }


@dataclass(frozen=True)
class Event:
    """A mark on the time axis where the query is above 0; with `at_value` at the millisecond that it gives."""

    name: str
    expr: str
    color: str
    title: str
    text: str = ""
    at_value: bool = False

    def json(self) -> Json:
        return {
            "name": self.name,
            "datasource": DATASOURCE,
            "enable": True,
            "iconColor": self.color,
            "target": {"refId": "Anno", "expr": self.expr, "interval": "15s"},
            "titleFormat": self.title,
            "textFormat": self.text,
            "useValueForTime": self.at_value,
        }


@dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    events: tuple[Event, ...] = ()
    since: str = "now-1h"

    def json(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": self.since, "to": "now"},
            "timezone": "browser",
            "links": [LINKS],
            "annotations": {"list": [event.json() for event in self.events]},
            "templating": {"list": [CHOOSE_DATASOURCE, *(variable.json() for variable in self.variables)]},
            "panels": list(laid_out(self.rows)),
        }


CHOOSE_DATASOURCE: Json = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
    "refresh": 1,
}
# From each of our dashboards to the others, at the same time and for the same machines and runs.
LINKS: Json = {
    "type": "dashboards",
    "title": "TrainVitals",
    "tags": [TAG],
    "asDropdown": False,
    "icon": "external link",
    "includeVars": True,
    "keepTime": True,
    "targetBlank": False,
    "tooltip": "",
}


def number(title: str) -> int:
    """A panel's id is made of its title, so that it stays when panels come and go around it."""
    return zlib.crc32(title.encode()) % 1_000_000 + 1


def laid_out(rows: Sequence[Row]) -> Iterator[Json]:
    y = 0
    for row in rows:
        if row.title:
            place = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
            heading = {"id": number(f"row {row.title}"), "title": row.title, "type": "row"}
            yield {**heading, "collapsed": False, "panels": [], "gridPos": place}
            y += 1
        x = 0
        for panel in row.panels:
            yield panel.json({"h": row.height, "w": panel.width, "x": x, "y": y})
            x += panel.width
        y += row.height
