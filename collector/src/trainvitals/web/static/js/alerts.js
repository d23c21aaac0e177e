// What is wrong and what was: evidence, what to do first, the runbook; acknowledged or silenced here.

import * as address from "./address.js";
import { get, wordsOf } from "./api.js";
import { find, keep, make, say, show } from "./dom.js";
import { findingCard } from "./finding_card.js";
import { grouped } from "./finding_groups.js";
import * as findings from "./findings.js";
import { duration, secondsOf, time } from "./format.js";
import { pastTable } from "./past_table.js";
import { sign } from "./signs.js";

const PAST = 200;

let parts = null;
let seen = "";
let silences = [];

export function build(root) {
  const section = (id, title, ...children) =>
    make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), ...children);
  parts = {
    list: make("ul", { class: "findings" }),
    none: make("p", { class: "empty", hidden: true }, sign("well"), "No finding is open."),
    problem: make("p", { class: "banner", role: "alert", hidden: true }),
    told: make("p", { class: "soft told", hidden: true }),
    silences: make("ul", { class: "silences" }),
    silencesTold: make("p", { class: "soft", hidden: true }),
    past: pastTable(),
  };
  parts.silenced = section("silenced", "Silences", parts.silences, parts.silencesTold);
  root.append(
    parts.problem,
    section("open", "Open", parts.none, parts.list, parts.told),
    parts.silenced,
    section("past", "Past", parts.past.element),
  );
  findings.onChange(() => {
    paint();
    askForRest();
  });
}

export function look() {
  if (findings.isTold()) askForRest();
  paint();
}

export function update(snapshot) {
  findings.watch(snapshot);
}

// An act of the viewer's, and whether it was taken: what the agent answers to it is said where it stands.
export async function act(method, path, bodies = [{}]) {
  let isTaken = true;
  try {
    const answer = await findings.act(method, path, bodies);
    complain(answer.problem ?? "");
  } catch (error) {
    isTaken = false;
    complain(wordsOf(error));
  }
  await askForRest();
  return isTaken;
}

function complain(words) {
  say(parts.problem, words);
  show(parts.problem, words);
}

function paint() {
  const open = findings.open();
  const told = [findings.failure(), ...findings.problems()].filter(Boolean).join(" ");
  say(parts.told, told);
  show(parts.told, told);
  show(parts.none, findings.isNone());
  keep(
    parts.list,
    open,
    (finding) => finding.id,
    (finding) => findingCard(finding, act),
  );
  pointOut();
}

// A link to one finding, open or past: it is shown once, and then the page is the reader's.
function pointOut() {
  const id = address.one("finding");
  const place = id && id !== seen ? (openCard(id) ?? parts.past.open(id)) : null;
  if (!place) return;
  seen = id;
  place.classList.add("meant");
  place.scrollIntoView({ block: "center" });
}

function openCard(id) {
  const group = findings.open().find(({ members }) => members.some((one) => one.id === id));
  return parts.list.kept?.get(group?.id);
}

const askForRest = () => Promise.all([askForPast(), askForSilences()]);

async function askForPast() {
  try {
    const told = await get("/api/v1/findings", { state: "past", limit: PAST });
    parts.past.set(grouped(told.findings), told.more ?? 0);
    pointOut();
  } catch (error) {
    parts.past.fail(`What is past could not be asked for. ${wordsOf(error)}`);
  }
}

async function askForSilences() {
  let problem = "";
  try {
    const told = await get("/api/v1/silences");
    silences = told.silences.filter((silence) => silence.state !== "expired");
  } catch (error) {
    problem = `Silences could not be asked for. ${wordsOf(error)}`;
  }
  say(parts.silencesTold, problem);
  show(parts.silencesTold, problem);
  show(parts.silenced, silences.length || problem);
  keep(parts.silences, silences, (silence) => silence.id, silenceRow);
}

function silenceRow(first) {
  const until = make("span", {});
  const end = make(
    "button",
    { type: "button", click: () => act("DELETE", `/api/v1/silences/${encodeURIComponent(first.id)}`) },
    "End it",
  );
  const row = make(
    "li",
    { class: "card" },
    sign("quiet"),
    make("b", {}, first.kind || "Everything"),
    make("span", { class: "soft" }, findings.where(first)),
    until,
    make("span", { class: "note" }, first.note ? `“${first.note}”` : ""),
    end,
  );
  row.update = (silence) =>
    say(
      until,
      `until ${time(secondsOf(silence.until))}, ${duration(secondsOf(silence.until) - Date.now() / 1000)} left`,
    );
  return row;
}

export const leave = () => {
  find("alerts")
    .querySelectorAll(".meant")
    .forEach((card) => card.classList.remove("meant"));
  seen = "";
};
