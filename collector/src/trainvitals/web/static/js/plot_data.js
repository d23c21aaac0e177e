// Lines as the plot wants them: one column of x, and for each line its lowest, highest, mean and smoothed values.
//
// A line is {key, label, place, x, mean, low, high, bad, smooth}; `bad` counts what was NaN or infinite. A value that is
// not known has no point, and the line goes on over it; a value that is no number breaks the line.

import { isNumber } from "./format.js";

const SPARSE = 0.5;
const PAUSE = 20;
const BRIDGED = 3.5;

export function columns(lines) {
  const parts = lines.flatMap((line) => partsOf(line).map((part) => ({ line, ...part })));
  const tables = lines.map((line) => [line.x, ...partsOf(line).map((part) => part.values)]);
  const data = tables.length ? together(tables) : [[]];
  return { data, parts };
}

function partsOf(line) {
  const parts = [];
  if (line.high) parts.push({ kind: "high", values: line.high }, { kind: "low", values: line.low });
  parts.push({ kind: line.smooth ? "raw" : "main", values: line.mean });
  if (line.smooth) parts.push({ kind: "main", values: line.smooth });
  return parts;
}

// Lines over the same x need no merging.
function together(tables) {
  const [first] = tables;
  if (tables.every((table) => isSame(table[0], first[0])))
    return [first[0], ...tables.flatMap((table) => table.slice(1))];
  return window.uPlot.join(
    tables,
    tables.map((table) => table.map(() => 2)),
  );
}

const isSame = (a, b) =>
  a === b || (a.length === b.length && a[0] === b[0] && a.at(-1) === b.at(-1) && a[a.length >> 1] === b[b.length >> 1]);

// A column of an answer made fit to draw: `isTime` where a long pause is to be seen as one.
export function fit({ min, max, mean, nonfinite }, x, isRaw, isTime) {
  const gaps = mean.map((value, place) => (isNumber(value) ? value : nonfinite?.[place] ? null : undefined));
  if (isTime) breakAtPauses(gaps, x);
  return { x, mean: gaps, low: isRaw ? null : min, high: isRaw ? null : max, bad: nonfinite };
}

function breakAtPauses(values, x) {
  const known = x.flatMap((_, place) => (values[place] === undefined ? [] : [place]));
  if (known.length < 3 || known.length < SPARSE * x.length) return;
  const usual = (x[known.at(-1)] - x[known[0]]) / (known.length - 1);
  for (let place = 1; place < known.length; place += 1) {
    const between = known[place] - 1;
    if (x[known[place]] - x[known[place - 1]] > PAUSE * usual && between > known[place - 1]) values[between] = null;
  }
}

// What came before counts less and less; `weight` from 0 to 1. A value that is no number leaves no trace.
export function smoothed(values, weight) {
  if (!weight) return null;
  let sum = 0;
  let weights = 0;
  return values.map((value) => {
    if (!isNumber(value)) return value;
    sum = weight * sum + value;
    weights = weight * weights + 1;
    return sum / weights;
  });
}

// On a logarithmic scale there is no nought and nothing below it.
export const positive = (values) => values?.map((value) => (isNumber(value) && value <= 0 ? null : value)) ?? null;

// Each upon those before it: what is drawn is the sum, what is read is the own value.
export function stacked(lines) {
  let below = lines[0]?.x.map(() => 0) ?? [];
  return lines.map((line) => {
    below = line.mean.map((value, place) => below[place] + (isNumber(value) ? value : 0));
    return { ...line, own: line.mean, mean: below, low: null, high: null };
  });
}

// An agent that reads rarely leaves slots empty between its readings: the line goes on over those, and a gap is what is
// longer than a few of them.
export function bridged(values, x) {
  const known = x.flatMap((_, place) => (isNumber(values[place]) ? [place] : []));
  const steps = known.slice(1).map((place, before) => x[place] - x[known[before]]);
  const usual = [...steps].sort((a, b) => a - b)[steps.length >> 1] ?? 0;
  const found = [...values];
  steps.forEach((step, before) => {
    if (step <= BRIDGED * usual) found.fill(undefined, known[before] + 1, known[before + 1]);
  });
  return found;
}

// What a counter grew by in a second; one that starts over is a gap.
export function rates(values, x) {
  let before = -1;
  return values.map((value, place) => {
    if (!isNumber(value)) return null;
    const last = before;
    before = place;
    const grown = last < 0 ? NaN : (value - values[last]) / (x[place] - x[last]);
    return grown >= 0 ? grown : null;
  });
}

// The place of the value nearest to x.
export function nearest(xs, x) {
  let low = 0;
  let high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle;
    else high = middle;
  }
  return Math.abs((xs[high] ?? Infinity) - x) < Math.abs(xs[low] - x) ? high : low;
}
