// The page: a pure view of the agent. One stream of snapshots comes in, each view draws what it shows of them.

import * as address from "./address.js";
import { announce, find, make, put, say, show } from "./dom.js";
import { time } from "./format.js";
import * as keys from "./keys.js";
import { Live } from "./live.js";
import { worst } from "./signs.js";
import * as theme from "./theme.js";
import * as verdict from "./verdict.js";

// What is not looked at is loaded when somebody turns to it.
const LOADS = {
  overview: () => import("./overview.js"),
  training: () => import("./training.js"),
  system: () => import("./system.js"),
  alerts: () => import("./alerts.js"),
};
const views = {};
const built = new Set();

let snapshot = null;
let isLost = false;
let shown = "";

function build() {
  for (const [place, name] of address.VIEWS.entries()) {
    const link = find(`to-${name}`);
    link.addEventListener("click", (event) => follow(event, name));
    for (const sign of ["pointerenter", "focus"]) link.addEventListener(sign, () => load(name).catch(() => null));
    keys.on(String(place + 1), link.dataset.name, () => address.goTo(name));
  }
  keys.on("d", "Dark, light, or as the system says", theme.turn);
  verdict.build();
  theme.build();
  trainingKeys();
  chartKeys();
  keys.build();
  say(find("zone"), Intl.DateTimeFormat().resolvedOptions().timeZone ?? "this machine's zone");
  address.onChange(turn);
  turn();
  new Live(take, lose);
}

function trainingKeys() {
  const on = (key, words, act) =>
    keys.on(
      key,
      `Training: ${words}`,
      () => views.training.acts[act](),
      () => shown === "training" && views.training,
    );
  on("/", "filter the runs", "filter");
  on("l", "logarithmic scale", "log");
  on("x", "the next axis", "axis");
}

function chartKeys() {
  const on = (key, words, act) =>
    keys.on(
      key,
      `Charts: ${words}`,
      () => act(views[shown].group()),
      () => views[shown]?.group?.(),
    );
  on("+", "zoom in", (group) => group.zoom(0.5));
  on("-", "zoom out", (group) => group.zoom(2));
  on("[", "earlier", (group) => group.pan(-0.25));
  on("]", "later", (group) => group.pan(0.25));
  on("0", "show all, or now", (group) => group.reset());
}

// A click with a modifier opens a window, as on any link.
function follow(event, name) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  address.goTo(name);
}

function turn() {
  const name = address.view();
  for (const each of address.VIEWS) {
    show(find(each), each === name);
    put(find(`to-${each}`), "aria-current", each === name ? "page" : null);
  }
  put(document.body, "data-view", name);
  if (shown && shown !== name) arrive(name);
  shown = name;
  open(name);
}

async function open(name) {
  const place = find(name);
  const view = await load(name).catch(() => null);
  if (shown !== name) return;
  if (!view) return place.replaceChildren(notCome());
  if (!built.has(name)) {
    place.replaceChildren();
    view.build(place);
    built.add(name);
  }
  view.look?.();
  if (snapshot) view.update(snapshot);
}

// The agent went before this part of the page had come.
const notCome = () => make("p", { class: "banner" }, "This view did not come. ", reloadButton());
const reloadButton = () => make("button", { type: "button", click: () => location.reload() }, "Reload");

const load = async (name) => (views[name] ??= await LOADS[name]());

// For the keyboard and for who listens it is a new page.
function arrive(name) {
  for (const [each, view] of Object.entries(views)) if (each !== name) view.leave?.();
  find("main").focus({ preventScroll: true });
  window.scrollTo(0, 0);
  announce(find(`to-${name}`).dataset.name);
}

function take(next) {
  if (isLost) comeBack();
  tellOfUpdate(snapshot, next);
  snapshot = next;
  say(find("node"), next.node);
  say(find("at"), next.timestamp === null ? "" : time(next.timestamp));
  count(next.alerts);
  verdict.tell(next);
  if (built.has(shown)) views[shown].update(next);
}

// What could not be loaded while nobody answered is asked for anew.
function comeBack() {
  isLost = false;
  announce("Connected again.");
  if (!built.has(shown)) open(shown);
}

function count({ heard_count: heard, firing }) {
  say(find("alert-count"), heard ? String(heard) : "");
  put(find("alert-count"), "data-state", worst(firing.map(({ labels, silenced }) => ({ ...labels, silenced }))));
  show(find("alert-words"), heard);
}

function lose(why, silentSeconds) {
  isLost = true;
  verdict.tellLost(why, silentSeconds, snapshot?.node);
}

// A page from before an update does not know what the agent of after it says.
function tellOfUpdate(before, after) {
  if (!before || before.version === after.version || find("updated")) return;
  const words = `The agent is now version ${after.version}. `;
  find("verdict").after(make("p", { id: "updated", class: "banner", role: "status" }, words, reloadButton()));
}

build();
