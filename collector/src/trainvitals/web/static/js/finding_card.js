// An open finding: what, where, since when; what to do first; what follows from it; and what was done about it here.
// `findingFacts` is that part of it which one that is over has too.

import * as address from "./address.js";
import { keep, make, put, say, sayWithCode, show } from "./dom.js";
import { where } from "./findings.js";
import { duration, integer, isNumber, plain, secondsOf, time } from "./format.js";
import { silenceDialog } from "./silence_dialog.js";
import { badge, sign } from "./signs.js";

const SOURCES = { agent: "found by the agent", prometheus: "found by Prometheus" };
const BEFORE_SECONDS = 1800;
const AROUND_STEPS = 200;
// More letters than about three lines have.
const LONG = 300;

export function findingCard(first, act) {
  const severity = badge(first.severity);
  const parts = {
    place: make("span", { class: "soft" }),
    what: make("p", { class: "what" }),
    more: make("button", { type: "button", class: "small more", hidden: true }, "More"),
    facts: findingFacts(),
    links: make("p", { class: "links" }),
    acts: make("p", { class: "acts" }),
  };
  let now = first;
  const known = (method, is) => {
    const members = now.members.filter((one) => Boolean(one.acknowledged) === is);
    act(
      method,
      "/api/v1/findings/acknowledge",
      members.map(({ id }) => ({ id })),
    );
  };
  const acknowledge = make(
    "button",
    { type: "button", class: "main", click: () => known("POST", false) },
    "Acknowledge",
  );
  const undo = make("button", { type: "button", click: () => known("DELETE", true) }, "Take back");
  const silence = make("button", { type: "button", click: () => silenceDialog(now, act) }, "Silence…");
  parts.acts.append(acknowledge, undo, silence);
  parts.links.append(...linksOf(first));
  parts.more.addEventListener("click", () => {
    parts.isWhole = !parts.isWhole;
    shorten(parts);
  });
  const card = make(
    "li",
    { class: "card finding", id: `finding-${first.id}` },
    make("div", { class: "head" }, severity, make("h3", {}, first.kind), parts.place),
    parts.what,
    parts.more,
    parts.facts.elements,
    make("div", { class: "foot" }, parts.links, parts.acts),
  );
  card.update = (finding) => {
    now = finding;
    severity.update(finding.severity);
    put(card, "data-state", finding.silenced || finding.acknowledged ? "quiet" : finding.severity);
    update(parts, finding);
    show(acknowledge, !finding.acknowledged);
    show(undo, finding.acknowledged);
    show(silence, !finding.silenced);
  };
  return card;
}

function update(parts, finding) {
  const opened = secondsOf(finding.opened);
  say(
    parts.place,
    [where(finding), `since ${time(opened)}, ${duration(Date.now() / 1000 - opened)}`].filter(Boolean).join(" · "),
  );
  say(parts.what, finding.what);
  shorten(parts);
  parts.facts.update(finding);
}

// An error's words may be a page long.
function shorten({ what, more, isWhole }) {
  const isLong = what.textContent.length > LONG;
  what.classList.toggle("short", isLong && !isWhole);
  show(more, isLong);
  say(more, isWhole ? "Less" : "More");
  put(more, "aria-expanded", String(Boolean(isWhole)));
}

export function findingFacts() {
  const todo = make("p", {});
  const evidence = make("ul", { class: "evidence" });
  const facts = make("p", { class: "soft" });
  const quiet = make("p", { class: "quiet" });
  return {
    elements: [todo, evidence, facts, quiet],
    update(finding) {
      sayWithCode(todo, finding.todo ? `What to do first: ${finding.todo}` : "");
      keep(evidence, finding.evidence ?? [], (one) => JSON.stringify(one), evidenceRow);
      say(facts, factWords(finding));
      say(quiet, quietWords(finding));
    },
  };
}

function evidenceRow(one) {
  const told = typeof one === "string" ? one : [one.kind, where(one), one.what].filter(Boolean).join(": ");
  return make("li", {}, sign(one.severity ?? "info"), make("span", {}, told));
}

function factWords(finding) {
  const value =
    finding.value === undefined
      ? ""
      : `value ${plain(finding.value)}${isNumber(finding.threshold) ? `, threshold ${plain(finding.threshold)}` : ""}`;
  const step = isNumber(finding.step) ? `step ${integer(finding.step)}` : "";
  return [SOURCES[finding.source] ?? finding.source, value, step].filter(Boolean).join(" · ");
}

function quietWords({ state, acknowledged, silenced }) {
  const note = (one) => (one.note ? `: “${one.note}”` : "");
  const known = acknowledged
    ? `Acknowledged ${time(secondsOf(acknowledged.at))}${acknowledged.by ? ` by ${acknowledged.by}` : ""}${note(acknowledged)}.${state === "open" ? " Nobody is told of it again." : ""}`
    : "";
  return [known, silenced ? `Silenced until ${time(secondsOf(silenced.until))}${note(silenced)}.` : ""]
    .filter(Boolean)
    .join(" ");
}

// Only what leads to the web is a link: an address may hold a script.
export function linksOf(finding) {
  const runbook = /^https?:\/\//.test(finding.runbook ?? "")
    ? [make("a", { href: finding.runbook, rel: "noreferrer" }, "Runbook")]
    : [];
  return [...runbook, ...charts(finding)];
}

function charts(finding) {
  const query = finding.run
    ? aroundStep(finding)
    : finding.gpu || finding.uuid || !finding.part
      ? aroundTime(finding)
      : null;
  return query ? [make("a", { href: `/?${query}`, click: (event) => follow(event, query) }, "Show in the charts")] : [];
}

function aroundStep({ run, rank, step }) {
  const query = new URLSearchParams({ view: "training", run });
  if (rank !== undefined && rank !== "") query.set("rank", rank);
  if (isNumber(step)) {
    query.set("from", Math.max(0, step - AROUND_STEPS));
    query.set("to", step + AROUND_STEPS);
  }
  return query;
}

function aroundTime({ gpu, opened, closed }) {
  const begin = secondsOf(opened) - BEFORE_SECONDS;
  const end = Math.min(Date.now() / 1000, (closed ? secondsOf(closed) : Date.now() / 1000) + BEFORE_SECONDS);
  const query = new URLSearchParams({
    view: "system",
    from: begin.toFixed(0),
    to: Math.max(end, begin + 600).toFixed(0),
  });
  if (gpu) query.set("gpu", gpu);
  return query;
}

function follow(event, query) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  address.goTo(query.get("view"), query);
}
