// What steers the charts of the machine: how far back, which GPUs, which other readings.

import * as address from "./address.js";
import { keep, make, put, say, show } from "./dom.js";
import { time } from "./format.js";
import { pickMenu } from "./pick_menu.js";
import { swatch } from "./palette.js";
import { RANGES, otherFields } from "./system_specs.js";

export function systemControls(move, menu) {
  const ranges = RANGES.map(([name, seconds]) =>
    make("button", { type: "button", click: () => address.change({ range: seconds, from: null, to: null }) }, name),
  );
  const span = make("span", { class: "soft", id: "span" });
  const chips = make("span", { class: "chips", role: "group", "aria-label": "GPUs that are shown" });
  const fields = pickMenu("More metrics", (chosen) => address.change({ field: chosen }));
  const element = make(
    "div",
    {},
    make(
      "div",
      { class: "controls" },
      make("span", { class: "segments", role: "group", "aria-label": "How far back" }, ranges),
      move,
      fields.element,
      menu,
      span,
    ),
    make("div", { class: "controls" }, chips),
  );
  const set = (chosen, snapshot, gpus) => {
    ranges.forEach((button, place) =>
      put(button, "aria-pressed", String(!chosen.isFixed && RANGES[place][1] === chosen.range)),
    );
    say(span, chosen.isFixed ? `${time(chosen.from)} to ${time(chosen.to)}` : "Live");
    show(chips, gpus.length > 1);
    keep(
      chips,
      gpus.map((gpu) => ({ gpu, chosen: chosen.gpus, gpus })),
      ({ gpu }) => gpu,
      chip,
    );
    fields.set(chosen.fields, otherFields(snapshot));
  };
  return { element, set };
}

// Of all the first that is pressed stays alone; pressing on adds and takes away.
function chip({ gpu }) {
  const place = Number(gpu) || 0;
  const button = make("button", { type: "button", class: "chip" }, swatch(place), make("span", {}, `GPU ${gpu}`));
  button.update = ({ chosen, gpus }) => {
    put(button, "aria-pressed", String(!chosen.length || chosen.includes(gpu)));
    button.onclick = () => {
      const next = !chosen.length
        ? [gpu]
        : chosen.includes(gpu)
          ? chosen.filter((each) => each !== gpu)
          : [...chosen, gpu];
      address.change({ gpu: next.length === gpus.length ? [] : next });
    };
  };
  return button;
}
