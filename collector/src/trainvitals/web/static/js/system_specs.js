// The charts of GPUs and host, and what a field's name says of its unit.

import {
  bytes,
  celsius,
  duration,
  hertz,
  large,
  mebibytes,
  percent,
  perSecond,
  plain,
  share,
  watts,
  words,
} from "./format.js";

export const RANGES = [
  ["5 min", 300],
  ["15 min", 900],
  ["1 h", 3600],
  ["6 h", 21600],
  ["24 h", 86400],
  ["7 d", 604800],
  ["30 d", 2592000],
];
export const USUAL_RANGE = 3600;
export const LONGEST_RANGE = 31 * 86400;

const HUNDRED = [0, 100];

export const GPU_CHARTS = [
  { id: "use", title: "Utilisation", field: "utilization_percent", words: percent, span: HUNDRED, axisWords: percent },
  { id: "memory", title: "Memory", field: "memory_percent", words: percent, span: HUNDRED, axisWords: percent },
  { id: "heat", title: "Temperature", field: "temperature_celsius", words: celsius, axisWords: celsius },
  { id: "power", title: "Power", field: "power_draw_watts", words: watts, axisWords: watts, fromZero: true },
];
export const HOST_CHARTS = [
  {
    id: "cpu",
    title: "Processors",
    field: "cpu_usage_percent",
    words: percent,
    span: HUNDRED,
    axisWords: percent,
    isHost: true,
  },
  {
    id: "host-memory",
    title: "Host memory",
    field: "memory_used_bytes",
    words: bytes,
    axisWords: bytes,
    isBinary: true,
    fromZero: true,
    isHost: true,
  },
  {
    id: "iowait",
    title: "Waiting for disks",
    field: "cpu_iowait_ratio",
    words: share,
    axisWords: share,
    fromZero: true,
    least: 0.01,
    isHost: true,
  },
  {
    id: "disk-busy",
    title: "Busiest disk",
    field: "disk_busy_ratio",
    words: share,
    axisWords: share,
    fromZero: true,
    least: 0.01,
    isHost: true,
  },
  carried("disk-read", "Read from disks", "disk_read_bytes_per_second"),
  carried("disk-written", "Written to disks", "disk_written_bytes_per_second"),
  carried("network-in", "Received by network", "network_receive_bytes_per_second"),
  carried("network-out", "Sent by network", "network_transmit_bytes_per_second"),
];

function carried(id, title, field) {
  return { id, title, field, words: perSecond, axisWords: shortly, fromZero: true, least: 1, isHost: true };
}

const SHOWN = new Set([...GPU_CHARTS, ...HOST_CHARTS].map((chart) => chart.field));
const CONSTANT =
  /_(total_(mb|bytes)|count|max|enabled|default_watts|slowdown_celsius|shutdown_celsius|expected_count|instances|timestamp_seconds|links)$|^(gpu|memory_total|clock_max|pcie_.*_max|boot_|.*price)/;

// What else a GPU or the host tells, as "gpu:clock_hertz_sm".
export function otherFields(snapshot) {
  const numbers = (values, kind) =>
    Object.entries(values ?? {})
      .filter(([name, value]) => typeof value === "number" && !SHOWN.has(name) && !CONSTANT.test(name))
      .map(([name]) => `${kind}:${name}`);
  return [...numbers(snapshot?.gpus[0], "gpu"), ...numbers(snapshot?.host, "host")].sort();
}

export function ofField(name) {
  const [kind, field] = name.split(/:(.*)/);
  const isCounter = field.includes("_total");
  const told = unitOf(field);
  const counted = (value) => `${told(value)}${isCounter ? "/s" : ""}`;
  const title = `${kind === "host" ? "Host: " : ""}${words(field.replace("_total", ""))}${isCounter ? ", a second" : ""}`;
  return {
    id: `more-${name.replaceAll(/\W+/g, "-")}`,
    title,
    field,
    isHost: kind === "host",
    isCounter,
    words: counted,
    axisWords: told === hertz ? gigahertz : told === perSecond ? shortly : counted,
    isBinary: told === bytes || told === mebibytes,
    least: told === share ? 0.01 : 0,
  };
}

// Short enough for an axis.
const gigahertz = (value) => `${Number((value / 1e9).toFixed(3))} GHz`;
function shortly(value) {
  return perSecond(value).replace(/(\.0)? /, "");
}

function unitOf(field) {
  if (/bytes_per_second(_|$)/.test(field)) return perSecond;
  if (field.includes("bytes")) return bytes;
  if (field.includes("celsius")) return celsius;
  if (field.includes("hertz")) return hertz;
  if (field.includes("watts")) return watts;
  if (/_mb(_|$)/.test(field)) return mebibytes;
  if (field.includes("percent")) return percent;
  if (field.includes("ratio")) return share;
  if (field.includes("joules")) return (value) => `${large(value)} J`;
  return field.endsWith("seconds") ? duration : plain;
}
