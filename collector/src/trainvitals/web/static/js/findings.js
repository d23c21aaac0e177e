// What is wrong, and what was: asked for when a snapshot shows that it changed, and after every act of one's own.

import { get, send, wordsOf } from "./api.js";
import { grouped } from "./finding_groups.js";

const EVERY_SECONDS = 30;
const NAMED = 8;
const listeners = [];

let known = [];
let told = [];
let isAnswered = false;
let problem = "";
let signature = "";
let askedAt = -Infinity;

// As people count them.
export const open = () => grouped(known);
// What the agent says of its own keeping quiet, as that Alertmanager does not know of it.
export const problems = () => told;
// Why what is open is not known now, or not as it is now.
export const failure = () => problem;
// What is asked for comes, or does not, with the first snapshot.
export const isTold = () => isAnswered || Boolean(problem);
// Without an answer nobody knows that nothing is open.
export const isNone = () => isAnswered && !problem && !known.length;
export const onChange = (listener) => listeners.push(listener);

export function watch(snapshot) {
  const next = JSON.stringify(snapshot.alerts.firing.map(signs));
  const isOld = performance.now() - askedAt > 1000 * EVERY_SECONDS;
  if (next === signature && !isOld) return;
  signature = next;
  refresh();
}

// What somebody did about one is seen here as soon as its end.
const signs = (alert) => [
  alert.id,
  alert.name,
  alert.where,
  alert.starts,
  alert.labels.severity,
  alert.acknowledged,
  alert.silenced,
];

export async function refresh() {
  askedAt = performance.now();
  try {
    const answer = await get("/api/v1/findings", { state: "open" });
    [known, told] = [answer.findings, answer.problems ?? []];
    isAnswered = true;
    problem = "";
  } catch (error) {
    problem = `What is open could not be asked for. ${wordsOf(error)}`;
  }
  for (const listener of listeners) listener();
}

// Of several the answer that tells of a problem, where there is one.
export async function act(method, path, bodies) {
  try {
    const answers = [];
    for (const body of bodies) answers.push(await send(method, path, body));
    return answers.find((answer) => answer.problem) ?? answers[0];
  } finally {
    await refresh();
  }
}

export const ofGpu = (gpu) =>
  known.filter((finding) => (finding.uuid ? finding.uuid === gpu.uuid : finding.gpu === String(gpu.gpu)));
export const ofRun = (run) => known.filter((finding) => finding.run === run);

// Where it is, in words: "run gemma, rank 3, GPU 1", "run gemma, ranks 0, 1, 2".
export function where(finding) {
  const machine = finding.source && finding.source !== "agent" ? finding.instance : "";
  const parts = [
    ["run ", finding.run],
    several("rank", finding.ranks ?? [finding.rank]),
    several("GPU", finding.gpus ?? [finding.gpu]),
    ["", finding.part],
    ["", machine],
  ];
  return parts
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => name + value)
    .join(", ");
}

function several(name, values) {
  if (values.length < 2) return [`${name} `, values[0]];
  const rest = values.length - NAMED;
  return [`${name}s `, `${values.slice(0, NAMED).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`];
}
