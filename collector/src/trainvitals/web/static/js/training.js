// Runs: loss, gradient, speed, where the time goes, memory, and what else they told; several laid over each other.

import * as address from "./address.js";
import { get, wordsOf } from "./api.js";
import { Chart, moveButtons } from "./chart.js";
import { make, put, say, show } from "./dom.js";
import { EventList } from "./event_list.js";
import { exportMenu } from "./export_menu.js";
import { bytes, duration, time } from "./format.js";
import { Group } from "./group.js";
import { RankTable } from "./rank_table.js";
import { RunPicker } from "./run_picker.js";
import { change, choice, leftOutWords, pairs as pairsOf } from "./training_choice.js";
import { controls } from "./training_controls.js";
import { TrainingData } from "./training_data.js";
import { ALWAYS, AXES, CHARTS, ofField } from "./training_specs.js";

const RUNS_EVERY_SECONDS = 15;

let parts = null;
let runs = null;
let left = 0;
let runsAt = -Infinity;
// Why the list of runs did not come.
let listError = "";
let states = "";

// What keys do here.
export const acts = {
  filter() {
    parts.picker.element.open = true;
    parts.picker.filter.focus();
  },
  log: () => change({ log: choice(runs ?? []).isLog ? null : "1" }),
  axis() {
    const names = Object.keys(AXES);
    const next = names[(names.indexOf(choice(runs ?? []).x) + 1) % names.length];
    change({ x: next, from: null, to: null });
  },
};

export function build(root) {
  const charts = new Group("training", zoomTo);
  parts = {
    group: charts,
    charts: new Map(),
    picker: new RunPicker(),
    ranks: new RankTable(),
    events: new EventList(),
    data: new TrainingData(paint),
    grid: make("div", { class: "charts" }),
    problem: make("p", { class: "banner", role: "status", hidden: true }),
    none: make("p", { class: "empty" }, "Loading…"),
  };
  charts.subject = () =>
    chosenPairs()
      .map((pair) => pair.label)
      .join(", ");
  parts.controls = controls(
    moveButtons(charts),
    exportMenu(exports, () => [...parts.charts.values()]),
  );
  const content = make("div", {}, parts.controls.element, parts.grid, parts.ranks.element, parts.events.element);
  parts.split = make("div", { class: "split", hidden: true }, parts.picker.element, content);
  root.append(make("h2", { class: "hidden" }, "Training"), parts.problem, parts.none, parts.split);
}

const rounded = (x) => Number(x.toFixed(3));

function zoomTo(from, to) {
  if (from === null) address.change({ from, to });
  else change({ from: rounded(from), to: rounded(to) });
}

export const group = () => parts?.group;

export function look() {
  if (!runs) askForRuns();
  else ask();
}

// A run that came, ended or went on changes the list; steps alone do so now and then.
export function update(snapshot) {
  const next = JSON.stringify(snapshot.runs.map((run) => [run.run, run.status]));
  const isOld = performance.now() - runsAt > 1000 * RUNS_EVERY_SECONDS;
  // At the first snapshot the list has just been asked for.
  if ((states && next !== states) || isOld) askForRuns();
  states = next;
  if (!runs || !parts.data.isDue) return;
  if (parts.data.missing || (isLive() && address.numberOf("to") === null)) ask(true);
}

async function askForRuns() {
  runsAt = performance.now();
  const wasLive = isLive();
  try {
    const told = await get("/api/v1/runs", { limit: 200 });
    [runs, left] = [told.runs, told.more];
    listError = "";
  } catch (error) {
    listError = wordsOf(error);
  }
  // Of a run that has ended the last steps are still to come, and its end; what went wrong is tried again.
  ask((wasLive && !isLive()) || Boolean(parts.data.error));
  paint();
}

const chosenPairs = () => pairsOf(choice(runs ?? []), runs ?? []);
const isLive = () => chosenPairs().some((pair) => pair.info?.live);

function specs(chosen, pairs) {
  const told = new Set(pairs.flatMap((pair) => pair.info?.fields ?? []));
  const isTold = (spec) =>
    ALWAYS.has(spec.id) || !told.size || Object.keys(spec.fields).some((field) => told.has(field));
  return [...CHARTS.filter(isTold), ...chosen.fields.map(ofField)];
}

function ask(isForced = false) {
  const chosen = choice(runs ?? []);
  const pairs = chosenPairs();
  say(parts.none, runs ? "No run has written to this journal yet." : "Loading…");
  show(parts.none, runs ? !runs.length : !listError);
  show(parts.split, runs?.length);
  if (!pairs.length) return;
  const axis = AXES[chosen.x];
  parts.group.axis = { ...axis, words: axis.words ?? (axis.kind === "time" ? (x) => time(x) : duration) };
  parts.group.show(chosen.from !== null && chosen.to !== null ? [chosen.from, chosen.to] : null);
  parts.picker.set(runs, left, chosen.runs, pairs);
  parts.controls.set(chosen, pairs);
  const fields = specs(chosen, pairs).flatMap((spec) => Object.keys(spec.fields));
  parts.data.ask(pairs, [...new Set(fields)], { x: chosen.x, from: chosen.from, to: chosen.to }, isForced);
  paint();
}

function paint() {
  const chosen = choice(runs ?? []);
  const pairs = chosenPairs();
  const problem = [listError, parts.data.error, missingWords(parts.data.missing), leftOutWords(chosen, runs ?? [])]
    .filter(Boolean)
    .join(" ");
  say(parts.problem, problem);
  show(parts.problem, problem);
  if (!pairs.length) return;
  const wanted = specs(chosen, pairs);
  arrange(wanted);
  const marks = parts.data.marks(pairs, chosen.x);
  const isOfSeveral = new Set(pairs.map(({ run }) => run)).size > 1;
  const shown = isOfSeveral ? marks.filter(({ kind }) => kind !== "checkpoint" && kind !== "phase") : marks;
  for (const spec of wanted)
    parts.charts.get(spec.id).set(linesOf(spec, pairs, chosen), {
      isLog: chosen.isLog && spec.canLog,
      marks: shown,
      isAwaited: parts.data.isAsking,
    });
  parts.events.set(marks, parts.data.older, isOfSeveral);
  const ranks = [...new Set([...chosen.ranks, ...pairs.map(({ rank }) => rank)])];
  parts.ranks.set(pairs[0].run, ranks, pairs[0].info?.live);
  put(parts.grid, "aria-busy", String(parts.data.isAsking));
}

const missingWords = (size) =>
  size ? `The agent has still ${bytes(size)} of this to read; what it has read is drawn.` : "";

// Charts are made and taken away as they are needed, in the order of their specifications.
function arrange(wanted) {
  for (const [id, chart] of parts.charts) {
    if (wanted.some((spec) => spec.id === id)) continue;
    parts.group.remove(chart);
    chart.element.remove();
    parts.charts.delete(id);
  }
  wanted.forEach((spec, place) => {
    if (!parts.charts.has(spec.id))
      parts.charts.set(
        spec.id,
        new Chart(parts.group, { ...spec, isAlone: !spec.isCustom && Object.keys(spec.fields).length < 2 }),
      );
    const { element } = parts.charts.get(spec.id);
    if (parts.grid.children[place] !== element) parts.grid.insertBefore(element, parts.grid.children[place] ?? null);
  });
}

// Where time goes is that of one run: sums of several would lie over each other.
function linesOf(spec, pairs, chosen) {
  const fields = Object.entries(spec.fields);
  const smoothing = spec.canSmooth ? chosen.smoothing : 0;
  const of = spec.isStacked ? pairs.slice(0, 1) : pairs;
  return of
    .flatMap((pair) =>
      fields.map(([field, name], at) => {
        const line = parts.data.line(pair, field, { smoothing, x: chosen.x });
        const place = pairs.length > 1 && !spec.isStacked ? pair.place : pair.place + at;
        const label = [name, of.length > 1 || !name ? pair.label : ""].filter(Boolean).join(" · ");
        return (
          line && {
            ...line,
            place,
            dash: place + (pairs.length > 1 ? 4 * at : 0),
            key: `${pair.run} ${pair.rank} ${field}`,
            label,
          }
        );
      }),
    )
    .filter((line) => line && (!spec.isStacked || line.mean.some((value) => value > 0)));
}

function exports() {
  const chosen = choice(runs ?? []);
  const range =
    chosen.from !== null && ["time", "step"].includes(chosen.x)
      ? { from: chosen.from, to: chosen.to, x: chosen.x }
      : null;
  return [...new Set(chosenPairs().map(({ run }) => run))].flatMap((run) => [
    { title: run, parameters: { run } },
    ...(range ? [{ title: `${run}, what is shown`, parameters: { run, ...range } }] : []),
  ]);
}
