"""How each type of panel is drawn where its description says nothing else; all types are core ones, none is Angular."""

from typing import Any

Json = dict[str, Any]

LEGEND: Json = {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True}
TOOLTIP: Json = {"mode": "multi", "sort": "desc"}
# One value of each series: the queries of these panels are instant, so that it is the present one.
REDUCE: Json = {"calcs": ["lastNotNull"], "fields": "", "values": False}

OPTIONS: dict[str, Json] = {
    "timeseries": {"legend": LEGEND, "tooltip": TOOLTIP},
    "stat": {
        "colorMode": "background", "graphMode": "none", "justifyMode": "center", "orientation": "auto",
        "percentChangeColorMode": "standard", "reduceOptions": REDUCE, "showPercentChange": False,
        "textMode": "auto", "wideLayout": True,
    },
    "table": {"cellHeight": "sm", "frameIndex": 0, "showHeader": True},
    "state-timeline": {
        "alignValue": "left", "legend": LEGEND, "mergeValues": True, "rowHeight": 0.85, "showValue": "never",
        "tooltip": {"mode": "single", "sort": "none"},
    },
    "heatmap": {
        "calculate": False, "cellGap": 1, "color": {"exponent": 0.5, "fill": "dark-orange", "mode": "scheme",
        "reverse": False, "scale": "exponential", "scheme": "Turbo", "steps": 64},
        "exemplars": {"color": "rgba(255,0,255,0.7)"}, "filterValues": {"le": 1e-9}, "legend": {"show": True},
        "rowsFrame": {"layout": "unknown", "value": "value"}, "showValue": "never",
        "tooltip": {"mode": "single", "showColorScale": True, "yHistogram": False},
        "yAxis": {"axisPlacement": "left", "reverse": False},
    },
    "text": {"mode": "markdown"},
}  # fmt: skip

CUSTOM: dict[str, Json] = {
    "timeseries": {"drawStyle": "line", "fillOpacity": 8, "lineInterpolation": "linear", "lineWidth": 1,
                   "showPoints": "never", "spanNulls": False},
    "table": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False},
    "state-timeline": {"fillOpacity": 85, "lineWidth": 0},
}  # fmt: skip

COLORED_CELL: Json = {"type": "color-background", "mode": "basic"}


def options(kind: str, own: Json) -> Json:
    return OPTIONS[kind] | own


def custom(kind: str, own: Json, lines: bool) -> Json:
    dashed = {"thresholdsStyle": {"mode": "dashed"}} if lines and kind == "timeseries" else {}
    return CUSTOM.get(kind, {}) | dashed | own


def color(kind: str) -> Json:
    return {"mode": "palette-classic" if kind == "timeseries" else "thresholds"}
