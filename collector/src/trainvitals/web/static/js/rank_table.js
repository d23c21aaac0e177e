// Each rank of a run beside the others: where its steps' time goes, and which is the slowest.

import { get, ofRun, wordsOf } from "./api.js";
import { draw, keep, make, put, say, show } from "./dom.js";
import { UNKNOWN, integer, isNumber, seconds } from "./format.js";
import { sign } from "./signs.js";
import { change } from "./training_choice.js";

const EVERY_SECONDS = 5;
const DECISIVE = ["before_collective_seconds", "Before it waits for others", seconds];
const COLUMNS = [
  ["step", "Step", integer],
  ["step_seconds", "A step", seconds],
  ["data_wait_seconds", "Data wait", seconds],
  ["forward_seconds", "Forward", seconds],
  ["backward_seconds", "Backward", seconds],
  ["optimizer_seconds", "Optimizer", seconds],
];
// Without a straggler all ranks are about equally slow.
const NOTABLE = 1.05;
const NOTHING = { ranks: [], slowest: null };

export class RankTable {
  constructor() {
    Object.assign(this, { run: "", isLive: false, askedAt: -Infinity, told: NOTHING, problem: "" });
    // Until somebody chooses an order the slowest stands first, and the others by their numbers.
    Object.assign(this, { order: "", shown: [0] });
    this.mark = sign("well");
    this.words = make("span", {});
    this.body = make("tbody", {});
    const heads = [["rank", "Rank"], DECISIVE, ["host", "Host and GPU"], ...COLUMNS];
    this.heads = heads.map(([field, name]) => this.head(field, name));
    const [rank, decisive, ...others] = this.heads;
    const bars = make("th", { scope: "col" }, make("span", { class: "hidden" }, "Beside the slowest"));
    const table = make(
      "table",
      {},
      make("caption", { class: "hidden" }, "Ranks, medians of their last hundred steps"),
      make("thead", {}, make("tr", {}, rank, decisive, bars, others)),
      this.body,
    );
    this.content = make(
      "div",
      {},
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ranks beside each other" }, table),
      make(
        "p",
        { class: "soft" },
        "Medians of the last hundred steps. A box shows that rank in the charts. All ranks' steps take as long as the slowest's: what tells them apart is the time before they wait for each other.",
      ),
    );
    this.element = make(
      "section",
      { class: "card ranks", "aria-labelledby": "ranks-title", hidden: true },
      make("h2", { id: "ranks-title" }, "Ranks"),
      make("p", { class: "slowest" }, this.mark, this.words),
      this.content,
    );
  }

  head(field, name) {
    const button = make("button", { type: "button", class: "plain", click: () => this.sort(field) }, name);
    return make(
      "th",
      {
        scope: "col",
        class: field === "host" || field === "rank" ? "" : "number",
        "data-field": field,
        "aria-sort": "none",
      },
      button,
    );
  }

  sort(field) {
    this.order = this.order === field ? `-${field}` : field;
    for (const head of this.heads) {
      const isThis = head.dataset.field === field;
      put(head, "aria-sort", !isThis ? "none" : this.order.startsWith("-") ? "descending" : "ascending");
    }
    this.paint();
  }

  // Once more when the run has ended, for its last steps.
  set(run, shown, isLive) {
    const isOther = run !== this.run;
    const isDue = (isLive || this.problem) && performance.now() - this.askedAt > 1000 * EVERY_SECONDS;
    const hasEnded = this.isLive && !isLive;
    Object.assign(this, { run, shown, isLive });
    if (isOther) Object.assign(this, { told: NOTHING, problem: "" });
    if (isOther || isDue || hasEnded) this.ask(run);
    this.paint();
  }

  async ask(run) {
    this.askedAt = performance.now();
    const next = await get(ofRun(run, "ranks"), { last: 100 }).then(
      (told) => ({ told, problem: "" }),
      (error) => ({ problem: wordsOf(error) }),
    );
    if (run !== this.run) return;
    Object.assign(this, next);
    this.paint();
  }

  paint() {
    const { ranks, slowest } = this.told;
    show(this.element, ranks.length > 1 || this.problem);
    show(this.content, ranks.length);
    const isNotable = (slowest?.ratio ?? 1) >= NOTABLE;
    this.mark.update(this.problem ? "problem" : isNotable ? "ticket" : "well");
    say(this.words, this.problem || (slowest?.words ?? "No rank is known to be slower than the others."));
    const most = Math.max(...ranks.map((rank) => rank.before_collective_seconds ?? 0));
    const items = ranks
      .map((rank) => ({ rank, most, isSlowest: isNotable && rank.rank === slowest.rank }))
      .sort((a, b) => (this.order ? 0 : b.isSlowest - a.isSlowest) || this.compare(a.rank, b.rank));
    keep(
      this.body,
      items,
      ({ rank }) => rank.rank,
      ({ rank }) => this.row(rank),
    );
  }

  compare(a, b) {
    const field = this.order.replace("-", "") || "rank";
    const [one, other] = [a[field] ?? -Infinity, b[field] ?? -Infinity];
    const order = one < other ? -1 : one > other ? 1 : a.rank - b.rank;
    return this.order.startsWith("-") ? -order : order;
  }

  row({ rank: number }) {
    const box = make("input", {
      type: "checkbox",
      "aria-label": `Show rank ${number} in the charts`,
      change: () => this.toggle(number, box.checked),
    });
    const name = make("span", {});
    const place = make("td", {});
    const decisive = make("td", { class: "number" });
    const cells = COLUMNS.map(() => make("td", { class: "number" }));
    const bar = draw("rect", { height: 8, rx: 2 });
    const row = make(
      "tr",
      {},
      make("th", { scope: "row" }, make("label", {}, box, name)),
      decisive,
      make(
        "td",
        {},
        draw(
          "svg",
          { class: "rank-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
          bar,
        ),
      ),
      place,
      cells,
    );
    row.update = ({ rank, most, isSlowest }) => {
      box.checked = this.shown.includes(number);
      say(name, `${number}${isSlowest ? " slowest" : ""}`);
      put(row, "class", isSlowest ? "slow" : null);
      say(
        place,
        [rank.host, rank.gpus?.length ? `GPU ${rank.gpus.join(", ")}` : ""].filter(Boolean).join(" · ") || UNKNOWN,
      );
      say(decisive, DECISIVE[2](rank[DECISIVE[0]]));
      COLUMNS.forEach(([field, , words], at) => say(cells[at], words(rank[field])));
      put(
        bar,
        "width",
        isNumber(rank.before_collective_seconds) && most > 0 ? (100 * rank.before_collective_seconds) / most : 0,
      );
    };
    return row;
  }

  toggle(rank, is) {
    const next = is ? [...this.shown, rank] : this.shown.filter((each) => each !== rank);
    if (next.length) change({ rank: next.sort((a, b) => a - b).join(",") });
    else this.paint();
  }
}
