// The runs of the journal, the newest first: a name shows that run alone, a box adds it to those that are shown.

import { keep, make, put, say, show } from "./dom.js";
import { integer, plain, secondsOf, time } from "./format.js";
import { swatch } from "./palette.js";
import { badge, ofRun } from "./signs.js";
import { change } from "./training_choice.js";

export class RunPicker {
  constructor() {
    this.filter = make("input", {
      type: "search",
      placeholder: "Filter (/)",
      "aria-label": "Filter runs by name",
      input: () => this.paint(),
    });
    this.list = make("ul", { class: "picks" });
    this.more = make("p", { class: "soft" });
    this.title = make("summary", {}, "Runs");
    const wide = matchMedia("(min-width: 70rem)");
    this.element = make(
      "details",
      { class: "card picker", open: wide.matches },
      this.title,
      this.filter,
      this.list,
      this.more,
    );
    wide.addEventListener("change", () => (this.element.open = wide.matches));
  }

  // `chosen` are names of runs, `pairs` the lines that are drawn of them.
  set(runs, more, chosen, pairs) {
    Object.assign(this, { runs, left: more, chosen, pairs });
    this.paint();
  }

  paint() {
    const words = this.filter.value.toLowerCase().trim();
    const found = (this.runs ?? []).filter((run) =>
      `${run.name} ${run.run} ${run.status}`.toLowerCase().includes(words),
    );
    const drawn = new Map((this.pairs ?? []).map((pair) => [pair.run, pair]).reverse());
    keep(
      this.list,
      found.map((run) => ({ run, pair: drawn.get(run.run) })),
      ({ run }) => run.run,
      (item) => this.entry(item),
    );
    say(this.title, drawn.size > 1 ? `Runs: ${drawn.size} shown` : "Runs");
    say(this.more, this.left ? `${this.left} older runs are in the journal.` : found.length ? "" : "No such run.");
    show(this.more, this.more.textContent);
  }

  entry({ run: { run, name } }) {
    const shownName = name || run;
    const box = make("input", {
      type: "checkbox",
      "aria-label": `Show ${shownName}`,
      change: () => this.toggle(run, box.checked),
    });
    const link = make(
      "a",
      {
        class: "ellipsis",
        href: `/?view=training&run=${encodeURIComponent(run)}`,
        title: shownName,
        click: (event) => this.alone(event, run),
      },
      shownName,
    );
    const state = badge("well");
    const facts = make("span", { class: "soft" });
    const mark = make("span", { class: "mark" });
    const entry = make(
      "li",
      {},
      box,
      make("div", {}, make("div", { class: "name" }, link, mark), make("div", { class: "about" }, state, facts)),
    );
    entry.update = ({ run: next, pair }) => {
      box.checked = this.chosen.includes(run);
      state.update(ofRun(next.status), next.status);
      say(facts, factWords(next, shownName));
      if (mark.dataset.place === String(pair?.place ?? "")) return;
      put(mark, "data-place", String(pair?.place ?? ""));
      mark.replaceChildren(...(pair ? [swatch(pair.place)] : []));
    };
    return entry;
  }

  alone(event, run) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    change({ run: [run], from: null, to: null, rank: null });
  }

  toggle(run, is) {
    const next = is ? [...this.chosen, run] : this.chosen.filter((each) => each !== run);
    if (next.length) change({ run: next });
    else this.paint();
  }
}

function factWords(run, shownName) {
  const id = run.run === shownName ? "" : run.run;
  return [
    id,
    run.live ? `step ${integer(run.steps)}` : `${integer(run.steps)} steps`,
    `loss ${plain(run.loss)}`,
    run.start && time(secondsOf(run.start)),
  ]
    .filter(Boolean)
    .join(" · ");
}
