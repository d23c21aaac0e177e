// The charts of a training, and which fields of its lines each shows.

import { integer, large, mebibytes, plain, seconds } from "./format.js";

export const CHARTS = [
  { id: "loss", title: "Loss", fields: { loss: "" }, isTall: true, isWide: true, canLog: true, canSmooth: true },
  { id: "gradient-norm", title: "Gradient norm", fields: { gradient_norm: "" }, canLog: true, canSmooth: true },
  { id: "learning-rate", title: "Learning rate", fields: { learning_rate: "" } },
  {
    id: "samples",
    title: "Samples a second",
    fields: { throughput_samples_per_sec: "" },
    canSmooth: true,
    fromZero: true,
    words: large,
  },
  {
    id: "tokens",
    title: "Tokens a second",
    fields: { tokens_per_second: "" },
    canSmooth: true,
    fromZero: true,
    words: large,
  },
  {
    id: "step-time",
    title: "Time of a step",
    fields: { step_duration_seconds: "" },
    fromZero: true,
    words: seconds,
    axisWords: seconds,
    canSmooth: true,
  },
  {
    id: "split",
    title: "Step time by phase",
    isStacked: true,
    fromZero: true,
    words: seconds,
    axisWords: seconds,
    fields: {
      data_wait_seconds: "data wait",
      forward_seconds: "forward",
      backward_seconds: "backward",
      optimizer_seconds: "optimizer",
      checkpoint_seconds: "checkpoint",
      evaluation_seconds: "evaluation",
    },
  },
  {
    id: "memory",
    title: "GPU memory",
    fields: { memory_allocated_mb: "allocated", memory_reserved_mb: "reserved" },
    words: mebibytes,
    axisWords: mebibytes,
    isBinary: true,
    fromZero: true,
  },
];

const NOT_OFFERED = new Set(["timestamp", "step", ...CHARTS.flatMap((chart) => Object.keys(chart.fields))]);

// The others are shown where a run told of them.
export const ALWAYS = new Set(["loss"]);

// What else these runs told, to choose from.
export const otherFields = (runs) =>
  [...new Set(runs.flatMap((run) => run.fields ?? []))].filter((field) => !NOT_OFFERED.has(field)).sort();

// No two fields have the same, and a selector takes it.
const idOf = (field) => field.replaceAll(/\W/gu, (sign) => `-${sign.codePointAt(0).toString(16)}-`);

export const ofField = (field) => ({
  id: `field-${idOf(field)}`,
  title: field,
  fields: { [field]: "" },
  canSmooth: true,
  words: plain,
  isCustom: true,
});

export const AXES = {
  step: { kind: "count", title: "Step", name: "Step", least: 1, words: (x) => `step ${integer(Math.round(x))}` },
  time: { kind: "time", title: "Time", name: "Time", least: 5 },
  elapsed: { kind: "span", title: "Since the start", name: "Elapsed", least: 5 },
  tokens: { kind: "count", title: "Tokens", name: "Tokens", least: 1, words: (x) => `${large(x)} tokens` },
};
