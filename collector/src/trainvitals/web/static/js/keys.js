// Keys for those who like them; `?` lists them and can switch them off, for whoever speaks to the machine.

import { find, make, show } from "./dom.js";

const OFF = "trainvitals-keys";
const known = new Map();

// `when` tells whether the key means something now; without it, always.
export function on(key, words, act, when = () => true) {
  known.set(key, [...(known.get(key) ?? []), { words, act, when }]);
}

export function build() {
  document.addEventListener("keydown", press);
  find("help").addEventListener("click", open);
  find("help-close").addEventListener("click", () => find("help-dialog").close());
  find("keys-on").checked = areOn();
  find("keys-on").addEventListener("change", (event) => remember(event.target.checked));
  on("?", "This list", open);
}

function press(event) {
  if (isCommand(event) || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") || (!areOn() && event.key !== "?")) return;
  const found = (known.get(event.key) ?? []).find(({ when }) => when());
  if (!found) return;
  event.preventDefault();
  found.act();
}

// Many keyboards have signs as [ on AltGr or Option, which count as Ctrl and Alt: of those only letters and digits are
// the browser's own.
const isCommand = (event) => event.metaKey || ((event.ctrlKey || event.altKey) && !isSign(event));
const isSign = (event) =>
  event.getModifierState("AltGraph") || (event.altKey && !event.ctrlKey && !/^[a-z\d]$/i.test(event.key));

const isTyping = (target) => target.matches?.("input:not([type=checkbox]):not([type=radio]), textarea, select");

function open() {
  const rows = [...known].flatMap(([key, meanings]) => meanings.map(({ words }) => row(key, words)));
  find("help-keys").replaceChildren(...rows);
  find("help-dialog").showModal();
}

const row = (key, words) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, words));

function areOn() {
  try {
    return localStorage.getItem(OFF) !== "off";
  } catch {
    return true;
  }
}

function remember(are) {
  show(find("keys-off-words"), !are);
  try {
    if (are) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "off");
  } catch {
    // Not remembered then.
  }
}
