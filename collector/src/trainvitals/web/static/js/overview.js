// The first view: what is wrong, what runs and how far it is, the GPUs, the host.

import * as address from "./address.js";
import { get } from "./api.js";
import { forgetOthers } from "./data_wait.js";
import { find, keep, make, say, show } from "./dom.js";
import * as findings from "./findings.js";
import { ago, integer, plain, secondsOf, time } from "./format.js";
import { MEASURES, gpuTile } from "./gpu_tile.js";
import { hostFacts } from "./host_facts.js";
import { ownId, runCard } from "./run_card.js";
import { WEIGHT, badge, ofRun, sign, worst } from "./signs.js";
import { TRAIL_SECONDS } from "./trail.js";

const SHOWN_FINDINGS = 6;
const EXAMPLE =
  'import trainvitals as tv\n\nrun = tv.start("my-run")\nrun.log(loss=loss)      # in the training loop\nrun.finish()';
const GAP_SECONDS = 10;
const PAST_POINTS = 75;
const DIGITS = 3;
const tiles = new Map();

let last = null;
let lastAt = -Infinity;

export function build(root) {
  const section = (id, title, ...children) =>
    make("section", { "aria-labelledby": `${id}-title`, id }, make("h2", { id: `${id}-title` }, title), ...children);
  root.append(
    section(
      "wrong",
      "Open findings",
      make("ul", { class: "rows", id: "wrong-list" }),
      make("p", { class: "empty", id: "wrong-none", hidden: true }, sign("well"), "No finding is open."),
      make("p", { class: "soft", id: "wrong-told", hidden: true }),
      make("p", { id: "wrong-more" }),
    ),
    section(
      "live-runs",
      "Runs",
      make("ul", { class: "cards runs", id: "run-cards" }),
      noRuns(),
      make("div", { id: "ended" }, make("h3", { id: "ended-title" }), make("ul", { class: "ended", id: "ended-list" })),
    ),
    section(
      "gpus",
      "GPUs",
      make("ul", { class: "cards tiles", id: "gpu-tiles" }),
      make("p", { class: "empty", id: "no-gpus" }),
    ),
    section("host", "Host", make("dl", { class: "facts card", id: "host-facts" })),
  );
  root.addEventListener("click", follow);
  findings.onChange(() => {
    paintFindings();
    if (last) paint(last);
  });
  paintFindings();
}

function noRuns() {
  return make(
    "div",
    { class: "empty", id: "no-runs" },
    make("p", {}, "No run has written to this journal yet. These lines in a training loop are enough:"),
    make("pre", {}, EXAMPLE),
  );
}

// Links within the page change the view without loading it anew.
function follow(event) {
  const link = event.target.closest("a[data-go]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  address.goTo(link.dataset.go, new URL(link.href).search);
}

export function update(snapshot) {
  last = snapshot;
  findings.watch(snapshot);
  paint(snapshot);
}

function paint(snapshot) {
  const at = snapshot.timestamp === null ? Date.now() / 1000 : Date.parse(snapshot.timestamp) / 1000;
  paintRuns(snapshot, at);
  paintGpus(snapshot, at);
  hostFacts(find("host-facts"), snapshot.host);
  show(find("host"), find("host-facts").childElementCount);
}

function paintFindings() {
  const open = findings.open();
  keep(find("wrong-list"), open.slice(0, SHOWN_FINDINGS), (finding) => finding.id, findingRow);
  show(find("wrong-none"), findings.isNone());
  say(find("wrong-told"), findings.failure());
  show(find("wrong-told"), findings.failure());
  const more = open.length - SHOWN_FINDINGS;
  show(find("wrong-more"), more > 0);
  find("wrong-more").replaceChildren(make("a", { href: "/?view=alerts", "data-go": "alerts" }, `${more} more`));
}

function findingRow(first) {
  const severity = badge(first.severity);
  const name = make(
    "a",
    { href: `/?view=alerts&finding=${encodeURIComponent(first.id)}`, "data-go": "alerts" },
    first.kind,
  );
  const place = make("span", { class: "soft" });
  const what = make("p", {});
  const row = make("li", { class: "card finding" }, make("div", { class: "head" }, severity, name, place), what);
  row.update = (finding) => {
    const quiet = finding.silenced ? ", silenced" : finding.acknowledged ? ", acknowledged" : "";
    severity.update(finding.severity);
    say(
      place,
      [findings.where(finding), `since ${time(secondsOf(finding.opened))}${quiet}`].filter(Boolean).join(" · "),
    );
    say(what, finding.what);
  };
  return row;
}

function paintRuns(snapshot, at) {
  const live = snapshot.runs
    .filter((run) => run.status === "running")
    .map((run) => ({ run, at, findings: findings.ofRun(run.run) }))
    .sort((a, b) => weightOf(b.findings) - weightOf(a.findings));
  const ended = snapshot.runs.filter((run) => run.status !== "running");
  forgetOthers(new Set(live.map(({ run }) => run.run)));
  keep(find("run-cards"), live, ({ run }) => run.run, runCard);
  show(find("no-runs"), !snapshot.runs.length && snapshot.timestamp !== null);
  show(find("ended"), ended.length);
  say(find("ended-title"), live.length ? "Ended lately" : "Nothing runs now. Ended lately");
  keep(
    find("ended-list"),
    ended.map((run) => ({ run, at })),
    ({ run }) => run.run,
    endedRow,
  );
}

const weightOf = (findings) => WEIGHT[worst(findings)] ?? 0;

function endedRow({ run: { run, name } }) {
  const status = badge("well");
  const href = `/?view=training&run=${encodeURIComponent(run)}`;
  const link = make("a", { href, "data-go": "training", class: "ellipsis", title: name || run }, name || run);
  const words = make("span", { class: "soft" });
  const row = make("li", {}, status, link, words);
  row.update = ({ run: next, at }) => {
    status.update(ofRun(next.status), next.status);
    say(words, endedWords(next, at));
  };
  return row;
}

function endedWords(run, at) {
  const first = run.ranks.find((rank) => rank.rank === 0) ?? run.ranks[0] ?? {};
  const last = first.last_step_timestamp_seconds;
  const told = [ownId(run), `step ${integer(first.step)}`, `loss ${plain(first.loss)}`, last && ago(at - last)];
  return told.filter(Boolean).join(" · ");
}

function paintGpus(snapshot, at) {
  const there = new Set(snapshot.gpus.map((gpu) => gpu.uuid));
  for (const gpu of snapshot.gpus) tiles.set(gpu.uuid, gpu);
  const items = [...tiles.values()]
    .sort((a, b) => a.gpu - b.gpu)
    .map((gpu) => ({
      gpu,
      at,
      interval: snapshot.interval,
      // Before the first reading, and when the sampler hangs, nobody knows.
      isKnown: snapshot.timestamp !== null,
      isGone: snapshot.timestamp !== null && !there.has(gpu.uuid),
      findings: findings.ofGpu(gpu),
      xids: snapshot.xids.filter((xid) => xid.uuid === gpu.uuid),
    }));
  keep(
    find("gpu-tiles"),
    items,
    ({ gpu }) => gpu.uuid,
    ({ gpu }) => gpuTile(gpu),
  );
  say(find("gpus-title"), gpuTitle(snapshot));
  const why = Object.values(snapshot.sources)
    .map((source) => source.problem)
    .filter(Boolean)
    .join(" ");
  show(find("no-gpus"), !items.length && snapshot.timestamp !== null);
  say(find("no-gpus"), `${why || "No GPU answers here"}. Host and runs are watched all the same.`);
  if (items.length && at - lastAt > GAP_SECONDS) recall(at);
  lastAt = at;
}

function gpuTitle(snapshot) {
  const { gpu_expected_count: expected } = snapshot.host;
  const count = snapshot.gpus.length;
  return expected > count ? `GPUs: ${count} of ${expected} answer` : count > 1 ? `GPUs: ${count}` : "GPUs";
}

// The minutes before this page was opened, or before it was connected again.
async function recall(at) {
  const fields = MEASURES.map((measure) => measure.field).join(",");
  const asked = { from: at - TRAIL_SECONDS, points: PAST_POINTS, fields, host: "none", digits: DIGITS, peaks: 0 };
  const told = await get("/api/v1/node", asked).catch(() => null);
  const byNumber = new Map([...tiles.values()].map((gpu) => [String(gpu.gpu), find("gpu-tiles").kept?.get(gpu.uuid)]));
  for (const [gpu, fieldsOf] of Object.entries(told?.gpus ?? {})) {
    for (const [field, { x, mean }] of Object.entries(fieldsOf))
      x.forEach((at, place) => byNumber.get(gpu)?.remember(field, at, mean[place]));
  }
}
