// The values of a chart as a table, for who cannot see it or wants the numbers. Of many rows some are shown, evenly.

import { make } from "./dom.js";
import { nearest } from "./plot_data.js";

const SHOWN_ROWS = 200;

export function valueTable(chart) {
  const { lines, group, spec } = chart;
  const xs = shownOf(longest(lines), group.shown());
  const every = Math.max(1, Math.ceil(xs.length / SHOWN_ROWS));
  const rows = xs.filter((_, place) => place % every === 0 || place === xs.length - 1);
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, group.axis.title ?? ""),
    lines.map((line) => make("th", { scope: "col", class: "number" }, line.label)),
  );
  const body = rows.map((x) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, group.axis.words(x)),
      lines.map((line) => make("td", { class: "number" }, chart.words(at(line, x)))),
    ),
  );
  const every_words = every > 1 ? `, every ${every}th of ${xs.length} points` : "";
  const table = make(
    "table",
    {},
    make("caption", {}, `${spec.title}${every_words}`),
    make("thead", {}, head),
    make("tbody", {}, body),
  );
  return make(
    "div",
    { class: "scroll values", tabindex: "0", role: "region", "aria-label": `${spec.title}, values` },
    table,
  );
}

const longest = (lines) => lines.reduce((found, line) => (line.x.length > found.length ? line.x : found), []);

const shownOf = (xs, shown) => (shown ? xs.filter((x) => x >= shown[0] && x <= shown[1]) : xs);

function at(line, x) {
  const place = nearest(line.x, x);
  const value = (line.own ?? line.mean)[place];
  return line.bad?.[place] && (value === null || value === undefined) ? "NaN" : (value ?? null);
}
