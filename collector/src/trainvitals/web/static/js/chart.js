// A chart: a plot with its title, what the cursor points at, its values as a table, and itself as a picture.

import { valueTable } from "./chart_table.js";
import { keep, make, put, say, show } from "./dom.js";
import { UNKNOWN, isNumber, plain } from "./format.js";
import { eventAt, glyphOf } from "./marks.js";
import { classOf, swatch } from "./palette.js";
import { columns, nearest, positive, stacked } from "./plot_data.js";
import { isMissing } from "./plot_library.js";
import { options } from "./plot_options.js";
import { savePicture } from "./picture.js";

const SHOWN_LABELS = 9;

export class Chart {
  // `spec`: {id, title, words, height, span, fromZero, isStacked, axisWords}
  constructor(group, spec) {
    Object.assign(this, {
      group,
      spec,
      lines: [],
      marks: [],
      isLog: false,
      isAwaited: false,
      plot: null,
      shape: "",
      isSeen: false,
      isStale: false,
    });
    this.plotPlace = make("div", { class: "plot", role: "img" });
    this.legend = make("ul", { class: "legend" });
    this.readout = make("p", { class: "readout soft" });
    this.pointed = make("p", { class: "pointed soft ellipsis" });
    this.ends = make("p", { class: "ends soft" });
    this.none = make("p", { class: "no-values soft", hidden: true }, "No values here.");
    this.tablePlace = make("div", { hidden: true });
    this.tableButton = this.button("Table", () => this.toggleTable(), "as a table", { "aria-expanded": "false" });
    const tools = make(
      "span",
      { class: "tools" },
      this.tableButton,
      this.button("PNG", () => savePicture(this), "as PNG"),
    );
    this.element = make(
      "figure",
      { class: `card chart ${spec.isWide ? "wide" : ""}`, id: `chart-${spec.id}` },
      make(
        "figcaption",
        {},
        make("h3", { class: "ellipsis", title: spec.title }, spec.title),
        this.readout,
        this.pointed,
        tools,
      ),
      make("div", { class: `frame ${spec.isTall ? "tall" : ""}` }, this.plotPlace, this.none),
      this.tablePlace,
      this.legend,
      this.ends,
    );
    group.add(this);
  }

  button(text, act, words, more = {}) {
    return make(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": `${this.spec.title} ${words}`,
        title: words,
        click: act,
        ...more,
      },
      text,
    );
  }

  set(lines, { isLog = false, marks = [], isAwaited = false } = {}) {
    Object.assign(this, { isLog, marks, isAwaited });
    const alone = lines.length === 1 ? lines.map((line) => ({ ...line, dash: 0 })) : lines;
    const drawn = this.spec.isStacked ? stacked(lines) : alone;
    this.lines = isLog
      ? drawn.map((line) => ({
          ...line,
          mean: positive(line.mean),
          low: positive(line.low),
          high: positive(line.high),
          smooth: positive(line.smooth),
        }))
      : drawn;
    this.sayNone();
    put(this.plotPlace, "aria-label", this.inWords());
    this.paint();
    this.paintLegend();
    this.read(null);
    if (!this.tablePlace.hidden) this.paintTable();
  }

  see(is) {
    this.isSeen = is;
    if (is && this.isStale) this.paint();
  }

  // Why there is no line.
  sayNone() {
    const words = this.isAwaited ? "Loading…" : "No values here.";
    say(this.none, isMissing() ? "The library that draws did not come. Asking for it again…" : words);
    show(this.none, isMissing() || !this.lines.some((line) => line.mean.some(isNumber)));
  }

  // What nobody sees is drawn when somebody does.
  paint() {
    this.isStale = true;
    if (this.isSeen) this.draw();
  }

  // As it is now, whether it is seen or not.
  draw() {
    if (!this.plotPlace.clientWidth || !window.uPlot) return;
    this.isStale = false;
    const { data, parts } = columns(this.spec.isStacked ? [...this.lines].reverse() : this.lines);
    const shape = JSON.stringify([
      this.isLog,
      this.group.axis.kind,
      parts.map((part) => [part.line.place, part.line.dash, part.kind]),
    ]);
    if (this.plot && shape === this.shape) this.plot.setData(data);
    else this.make(parts, data, shape);
  }

  make(parts, data, shape) {
    this.end();
    this.shape = shape;
    this.plot = new window.uPlot(
      options(this, parts, this.plotPlace.clientWidth, this.plotPlace.clientHeight),
      data,
      this.plotPlace,
    );
  }

  rebuild() {
    this.shape = "";
    this.paint();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.plotPlace;
    if (!width) return;
    if (this.isStale) this.paint();
    else if (this.plot && (this.plot.width !== width || this.plot.height !== height))
      this.plot.setSize({ width, height });
  }

  moveTo(min, max) {
    if (this.isSeen) this.plot?.setScale("x", { min, max });
    else this.isStale = true;
  }

  end() {
    this.plot?.destroy();
    this.plot = null;
  }

  // What stands under the cursor, or the newest of each line where there is none.
  read(plot) {
    const left = plot?.cursor.left ?? -1;
    const x = left >= 0 ? plot.posToVal(left, "x") : null;
    const values = this.lines.map((line) => this.valueAt(line, x));
    this.say(values);
    const event = x === null ? null : eventAt(plot, this.marks, left);
    const at = x === null ? "" : this.group.axis.words(x);
    const told = this.lines.length === 1 && this.legend.hidden ? this.words(values[0]) : "";
    say(this.ends, this.extremes(values));
    say(this.readout, told);
    say(this.pointed, [at, event && `${glyphOf(event)} ${event.text}`].filter(Boolean).join(" · "));
  }

  valueAt(line, x) {
    const values = line.own ?? line.mean;
    const place =
      x === null ? values.findLastIndex((value, at) => isNumber(value) || line.bad?.[at]) : nearest(line.x, x);
    if (place < 0 || (x !== null && this.isFar(line.x[place], x))) return null;
    return isNumber(values[place]) ? values[place] : line.bad?.[place] ? "NaN" : null;
  }

  isFar(found, x) {
    const [from, to] = this.group.shown() ?? [0, 0];
    return Math.abs(found - x) > 0.03 * (to - from);
  }

  say(values) {
    if (this.lines.length > SHOWN_LABELS) return;
    this.lines.forEach((line, place) => say(this.legend.children[place].lastChild, this.words(values[place])));
  }

  words(value) {
    return value === null ? UNKNOWN : (this.spec.words ?? plain)(value);
  }

  // Of many lines only the ends are told.
  extremes(values) {
    if (this.lines.length <= SHOWN_LABELS) return "";
    const known = values
      .map((value, place) => [value, this.lines[place].label])
      .filter(([value]) => isNumber(value))
      .sort(([a], [b]) => a - b);
    return known.length
      ? `${this.words(known[0][0])} (${known[0][1]}) to ${this.words(known.at(-1)[0])} (${known.at(-1)[1]})`
      : "";
  }

  paintLegend() {
    const lines = this.lines.length > SHOWN_LABELS || (this.spec.isAlone && this.lines.length < 2) ? [] : this.lines;
    show(this.legend, lines.length);
    keep(
      this.legend,
      this.lines.length > SHOWN_LABELS ? [] : this.lines,
      (line) => `${line.key} ${line.place} ${line.dash}`,
      legendEntry,
    );
  }

  inWords() {
    const told = this.lines.slice(0, SHOWN_LABELS).map((line) => {
      const values = (line.own ?? line.mean).filter(isNumber);
      if (!values.length) return `${line.label}: no values`;
      const bad = line.bad?.some(Boolean) ? ", with values that are no numbers" : "";
      const low = values.reduce((a, b) => Math.min(a, b));
      const high = values.reduce((a, b) => Math.max(a, b));
      return `${line.label}: last ${this.words(values.at(-1))}, from ${this.words(low)} to ${this.words(high)}${bad}`;
    });
    return `${this.spec.title}. ${told.join(". ") || "No values"}. The button Table shows the values.`;
  }

  toggleTable() {
    const open = this.tablePlace.hidden;
    show(this.tablePlace, open);
    put(this.tableButton, "aria-expanded", String(open));
    if (open) this.paintTable();
    else this.tablePlace.replaceChildren();
  }

  paintTable() {
    this.tablePlace.replaceChildren(valueTable(this));
  }
}

function legendEntry(line) {
  const label = make("span", { class: "ellipsis" });
  const mark = line.own ? make("i", { class: "block" }) : swatch(line.place, line.dash);
  const entry = make("li", { class: classOf(line.place) }, mark, label, make("b", {}));
  entry.update = (next) => {
    say(label, next.label);
    put(label, "title", next.label);
  };
  return entry;
}

// Keys and buttons that move the charts of a view.
export function moveButtons(group, all = "All", allWords = "Show all (0)") {
  const button = (text, words, act) =>
    make("button", { type: "button", "aria-label": words, title: words, click: act }, text);
  return make(
    "span",
    { class: "segments", role: "group", "aria-label": "Zoom and pan" },
    button("‹", "Earlier ([)", () => group.pan(-0.25)),
    button("−", "Zoom out (-)", () => group.zoom(2)),
    button("+", "Zoom in (+)", () => group.zoom(0.5)),
    button("›", "Later (])", () => group.pan(0.25)),
    button(all, allWords, () => group.reset()),
  );
}
