// A plot as the library wants it described: scales, axes, how each line is drawn.

import { axisOf } from "./axes.js";
import { large } from "./format.js";
import { gestures } from "./gestures.js";
import { marks } from "./marks.js";
import { colourOf, colours, dashOf, pale } from "./palette.js";

const FONT = "12px system-ui, sans-serif";
const AXIS_WIDTH = 64;
// The last mark of the lower axis may stand at its very end.
const LABEL_WIDTH = 56;
const POWERS_OF_TWO = Array.from({ length: 60 }, (_, power) => 2 ** power);

export function options(chart, parts, width, height) {
  const { group, spec } = chart;
  // A single moment, as of a first step, would be shown as a day.
  const isMoment = (plot) => group.axis.kind === "time" && plot.data[0].length === 1;
  const whole = (plot, low, high) => (isMoment(plot) ? group.held(low, low) : [low, high]);
  return {
    width,
    height,
    padding: [14, LABEL_WIDTH / 2, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: group.name, scales: ["x", null] },
      points: { show: false },
      y: false,
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          group.reset();
          return null;
        },
      },
    },
    scales: {
      x: { time: group.axis.kind === "time", range: (plot, low, high) => group.range ?? whole(plot, low, high) },
      y: scaleOf(spec, chart.isLog),
    },
    axes: axes(group.axis.kind, spec),
    series: [{}, ...parts.map((part) => seriesOf(part, spec))],
    bands: bands(parts),
    plugins: [gestures(group), marks(chart)],
    hooks: { setSelect: [(plot) => select(plot, group)], setCursor: [(plot) => chart.read(plot)] },
  };
}

function scaleOf(spec, isLog) {
  if (isLog) return { distr: 3 };
  if (spec.span) return { range: spec.span };
  return { range: (_, low, high) => (low === null ? [null, null] : rangeOf(spec, low, high)) };
}

// A line that is flat is not told by its noise: what is always nought lies on the ground.
function rangeOf(spec, low, high) {
  const bottom = spec.fromZero ? Math.min(0, low) : low;
  const top = Math.max(high, bottom + (spec.least ?? 0));
  return window.uPlot.rangeNum(bottom, top > bottom ? top : bottom + (Math.abs(bottom) || 1), 0.08, true);
}

function axes(kind, spec) {
  const { soft, line } = colours();
  const shared = {
    stroke: soft,
    font: FONT,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1, size: 4 },
  };
  return [
    { ...shared, size: 30, ...axisOf[kind] },
    {
      ...shared,
      size: AXIS_WIDTH,
      ...(spec.isBinary ? { incrs: POWERS_OF_TWO } : {}),
      values: (_, splits) => splits.map((value) => (value === null ? "" : (spec.axisWords ?? large)(value))),
    },
  ];
}

function seriesOf({ line, kind }, spec) {
  const colour = colourOf(line.place);
  const dash = dashOf(line.dash ?? line.place).map((length) => length * devicePixelRatio);
  if (kind === "high" || kind === "low") return { stroke: pale(colour, 0.4), width: 1, points: { show: false } };
  if (kind === "raw") return { stroke: pale(colour, 0.4), width: 1, points: { show: false } };
  if (spec.isStacked) return { stroke: colour, width: 1, dash, fill: colour, points: { show: false } };
  return {
    stroke: colour,
    width: 1.75,
    dash,
    points: { show: true, size: 5, width: 1, fill: colour, stroke: colour, filter: lonely },
  };
}

// A value with nothing beside it would not be seen.
function lonely(plot, place) {
  const values = plot.data[place];
  const [first, last] = plot.series[0].idxs ?? [0, values.length - 1];
  const found = [];
  for (let at = first; at <= last; at += 1) {
    if (values[at] !== null && values[at] !== undefined && isBare(values, at, -1) && isBare(values, at, 1))
      found.push(at);
  }
  return found;
}

// Whether a gap or the end comes before the next value in that direction.
function isBare(values, at, by) {
  for (at += by; at >= 0 && at < values.length; at += by) {
    if (values[at] === null) return true;
    if (values[at] !== undefined) return false;
  }
  return true;
}

function bands(parts) {
  return parts.flatMap(({ line, kind }, place) =>
    kind === "high" ? [{ series: [place + 1, place + 2], fill: pale(colourOf(line.place), 0.18) }] : [],
  );
}

function select(plot, group) {
  const { left, width } = plot.select;
  if (width > 4) group.zoomTo(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}
