// Findings that are over, the newest first, with a filter for those of many weeks. Each opens to what was known of it.

import { keep, make, say, show } from "./dom.js";
import { findingFacts, linksOf } from "./finding_card.js";
import { where } from "./findings.js";
import { UNKNOWN, duration, secondsOf, time } from "./format.js";
import { WORDS, badge } from "./signs.js";

export function pastTable() {
  let findings = null;
  let problem = "";
  const filter = make("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": "Filter past findings",
    input: () => paint(),
  });
  const severity = make(
    "select",
    { "aria-label": "Severity", change: () => paint() },
    make("option", { value: "" }, "Every severity"),
    ["page", "ticket", "info"].map((value) => make("option", { value }, WORDS[value])),
  );
  const body = make("tbody", {});
  const table = frameOf(body);
  const words = make("p", { class: "soft" });
  const element = make("div", {}, make("div", { class: "controls" }, filter, severity), table, words);
  let more = 0;
  const paint = () => {
    const text = filter.value.toLowerCase().trim();
    const found = (findings ?? []).filter(
      (one) =>
        (!severity.value || one.severity === severity.value) &&
        `${one.kind} ${where(one)} ${one.what}`.toLowerCase().includes(text),
    );
    keep(body, found, (one) => one.id, row);
    show(table, found.length);
    say(words, [problem, wordsOf(findings, found, more, problem)].filter(Boolean).join(" "));
  };
  paint();
  return {
    element,
    set: (next, left) => {
      [findings, more, problem] = [next, left, ""];
      paint();
    },
    fail: (why) => {
      problem = why;
      paint();
    },
    // The row of a finding, or of the group that it is in.
    open: (id) => {
      const found = (findings ?? []).find(({ members }) => members.some((one) => one.id === id));
      const place = body.kept?.get(found?.id);
      if (place) place.querySelector("details").open = true;
      return place;
    },
  };
}

function frameOf(body) {
  const heads = ["What", "Where", "Began", "Lasted", ""].map((name) =>
    make("th", { scope: "col" }, name ? name : make("span", { class: "hidden" }, "Links")),
  );
  return make(
    "div",
    { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Past findings" },
    make("table", { class: "past" }, make("thead", {}, make("tr", {}, heads)), body),
  );
}

function wordsOf(findings, found, more, problem) {
  if (!findings) return problem ? "" : "Asking…";
  if (found.length) return more ? `${more} older ones are in the journal.` : "";
  return findings.length ? "None of them." : "There were none.";
}

function row(finding) {
  const opened = secondsOf(finding.opened);
  const [kind, facts] = [badge(finding.severity, finding.kind), findingFacts()];
  const toggle = (event) => event.target.open && facts.update(finding);
  const lasted = finding.closed ? duration(secondsOf(finding.closed) - opened) : UNKNOWN;
  return make(
    "tr",
    {},
    make(
      "th",
      { scope: "row", class: "wrap" },
      make("details", { toggle }, make("summary", {}, kind, make("span", { class: "what" }, finding.what)), facts.elements),
    ),
    make("td", { class: "wrap" }, where(finding) || "this machine"),
    make("td", {}, time(opened)),
    make("td", {}, lasted),
    make("td", { class: "links" }, linksOf(finding)),
  );
}
