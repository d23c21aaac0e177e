// What steers the charts of runs: the axis, smoothing, scale, and which of their own metrics are shown.

import { make, put, say } from "./dom.js";
import { pickMenu } from "./pick_menu.js";
import { change } from "./training_choice.js";
import { AXES, otherFields } from "./training_specs.js";

export function controls(move, menu) {
  const axes = new Map(
    Object.entries(AXES).map(([name, axis]) => [
      name,
      make(
        "button",
        { type: "button", click: () => change({ x: name === "step" ? null : name, from: null, to: null }) },
        axis.name,
      ),
    ]),
  );
  const smoothing = make("input", {
    type: "range",
    min: 0,
    max: 0.99,
    step: 0.01,
    id: "smoothing",
    input: () => change({ smooth: smoothing.value }, true),
  });
  const smoothed = make("output", { for: "smoothing" });
  const log = make(
    "button",
    {
      type: "button",
      click: () => change({ log: log.getAttribute("aria-pressed") === "true" ? null : "1" }),
      title: "Logarithmic scale of loss and gradient norm (l)",
    },
    "Log scale",
  );
  const fields = pickMenu("More metrics", (chosen) => change({ field: chosen }));
  const element = make(
    "div",
    { class: "controls" },
    make("span", { class: "segments", role: "group", "aria-label": "Align by" }, [...axes.values()]),
    make("label", {}, make("span", { class: "soft" }, "Smoothing"), smoothing, smoothed),
    log,
    fields.element,
    move,
    menu,
  );
  const set = (chosen, pairs) => {
    for (const [name, button] of axes) put(button, "aria-pressed", String(name === chosen.x));
    if (document.activeElement !== smoothing) smoothing.value = chosen.smoothing;
    say(smoothed, chosen.smoothing.toFixed(2));
    put(log, "aria-pressed", String(chosen.isLog));
    fields.set(chosen.fields, otherFields(pairs.map((pair) => pair.info ?? {})));
  };
  return { element, set };
}
