// The last minutes of a value as a small line. What was not told is a gap, and the line has no axis but its frame.

import { draw, put } from "./dom.js";
import { isNumber } from "./format.js";

export const TRAIL_SECONDS = 300;
export const SLOT_SECONDS = 2;
const SLOTS = TRAIL_SECONDS / SLOT_SECONDS;
const HEIGHT = 24;

export class Trail {
  constructor() {
    this.values = new Map();
    this.newest = 0;
  }

  add(at, value) {
    const slot = Math.floor(at / SLOT_SECONDS);
    if (!isNumber(value) || slot <= this.newest - SLOTS) return;
    this.values.set(slot, value);
    this.advance(at);
  }

  // Time goes on where no value comes.
  advance(at) {
    this.newest = Math.max(this.newest, Math.floor(at / SLOT_SECONDS));
    for (const slot of this.values.keys()) if (slot <= this.newest - SLOTS) this.values.delete(slot);
  }

  points() {
    const first = this.newest - SLOTS + 1;
    return [...this.values].sort(([a], [b]) => a - b).map(([slot, value]) => [slot - first, value]);
  }
}

// `points` are [x, y] with x from 0 to `width`; more than `reach` apart is a gap.
export function line(className) {
  const area = draw("path", { class: "area" });
  const stroke = draw("path", { class: "stroke" });
  const image = draw(
    "svg",
    { class: `trail ${className}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    area,
    stroke,
  );
  image.paint = (points, low, high, width = SLOTS - 1, reach = 3) => {
    put(image, "viewBox", `0 0 ${width} ${HEIGHT}`);
    const pieces = split(points, reach).map((piece) => piece.map(([x, y]) => [x, heightOf(y, low, high)]));
    put(stroke, "d", pieces.map(pathOf).join(""));
    put(area, "d", pieces.map((piece) => `${pathOf(piece)}V${HEIGHT}H${piece[0][0]}Z`).join(""));
  };
  return image;
}

const pathOf = (piece) => `M${piece.map(([x, y]) => `${x} ${y}`).join("L")}${piece.length === 1 ? "h.8" : ""}`;

const heightOf = (value, low, high) =>
  Number((HEIGHT - 1 - (HEIGHT - 2) * Math.min(1, Math.max(0, (value - low) / (high - low || 1)))).toFixed(1));

function split(points, reach) {
  const pieces = [];
  let before = -Infinity;
  for (const point of points) {
    if (point[0] - before > reach) pieces.push([]);
    pieces.at(-1).push(point);
    before = point[0];
  }
  return pieces;
}
