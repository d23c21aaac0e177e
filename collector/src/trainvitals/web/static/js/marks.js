// Marks over a plot: what happened to the run, and where a value was no number.

import { colours, pale } from "./palette.js";

const GLYPHS = {
  checkpoint: "▪",
  finding: "!",
  alert: "!",
  restart: "↻",
  note: "✎",
  end: "■",
  killed: "✖",
  phase: "◦",
};
const TONES = { page: "page", ticket: "ticket" };
const LEAST_PIXELS = 7;
const NEAR_PIXELS = 6;

export const glyphOf = (event) => GLYPHS[event.kind] ?? "•";
const toneOf = (event) => (event.kind === "killed" ? "page" : (TONES[event.severity] ?? "soft"));

export function marks(chart) {
  return {
    hooks: { drawAxes: [(plot) => paintMarks(plot, chart.marks)], draw: [(plot) => paintBad(plot, chart.lines)] },
  };
}

function paintMarks(plot, events) {
  const { ctx, bbox } = plot;
  const tones = colours();
  let before = -Infinity;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  for (const event of events) {
    const at = Math.round(plot.valToPos(event.x, "x", true));
    const isGrave = Boolean(TONES[event.severity]);
    const isMany = event.kind === "checkpoint" || event.kind === "phase";
    if (at < bbox.left || at > bbox.left + bbox.width || (isMany && at - before < LEAST_PIXELS * devicePixelRatio))
      continue;
    before = at;
    ctx.strokeStyle = ctx.fillStyle = pale(tones[toneOf(event)], isGrave ? 0.9 : 0.55);
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    stroke(ctx, at, bbox.top, bbox.top + bbox.height);
    ctx.fillText(glyphOf(event), at, bbox.top - 3 * devicePixelRatio);
  }
  ctx.restore();
}

function stroke(ctx, at, top, bottom) {
  ctx.beginPath();
  ctx.moveTo(at, top);
  ctx.lineTo(at, bottom);
  ctx.stroke();
}

// A cross at the top, and a shade below it.
function paintBad(plot, lines) {
  const { ctx, bbox } = plot;
  const tone = colours().page;
  const size = 3 * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = tone;
  ctx.fillStyle = pale(tone, 0.1);
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const [from, to] of lines.flatMap(badSpans)) {
    const left = Math.max(bbox.left, plot.valToPos(from, "x", true));
    const right = Math.min(bbox.left + bbox.width, Math.max(plot.valToPos(to, "x", true), left + 1));
    if (right < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    cross(ctx, (left + right) / 2, bbox.top + 2 * size, size);
  }
  ctx.restore();
}

function cross(ctx, x, y, size) {
  ctx.beginPath();
  ctx.moveTo(x - size, y - size);
  ctx.lineTo(x + size, y + size);
  ctx.moveTo(x + size, y - size);
  ctx.lineTo(x - size, y + size);
  ctx.stroke();
}

// From where to where a line's values were no numbers.
export function badSpans({ bad, x }) {
  const spans = [];
  (bad ?? []).forEach((count, place) => {
    if (!count) return;
    if (place && bad[place - 1]) spans.at(-1)[1] = x[place];
    else spans.push([x[place], x[place]]);
  });
  return spans;
}

// What happened beneath the cursor.
export function eventAt(plot, events, left) {
  const distance = (event) => Math.abs(plot.valToPos(event.x, "x") - left);
  const near = events.filter((event) => distance(event) <= NEAR_PIXELS);
  return near.sort((a, b) => distance(a) - distance(b))[0] ?? null;
}
