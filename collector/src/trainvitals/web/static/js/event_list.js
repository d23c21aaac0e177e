// What happened to the runs that are shown, the newest first: the marks of the charts in words.

import { make, say } from "./dom.js";
import { integer, known, secondsOf, time } from "./format.js";
import { glyphOf } from "./marks.js";
import { badge } from "./signs.js";

const SHOWN = 200;

export class EventList {
  constructor() {
    this.title = make("summary", {}, "Events");
    this.place = make("div", {});
    this.element = make("details", { class: "card events" }, this.title, this.place);
    this.element.addEventListener("toggle", () => this.paint());
    this.events = [];
  }

  // `older` are those that are too many to be asked for.
  set(events, older, isOfSeveral) {
    Object.assign(this, { events, isOfSeveral });
    const rest = older ? `; ${integer(older)} older ones have no mark` : "";
    say(this.title, events.length ? `Events: ${integer(events.length)}${rest}` : "No events");
    this.paint();
  }

  paint() {
    const key = JSON.stringify([this.element.open, this.events.length, this.events.at(-1)]);
    if (key === this.key) return;
    this.key = key;
    if (!this.element.open) return this.place.replaceChildren();
    const newest = [...this.events].sort((a, b) => secondsOf(b.timestamp) - secondsOf(a.timestamp)).slice(0, SHOWN);
    const head = ["When", "Step", "What", "More"].map((name) => make("th", { scope: "col" }, name));
    return this.place.replaceChildren(
      make(
        "div",
        { class: "scroll values", tabindex: "0", role: "region", "aria-label": "Events" },
        make(
          "table",
          {},
          make("thead", {}, make("tr", {}, head)),
          make(
            "tbody",
            {},
            newest.map((event) => this.row(event)),
          ),
        ),
      ),
    );
  }

  row(event) {
    const kind = event.severity
      ? badge(event.severity, event.kind)
      : make("span", {}, `${glyphOf(event)} ${event.kind}`);
    const who = [this.isOfSeveral ? event.run : "", known(event.rank, (rank) => `rank ${rank}`).replace("–", "")]
      .filter(Boolean)
      .join(", ");
    return make(
      "tr",
      {},
      make("td", {}, time(secondsOf(event.timestamp))),
      make("td", {}, integer(event.step)),
      make("td", {}, kind),
      make("td", { class: "wrap" }, [who, event.text].filter(Boolean).join(": ")),
    );
  }
}
