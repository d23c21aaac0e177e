// The host in a few numbers.

import { make, say } from "./dom.js";
import { bytes, percent, share } from "./format.js";

const SHOWN_DISKS = 4;

export function hostFacts(list, host) {
  const facts = factsOf(host);
  const names = facts.map(([name]) => name).join("\n");
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    list.replaceChildren(
      ...facts.map(([name]) => make("div", {}, make("dt", { class: "ellipsis", title: name }, name), make("dd", {}))),
    );
  }
  facts.forEach(([, words], place) => say(list.children[place].lastChild, words));
}

function factsOf(host) {
  const facts = [
    [
      "Processors",
      host.cpu_usage_percent,
      (used) => `${percent(used)}${host.cpu_count ? ` of ${host.cpu_count}` : ""}`,
    ],
    ["Waiting for disks", host.cpu_iowait_ratio, share],
    ["Memory", host.memory_used_bytes, (used) => `${bytes(used)} of ${bytes(host.memory_total_bytes)}`],
    [
      "Swap",
      host.swap_total_bytes ? host.swap_used_bytes : undefined,
      (used) => `${bytes(used)} of ${bytes(host.swap_total_bytes)}`,
    ],
    ["Load, 1 min", host.load_average_1m, (load) => load.toFixed(2)],
    ...(host.filesystems ?? [])
      .slice(0, SHOWN_DISKS)
      .map((disk) => [
        `Free on ${disk.mountpoint}`,
        disk.free_bytes,
        (free) => `${bytes(free)} of ${bytes(disk.size_bytes)}`,
      ]),
    ["This node costs", host.node_price_dollars_per_hour, (price) => `$${price} an hour`],
  ];
  return facts
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value, words]) => [name, words(value)]);
}
