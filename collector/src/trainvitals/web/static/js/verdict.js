// Is everything well: the verdict of the agent in words, or that nobody answers. Title and icon of the tab say it too.

import { announce, find, put, say } from "./dom.js";
import { ago } from "./format.js";
import { WORDS, badge } from "./signs.js";

const MARKS = { well: "✓", ticket: "▲", page: "✖", problem: "!", starting: "…", lost: "?" };
const LONG = 110;

let shown = "";
let place = null;

export function build() {
  place = badge("starting");
  find("verdict").prepend(place);
}

export function tell(snapshot) {
  paint(snapshot.verdict, snapshot.node);
  put(document.body, "data-lost", false);
}

export function tellLost(why, silentSeconds, node) {
  const since = silentSeconds >= 2 ? `nothing heard for ${ago(silentSeconds).replace(" ago", "")}; ` : "";
  const words = why || `Connection lost: ${since}what is shown is old. Trying again…`;
  paint({ state: "lost", words, first: words, rest: "" }, node);
  put(document.body, "data-lost", true);
}

// What is worst, or else what runs, is read from afar; the rest stands below it.
function paint({ state, words, first, rest }, node) {
  place.update(state, WORDS[state]);
  say(find("verdict-first"), first);
  say(find("verdict-rest"), rest);
  put(find("verdict"), "data-state", state);
  put(find("verdict"), "data-long", first.length > LONG);
  document.title = `${MARKS[state] ?? ""} ${WORDS[state] ?? state} · ${node || "TrainVitals"}`;
  put(find("icon"), "href", `/static/icons/${state in MARKS ? state : "problem"}.svg`);
  // The words change with every step: what is read out is the change of state.
  if (state !== shown && shown) announce(`${WORDS[state]}: ${words}`);
  shown = state;
}
