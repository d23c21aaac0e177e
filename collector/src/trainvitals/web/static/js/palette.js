// Eight colours that people who see colours otherwise can tell apart, each with a dash of its own beside it. They stand
// in charts.css; a canvas needs them as numbers.

import { draw, make } from "./dom.js";
import * as theme from "./theme.js";

export const COUNT = 8;
const DASHES = [[], [8, 3], [2, 2], [9, 3, 2, 3], [14, 4], [4, 4], [9, 2, 2, 2, 2, 2], [1, 4]];
const TONES = ["ink", "soft", "line", "card", "page", "ticket", "well", "accent"];

let resolved = null;
theme.onChange(() => (resolved = null));

export const dashOf = (place) => DASHES[(place + 3 * Math.floor(place / COUNT)) % DASHES.length];
export const classOf = (place) => `c${place % COUNT}`;

export function colours() {
  resolved ??= { lines: probe(Array.from({ length: COUNT }, (_, place) => classOf(place))), ...tones() };
  return resolved;
}

export const colourOf = (place) => colours().lines[place % COUNT];

const tones = () =>
  Object.fromEntries(probe(TONES.map((tone) => `tone-${tone}`)).map((colour, place) => [TONES[place], colour]));

function probe(classes) {
  const elements = classes.map((name) => make("i", { class: name, hidden: true }));
  document.body.append(...elements);
  const found = elements.map((element) => getComputedStyle(element).color);
  for (const element of elements) element.remove();
  return found;
}

// "rgb(1, 2, 3)" -> "rgba(1, 2, 3, 0.2)"
export const pale = (colour, alpha) => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

// How a line looks, for legends.
export function swatch(place, dash = place) {
  const stroke = draw("path", { d: "M1 5h26", "stroke-dasharray": dashOf(dash).join(" ") || "none" });
  return draw("svg", { class: `swatch ${classOf(place)}`, viewBox: "0 0 28 10", "aria-hidden": "true" }, stroke);
}
