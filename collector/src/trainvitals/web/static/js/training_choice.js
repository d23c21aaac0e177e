// What of which runs is looked at, as the address says it; where it says nothing, the run that lives or was last.

import * as address from "./address.js";
import { AXES } from "./training_specs.js";

const MOST_LINES = 8;
const SMOOTHING = 0.6;
// So many of what is left out are named.
const NAMED = 4;

let looked = [];

export function choice(runs) {
  const named = address.all("run");
  const chosen = (looked = named.length ? [...new Set(named)] : usual(runs));
  const x = Object.hasOwn(AXES, address.one("x")) ? address.one("x") : "step";
  const smoothing = address.numberOf("smooth");
  return {
    runs: chosen,
    x,
    ranks: ranks(),
    fields: address.all("field"),
    isLog: address.one("log") === "1",
    smoothing: smoothing === null ? SMOOTHING : Math.min(0.99, Math.max(0, smoothing)),
    from: address.numberOf("from"),
    to: address.numberOf("to"),
  };
}

// Whoever chooses means the run that is seen: from then on the address names it.
export const change = (changes, quietly) => address.change({ run: looked, ...changes }, quietly);

function ranks() {
  const named = (address.one("rank") ?? "")
    .split(",")
    .filter((text) => /^\d+$/.test(text))
    .map(Number);
  return named.length ? [...new Set(named)] : [0];
}

function usual(runs) {
  const first = runs.find((run) => run.live) ?? runs[0];
  return first ? [first.run] : [];
}

// The lines of each chart: every run with every rank of it that was asked for, as many as can be told apart.
export const pairs = (chosen, runs) =>
  all(chosen, runs)
    .slice(0, MOST_LINES)
    .map((pair, place) => ({ ...pair, place }));

export function leftOutWords(chosen, runs) {
  const names = all(chosen, runs)
    .slice(MOST_LINES)
    .map(({ label }) => label);
  if (!names.length) return "";
  const rest = names.length > NAMED ? `; and ${names.length - NAMED} more` : "";
  return `At most ${MOST_LINES} lines are drawn. Left out: ${names.slice(0, NAMED).join("; ")}${rest}.`;
}

function all(chosen, runs) {
  const known = new Map(runs.map((run) => [run.run, run]));
  const severalRanks = chosen.ranks.length > 1 || chosen.ranks[0] !== 0;
  return chosen.runs
    .flatMap((run) => ranksOf(known.get(run), chosen.ranks).map((rank) => ({ run, rank, info: known.get(run) })))
    .map((pair) => ({ ...pair, label: labelOf(pair, severalRanks) }));
}

function ranksOf(info, ranks) {
  const there = info?.ranks?.length ? ranks.filter((rank) => info.ranks.includes(rank)) : ranks;
  return there.length ? there : [info.ranks[0]];
}

const labelOf = ({ run, rank, info }, severalRanks) =>
  `${info?.name && info.name !== run ? `${info.name} (${run})` : run}${severalRanks ? `, rank ${rank}` : ""}`;
