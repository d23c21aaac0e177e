// A GPU: how busy, how full, how hot against its own limit, how much power; the last five minutes of each.

import { make, put, say, show } from "./dom.js";
import { UNKNOWN, isNumber, known, time, words } from "./format.js";
import { sign, worst } from "./signs.js";
import { SLOT_SECONDS, Trail, line } from "./trail.js";

// `low` and `top` are the ends of the small line's scale: for heat and power the top is the device's own limit.
// `words` are the value and what stands softly behind it.
export const MEASURES = [
  { field: "utilization_percent", name: "Use", words: (value) => [whole(value), " %"], top: () => 100 },
  { field: "memory_percent", name: "Memory", words: memoryWords, top: () => 100 },
  {
    field: "temperature_celsius",
    name: "Heat",
    low: 20,
    top: (gpu) => gpu.temperature_slowdown_celsius ?? 100,
    words: (value, gpu) => [whole(value), `${limit(gpu.temperature_slowdown_celsius)} °C`],
  },
  {
    field: "power_draw_watts",
    name: "Power",
    top: (gpu) => gpu.power_limit_watts ?? 1000,
    words: (value, gpu) => [whole(value), `${limit(gpu.power_limit_watts)} W`],
  },
];
const HARMLESS = new Set(["gpu_idle", "applications_clocks_setting", "display_clock_setting", "sync_boost"]);
// At full load that is the usual state of a healthy board.
const USUAL = "sw_power_cap";
// So many slots without a reading are no gap yet.
const LEAST_REACH = 3;

const whole = (value) => value.toFixed(0);
const limit = (value) => (value === undefined ? "" : ` / ${value.toFixed(0)}`);

function memoryWords(value, gpu) {
  if (gpu.memory_used_mb === undefined) return [whole(value), " %"];
  return [(gpu.memory_used_mb / 1024).toFixed(1), ` / ${((gpu.memory_total_mb ?? NaN) / 1024).toFixed(1)} GiB`];
}

export function gpuTile(first) {
  const mark = sign("well");
  const name = make("a", { href: `/?view=system&gpu=${first.gpu}`, "data-go": "system" }, `GPU ${first.gpu}`);
  const model = make("span", { class: "soft ellipsis" });
  const state = make("p", { class: "state" });
  const rows = MEASURES.map(measureRow);
  const tile = make(
    "li",
    { class: "card tile" },
    make("h3", {}, mark, name, model),
    make(
      "dl",
      {},
      rows.map((row) => row.element),
    ),
    state,
  );
  const trails = MEASURES.map(() => new Trail());
  tile.remember = (field, at, value) =>
    trails[MEASURES.findIndex((measure) => measure.field === field)]?.add(at, value);
  tile.update = ({ gpu, at, interval, findings, xids, isGone, isKnown }) => {
    const held = heldBy(gpu);
    const isSilent = isGone || !isKnown;
    const seen = !isKnown ? "starting" : isGone ? "page" : worst(findings) || signOf(held);
    put(tile, "data-state", seen);
    mark.update(seen);
    say(model, gpu.name ?? "");
    put(model, "title", gpu.name);
    rows.forEach((row, place) =>
      row.update(isSilent ? {} : gpu, trails[place], at, Math.max(LEAST_REACH, (3 * interval) / SLOT_SECONDS)),
    );
    say(state, (isGone ? "Does not answer any more. " : "") + stateWords(isSilent ? [] : held, findings, xids));
    show(state, state.textContent);
  };
  return tile;
}

function measureRow(measure) {
  const value = make("b", {});
  const rest = make("span", { class: "soft" });
  const image = line(measure.field);
  const element = make(
    "div",
    {},
    make("dt", {}, measure.name),
    make("dd", {}, image, make("span", { class: "value" }, value, rest)),
  );
  const update = (gpu, trail, at, reach) => {
    const now = gpu[measure.field];
    trail.add(at, now);
    trail.advance(at);
    image.paint(trail.points(), measure.low ?? 0, measure.top(gpu), undefined, reach);
    const [text, after] = isNumber(now) ? measure.words(now, gpu) : [UNKNOWN, ""];
    say(value, text);
    say(rest, after);
  };
  return { element, update };
}

const signOf = (held) => (held.some((reason) => reason !== USUAL) ? "ticket" : "well");
const heldBy = (gpu) => (gpu.throttle_active ?? []).filter((reason) => !HARMLESS.has(reason));

function stateWords(held, findings, xids) {
  return [
    ...findings.map((finding) => finding.kind + (finding.silenced ? ", silenced" : "")),
    ...(held.length ? [`held down by ${held.map(words).join(", ")}`] : []),
    ...xids.map((xid) => `Xid ${xid.xid}, ${known(xid.last_timestamp_seconds, (when) => time(when))}`),
  ].join(" · ");
}
