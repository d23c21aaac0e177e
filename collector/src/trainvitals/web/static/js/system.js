// GPUs and host over time: five minutes to thirty days, all charts under one cursor.

import * as address from "./address.js";
import { get, wordsOf } from "./api.js";
import { Chart, moveButtons } from "./chart.js";
import { find, make, put, say, show } from "./dom.js";
import { exportMenu } from "./export_menu.js";
import { isNumber, secondsOf, time } from "./format.js";
import { gpuFacts } from "./gpu_facts.js";
import { Group } from "./group.js";
import { bridged, rates } from "./plot_data.js";
import { choice, pauseAfter, zoomed } from "./system_choice.js";
import { systemControls } from "./system_controls.js";
import { GPU_CHARTS, HOST_CHARTS, ofField } from "./system_specs.js";

// About as many as a chart is wide; of many GPUs fewer, whose lines lie over each other.
const POINTS = 300;
const MANY_GPUS = 8;
const DIGITS = 3;
// More than so many lines with their peaks could not be told apart.
const MOST_PEAKS = 4;
const LEAST_SECONDS = 10;

let parts = null;
let snapshot = null;
let told = { gpus: {}, host: {} };
let findings = [];
let dueAt = 0;
let asked = "";
let dropped = null;

const now = () => (snapshot?.timestamp ? Date.parse(snapshot.timestamp) / 1000 : Date.now() / 1000);

export function build(root) {
  const charts = new Group("system", (from, to) => address.change(zoomed(from, to, now())));
  charts.axis = { kind: "time", title: "Time", words: time, least: LEAST_SECONDS };
  charts.subject = () => snapshot?.node ?? "";
  const grid = (label) => make("div", { class: "charts", "aria-label": label, role: "group" });
  parts = {
    group: charts,
    charts: new Map(),
    gpuGrid: grid("GPUs"),
    hostGrid: grid("Host"),
    facts: gpuFacts(),
    problem: make("p", { class: "banner", role: "status", hidden: true }),
    none: make("p", { class: "empty", hidden: true }, "No GPU has told anything in this time."),
  };
  parts.controls = systemControls(
    moveButtons(charts, "Now", "Back to now (0)"),
    exportMenu(exports, () => [...parts.charts.values()]),
  );
  root.append(
    make("h2", { class: "hidden" }, "System"),
    parts.controls.element,
    parts.problem,
    make("section", {}, make("h2", {}, "GPUs"), parts.none, parts.gpuGrid),
    make("section", {}, make("h2", {}, "Host"), parts.hostGrid),
    parts.facts,
  );
}

export const group = () => parts?.group;

export function look() {
  ask(true);
}

export function update(next) {
  snapshot = next;
  parts.facts.gpus = next.gpus;
  parts.facts.update(next.gpus);
  parts.controls.set(choice(now()), snapshot, gpusOf());
  if (performance.now() / 1000 >= dueAt && !choice(now()).isFixed) ask();
}

const specs = (chosen) => [...GPU_CHARTS, ...HOST_CHARTS, ...chosen.fields.map(ofField)];
const gpusOf = () =>
  [...new Set([...Object.keys(told.gpus), ...(snapshot?.gpus ?? []).map((gpu) => String(gpu.gpu))])].sort(
    (a, b) => a - b,
  );

const shownOf = ({ gpus }) => gpusOf().filter((gpu) => !gpus.length || gpus.includes(gpu));

// A question that is asked again while the answer is awaited would never be answered.
async function ask(isNew = false) {
  const chosen = choice(now());
  const wanted = specs(chosen);
  const fieldsOf = (isHost) =>
    wanted
      .filter((spec) => Boolean(spec.isHost) === isHost)
      .map((spec) => spec.field)
      .join(",");
  const key = address.all("field").join() + location.search;
  if (!isNew && key === asked && dropped) return;
  asked = key;
  dropped?.abort();
  dropped = new AbortController();
  const { signal } = dropped;
  const began = performance.now();
  let problem = "";
  try {
    const [history, past] = await Promise.all([
      get(
        "/api/v1/node",
        {
          from: chosen.from.toFixed(1),
          to: chosen.to.toFixed(1),
          points: Math.round((POINTS * MANY_GPUS) / Math.max(MANY_GPUS, shownOf(chosen).length)),
          digits: DIGITS,
          peaks: MOST_PEAKS,
          gpu: chosen.gpus.join(","),
          fields: fieldsOf(false),
          host: fieldsOf(true),
        },
        signal,
      ),
      get("/api/v1/findings", { state: "all", limit: 200 }, signal).catch(() => ({ findings: [] })),
    ]);
    [told, findings] = [history, past.findings];
  } catch (error) {
    if (signal.aborted) return;
    problem = wordsOf(error);
  }
  dropped = null;
  dueAt = performance.now() / 1000 + pauseAfter((performance.now() - began) / 1000, chosen.to - chosen.from);
  say(parts.problem, problem);
  show(parts.problem, problem);
  paint(chosen);
}

function paint(chosen) {
  const gpus = gpusOf();
  const shown = shownOf(chosen);
  parts.group.show([chosen.from, chosen.to]);
  parts.controls.set(chosen, snapshot, gpus);
  show(parts.none, !Object.keys(told.gpus).length);
  show(parts.gpuGrid, Object.keys(told.gpus).length);
  const wanted = specs(chosen);
  arrange(
    parts.gpuGrid,
    wanted.filter((spec) => !spec.isHost),
  );
  arrange(
    parts.hostGrid,
    wanted.filter((spec) => spec.isHost),
  );
  for (const id of parts.charts.keys()) if (!wanted.some((spec) => spec.id === id)) remove(id);
  const marks = marksOf(chosen, shown);
  for (const spec of wanted)
    parts.charts.get(spec.id).set(spec.isHost ? hostLine(spec) : gpuLines(spec, shown), { marks });
  put(find("system"), "data-ready", "true");
}

function arrange(grid, wanted) {
  wanted.forEach((spec, place) => {
    if (!parts.charts.has(spec.id)) parts.charts.set(spec.id, new Chart(parts.group, { ...spec, isAlone: true }));
    const { element } = parts.charts.get(spec.id);
    if (grid.children[place] !== element) grid.insertBefore(element, grid.children[place] ?? null);
  });
}

function remove(id) {
  parts.group.remove(parts.charts.get(id));
  parts.charts.get(id).element.remove();
  parts.charts.delete(id);
}

function gpuLines(spec, shown) {
  return shown.flatMap((gpu) =>
    lineOf(
      spec,
      told.gpus[gpu]?.[spec.field],
      { key: gpu, label: `GPU ${gpu}`, place: Number(gpu) || 0 },
      shown.length <= MOST_PEAKS,
    ),
  );
}

const hostLine = (spec) => lineOf(spec, told.host[spec.field], { key: "host", label: "Host", place: 0 }, true);

// Where nothing was told is a gap: the agent did not run, or the device did not answer.
function lineOf(spec, column, line, withPeak) {
  if (!column?.x) return [];
  const x = column.x;
  if (spec.isCounter) return [{ ...line, x, mean: rates(column.mean, x) }];
  const mean = bridged(column.mean, x);
  const hasPeak = withPeak && column.peak?.some((value, place) => isNumber(value) && value !== column.mean[place]);
  return [{ ...line, x, mean, high: hasPeak ? bridged(column.peak, x) : null, low: hasPeak ? mean : null }];
}

function marksOf(chosen, shown) {
  const isHere = (finding) =>
    !finding.run && (!finding.gpu || shown.includes(finding.gpu)) && finding.severity !== "info";
  const found = findings.filter(isHere).map((finding) => ({
    kind: "finding",
    severity: finding.severity,
    text: `${finding.kind}: ${finding.what}`,
    x: secondsOf(finding.opened),
  }));
  return found.filter(({ x }) => x >= chosen.from && x <= chosen.to).sort((a, b) => a.x - b.x);
}

function exports() {
  const { from, to, gpus } = choice(now());
  const range = { from: from.toFixed(1), to: to.toFixed(1) };
  return [
    { title: "GPUs, what is shown", parameters: { gpus: gpus.join(",") || "all", ...range } },
    { title: "Host, what is shown", parameters: { host: 1, ...range } },
  ];
}
