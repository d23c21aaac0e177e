// The series of what is chosen, asked for anew when the choice changes, and now and then while a run lives.

import { get, ofRun, wordsOf } from "./api.js";
import { secondsOf } from "./format.js";
import { fit, smoothed } from "./plot_data.js";

// About as many as a chart is wide; a zoom asks anew.
const POINTS = 310;
const DIGITS = 4;
const LEAST_PAUSE_SECONDS = 2;
// A slow answer is asked for less often: a tenth of the time may go into waiting for it.
const PAUSE_PER_SECOND = 10;

export class TrainingData {
  constructor(onChange) {
    Object.assign(this, {
      onChange,
      answers: new Map(),
      events: new Map(),
      error: "",
      missing: 0,
      older: 0,
      key: "",
      dueAt: 0,
      isAsking: false,
    });
  }

  // `key` says what is asked for: the answers to another question are not waited for.
  async ask(pairs, fields, question, isForced = false) {
    const key = JSON.stringify([pairs.map(({ run, rank }) => [run, rank]), fields, question]);
    if (key === this.key && !isForced) return;
    this.key = key;
    this.dropped?.abort();
    this.dropped = new AbortController();
    const { signal } = this.dropped;
    const began = performance.now();
    this.isAsking = true;
    try {
      await this.load(pairs, fields, question, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.error = wordsOf(error);
    }
    this.isAsking = false;
    const took = (performance.now() - began) / 1000;
    this.dueAt = performance.now() / 1000 + Math.max(LEAST_PAUSE_SECONDS, PAUSE_PER_SECOND * took);
    this.onChange();
  }

  get isDue() {
    return !this.isAsking && performance.now() / 1000 >= this.dueAt;
  }

  // A run that has no such axis, or is gone, keeps the others from nothing.
  async load(pairs, fields, { x, from, to }, signal) {
    const asked = { x, from, to, points: POINTS, digits: DIGITS };
    const runs = [...new Set(pairs.map(({ run }) => run))];
    const [series, happened] = await Promise.all([
      Promise.allSettled(
        pairs.map(({ run, rank, info }) =>
          get(ofRun(run, "series"), { ...asked, rank, field: wanted(fields, info) }, signal),
        ),
      ),
      Promise.allSettled(runs.map((run) => get(ofRun(run, "events"), {}, signal))),
    ]);
    signal.throwIfAborted();
    this.answers = new Map(pairs.map((pair, place) => [keyOf(pair), series[place].value]));
    this.events = new Map(runs.map((run, place) => [run, happened[place].value?.events ?? []]));
    this.older = happened.reduce((sum, { value }) => sum + (value?.more ?? 0), 0);
    this.error = series
      .map(({ reason }, place) => reason && `${pairs[place].label}: ${wordsOf(reason)}`)
      .filter(Boolean)
      .join(" ");
    this.missing = series.reduce((sum, { value }) => sum + (value?.missing_bytes ?? 0), 0);
  }

  // One line of a chart, or null where the run never told that field.
  line(pair, field, { smoothing, x }) {
    const answer = this.answers.get(keyOf(pair));
    if (answer?.x !== x || !Object.hasOwn(answer.fields, field)) return null;
    const fitted = fit(answer.fields[field], answer.x_values, answer.raw, x === "time");
    return { ...fitted, smooth: smoothed(fitted.mean, smoothing) };
  }

  // What happened, put on the axis that is looked at.
  marks(pairs, x) {
    const found = [...new Set(pairs.map(({ run }) => run))].flatMap((run) => {
      const pair = pairs.find((each) => each.run === run);
      const place = placing(x, pair, this.answers.get(keyOf(pair)));
      return once(this.events.get(run) ?? []).map((event) => ({ ...event, run, x: place(event) }));
    });
    return found.filter((event) => Number.isFinite(event.x)).sort((a, b) => a.x - b.x);
  }
}

// What every rank told at the same step happened once.
const once = (events) => [
  ...new Map(events.map((event) => [`${event.step} ${event.kind} ${event.text}`, event])).values(),
];

const keyOf = ({ run, rank }) => `${rank} ${run}`;

// A field that a run never told is not asked for.
function wanted(fields, info) {
  const there = fields.filter((field) => !info?.fields?.length || info.fields.includes(field));
  return there.length ? there : ["loss"];
}

function placing(x, { info }, answer) {
  if (x === "step") return (event) => event.step ?? NaN;
  if (x === "time") return (event) => secondsOf(event.timestamp);
  if (x === "elapsed") return (event) => secondsOf(event.timestamp) - secondsOf(info?.start);
  const { steps = [], x_values: xs = [] } = answer ?? {};
  return (event) => xs[steps.findIndex((step) => step >= event.step)] ?? NaN;
}
