// What each GPU is, and the counts that should stay at nought.

import { keep, make, say } from "./dom.js";
import { UNKNOWN, bytes, hertz, integer, known, watts, words } from "./format.js";

const HEADS = [
  "GPU",
  "Model",
  "UUID",
  "Driver",
  "PCI bus",
  "PCIe now / most",
  "Clock",
  "Power limit",
  "NVLinks up",
  "Memory errors: corrected / not",
  "Held down by",
  "Processes",
];

export function gpuFacts() {
  const body = make("tbody", {});
  const table = make(
    "table",
    {},
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        HEADS.map((name) => make("th", { scope: "col" }, name)),
      ),
    ),
    body,
  );
  const element = make(
    "details",
    { class: "card events" },
    make("summary", {}, "GPU details"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "GPU details" }, table),
  );
  element.update = (gpus) => element.open && keep(body, gpus, (gpu) => gpu.uuid, row);
  element.addEventListener("toggle", () => element.update(element.gpus ?? []));
  return element;
}

function row() {
  const cells = HEADS.map((_, place) => make(place ? "td" : "th", place ? {} : { scope: "row" }));
  const line = make("tr", {}, cells);
  line.update = (gpu) => facts(gpu).forEach((text, place) => say(cells[place], String(text ?? UNKNOWN) || UNKNOWN));
  return line;
}

const pair = (one, other, between = " / ") =>
  one === undefined && other === undefined ? UNKNOWN : `${integer(one)}${between}${integer(other)}`;

function facts(gpu) {
  const pcie =
    gpu.pcie_generation === undefined
      ? UNKNOWN
      : `gen ${gpu.pcie_generation} ×${gpu.pcie_width} / gen ${integer(gpu.pcie_generation_max)} ×${integer(gpu.pcie_width_max)}`;
  return [
    gpu.gpu,
    gpu.name,
    gpu.uuid,
    gpu.driver_version,
    gpu.pci_bus_id,
    pcie,
    hertz(gpu.clock_hertz_sm),
    watts(gpu.power_limit_watts),
    pair(gpu.nvlink_links_active, gpu.nvlink_links, " of "),
    pair(gpu.ecc_volatile_errors_total_corrected, gpu.ecc_volatile_errors_total_uncorrected),
    known(gpu.throttle_active, (reasons) => reasons.map(words).join(", ") || "nothing"),
    known(
      gpu.compute_processes,
      (count) =>
        `${count}${gpu.compute_processes_memory_bytes === undefined ? "" : `, ${bytes(gpu.compute_processes_memory_bytes)}`}`,
    ),
  ];
}
