// A run that lives: how far it is, how fast, until when, its loss and where that goes, and what it has cost.

import { get, ofRun } from "./api.js";
import { waitShare } from "./data_wait.js";
import { make, put, say, show } from "./dom.js";
import { about, duration, integer, isNumber, known, money, plain, share, time } from "./format.js";
import { badge, heard, ofRun as signOf, worst } from "./signs.js";
import { line } from "./trail.js";

const TRENDS = { falling: "↓ falling", rising: "↑ rising", flat: "→ flat" };
const LOSS_POINTS = 160;
const LOSS_EVERY_SECONDS = 10;

export function runCard(first) {
  const parts = {
    name: make("a", {
      href: `/?view=training&run=${encodeURIComponent(first.run.run)}`,
      "data-go": "training",
      class: "ellipsis",
    }),
    status: badge("well"),
    facts: make("p", { class: "soft" }),
    bar: make("progress", { max: 1 }),
    done: make("span", {}),
    list: make("dl", { class: "facts" }),
    loss: line("loss"),
  };
  parts.progress = make("p", { class: "progress" }, parts.bar, parts.done);
  const card = make(
    "li",
    { class: "card run" },
    make("h3", {}, parts.name, parts.status),
    parts.facts,
    parts.progress,
    parts.loss,
    parts.list,
  );
  card.update = ({ run, at, findings }) => update(card, parts, run, at, findings);
  return card;
}

function update(card, parts, run, at, findings) {
  say(parts.name, run.name || run.run);
  put(parts.name, "title", run.name || run.run);
  const state = worst(findings) || signOf(run.status);
  put(card, "data-state", state);
  parts.status.update(state, [run.status, heard(findings)[0]?.kind].filter(Boolean).join(", "));
  say(parts.facts, factWords(run));
  paintProgress(parts, run.progress ?? {}, run);
  paintList(parts.list, run, at);
  askForLoss(card, parts.loss, run.run, at);
}

// What tells runs of one name apart.
export const ownId = ({ run, name }) => (name && name !== run ? run : "");

function factWords(run) {
  const ranks = run.ranks.length;
  const size = Number(run.world_size) || ranks;
  const started = known(run.start_timestamp_seconds, (when) => `since ${time(when)}`);
  const who = size > ranks ? `${ranks} of ${size} ranks here` : `${size} ${size === 1 ? "rank" : "ranks"}`;
  return [ownId(run), who, run.framework, started].filter(Boolean).join(" · ");
}

function paintProgress(parts, progress, run) {
  const step = progress.step ?? run.ranks[0]?.step;
  const planned = progress.planned_steps ?? run.planned_steps;
  const ratio = isNumber(step) && isNumber(planned) && planned > 0 ? Math.min(1, step / planned) : null;
  show(parts.bar, ratio !== null);
  put(parts.bar, "value", ratio);
  put(parts.bar, "aria-label", `Progress of ${run.name || run.run}`);
  const of = isNumber(planned) ? ` of ${integer(planned)}` : "";
  say(parts.done, `step ${integer(step)}${of}${ratio === null ? "" : ` · ${share(ratio)}`}`);
}

function paintList(list, run, at) {
  const progress = run.progress ?? {};
  const first = run.ranks.find((rank) => rank.rank === 0) ?? run.ranks[0] ?? {};
  const loss = progress.loss ?? first.loss;
  const facts = [
    ["Loss", `${plain(loss)} ${(isNumber(loss) && TRENDS[progress.loss_trend]) || ""}`],
    [
      "Speed",
      known(progress.steps_per_second, (speed) =>
        speed >= 0.5 ? `${plain(speed)} steps/s` : `${plain(1 / speed)} s a step`,
      ),
    ],
    ["ETA", known(progress.eta_seconds, (left) => `${duration(left)} (${about(at + left)})`)],
    ["Cost so far", known(progress.cost_dollars, money)],
    ["Data wait, 15 s", known(waitShare(run.run, first, at), share)],
    ["Last step", known(first.last_step_timestamp_seconds, (when) => `${duration(at - when)} ago`)],
  ];
  if (!list.firstChild) list.append(...facts.map(([name]) => make("div", {}, make("dt", {}, name), make("dd", {}))));
  facts.forEach(([, words], place) => say(list.children[place].lastChild, words));
}

async function askForLoss(card, image, run, at) {
  if (at - (card.lossAt ?? 0) < LOSS_EVERY_SECONDS) return;
  card.lossAt = at;
  const told = await get(ofRun(run, "series"), { fields: "loss", points: LOSS_POINTS, digits: 4 }).catch(() => null);
  const means = told?.fields?.loss?.mean ?? [];
  const points = means.map((value, place) => [place, value]).filter(([, value]) => isNumber(value));
  const values = points.map(([, value]) => value);
  image.paint(points, Math.min(...values), Math.max(...values), Math.max(1, means.length - 1), 1.5);
  show(image, points.length > 1);
}
