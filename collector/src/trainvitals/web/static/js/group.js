// Charts that share one axis: a zoom, a pan and the cursor are those of all.

import { loaded, missed } from "./plot_library.js";
import * as theme from "./theme.js";

export class Group {
  // `onRange(from, to)` is called when a zoom or a pan is done, with nulls when all is to be shown.
  constructor(name, onRange) {
    this.name = name;
    this.onRange = onRange;
    this.charts = [];
    this.range = null;
    this.isMoving = false;
    // `least` is the narrowest range that can be looked at.
    this.axis = { kind: "count", words: String, least: 1 };
    theme.onChange(() => this.charts.forEach((chart) => chart.rebuild()));
    missed.then(() => this.charts.forEach((chart) => chart.sayNone()));
    loaded.then(() => this.charts.forEach((chart) => [chart.sayNone(), chart.paint()]));
    this.watcher = new IntersectionObserver(
      (seen) => seen.forEach(({ target, isIntersecting }) => target.chart.see(isIntersecting)),
      { rootMargin: "100px" },
    );
    this.sizer = new ResizeObserver((changed) => changed.forEach(({ target }) => target.chart.resize()));
  }

  add(chart) {
    this.charts.push(chart);
    chart.plotPlace.chart = chart;
    this.watcher.observe(chart.plotPlace);
    this.sizer.observe(chart.plotPlace);
  }

  remove(chart) {
    this.charts = this.charts.filter((each) => each !== chart);
    this.watcher.unobserve(chart.plotPlace);
    this.sizer.unobserve(chart.plotPlace);
    chart.end();
  }

  // What is shown now: the range that was asked for, or all that there is.
  shown() {
    const scales = this.charts
      .map((chart) => chart.plot?.scales.x)
      .filter((x) => x && x.min !== null && x.min !== undefined);
    if (this.range) return this.range;
    return scales.length ? [Math.min(...scales.map((x) => x.min)), Math.max(...scales.map((x) => x.max))] : null;
  }

  // What the address says is shown, but not under a hand that moves the charts elsewhere just now.
  show(range) {
    if (!this.isMoving) this.range = range;
  }

  move(from, to) {
    this.isMoving = true;
    const held = (this.range = this.held(from, to));
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.charts.forEach((chart) => chart.moveTo(...held)));
  }

  zoomTo(from, to) {
    this.isMoving = false;
    this.onRange(...this.held(from, to));
  }

  // A range that is too narrow is widened about its middle.
  held(from, to) {
    const lack = Math.max(0, this.axis.least - (to - from)) / 2;
    return [from - lack, to + lack];
  }

  reset() {
    this.isMoving = false;
    this.range = null;
    this.onRange(null, null);
  }

  // Around the middle, or around `at`.
  zoom(factor, at = null) {
    const shown = this.shown();
    if (!shown) return;
    const [from, to] = shown;
    const middle = at ?? (from + to) / 2;
    this.zoomTo(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  pan(share) {
    const shown = this.shown();
    if (!shown) return;
    const [from, to] = shown;
    this.zoomTo(from + share * (to - from), to + share * (to - from));
  }
}
