// How a state looks: a sign of its own shape, a word and a colour, so that none has to be told by the colour.

import { draw, make, put, say } from "./dom.js";

const SHAPES = {
  well: "M3.5 8.5l3 3 6-7",
  info: "M3.5 1.8h9a1.7 1.7 0 0 1 1.7 1.7v9a1.7 1.7 0 0 1-1.7 1.7h-9a1.7 1.7 0 0 1-1.7-1.7v-9a1.7 1.7 0 0 1 1.7-1.7M8 7.4v3.8M8 4.8v.2",
  ticket: "M8 2L14.5 13.5H1.5zM8 6.5v3M8 11.6v.2",
  page: "M5 1.8h6l3.2 3.2v6L11 14.2H5L1.8 11V5zM5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8",
  problem: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13M8 4.5v4M8 11.2v.2",
  starting: "M3 8h.2M8 8h.2M13 8h.2",
  lost: "M2 6.5a9 9 0 0 1 12 0M5 9.5a5 5 0 0 1 6 0M8 12.5v.2M2.5 2.5l11 11",
  quiet: "M4 6v4h2.5L10 13V3L6.5 6zM12 6.5l3 3M15 6.5l-3 3",
};

export const WORDS = {
  well: "All well",
  info: "Note",
  ticket: "Ticket",
  page: "Page",
  problem: "Problem",
  starting: "Starting",
  lost: "No connection",
  quiet: "Silenced",
};

export const WEIGHT = { page: 3, ticket: 2, info: 1 };

export function sign(state) {
  const path = draw("path", { d: SHAPES[state] ?? SHAPES.problem });
  const image = draw("svg", { class: `sign ${state}`, viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
  image.update = (next) => {
    put(image, "class", `sign ${next}`);
    put(path, "d", SHAPES[next] ?? SHAPES.problem);
  };
  return image;
}

// A sign with its word.
export function badge(state, text = WORDS[state]) {
  const image = sign(state);
  const word = make("span", {}, text);
  const element = make("span", { class: `badge ${state}` }, image, word);
  element.update = (next, nextText = WORDS[next]) => {
    put(element, "class", `badge ${next}`);
    image.update(next);
    say(word, nextText);
  };
  return element;
}

const RUN_SIGNS = { running: "well", finished: "well", crashed: "page", killed: "page", preempted: "ticket" };

export const ofRun = (status) => RUN_SIGNS[status] ?? "problem";

// As the agent's verdict has it: what was silenced makes nothing red.
export const heard = (findings) => findings.filter(({ silenced }) => !silenced);
export const worst = (findings) =>
  heard(findings).reduce((found, { severity }) => ((WEIGHT[severity] ?? 0) > (WEIGHT[found] ?? 0) ? severity : found), "");
