// Dark or light: as the system says, or as was chosen here. Charts are drawn anew when it changes.

import { find, put, say } from "./dom.js";

const KEY = "trainvitals-theme";
const NEXT = { system: "dark", dark: "light", light: "system" };
const listeners = [];

export const onChange = (listener) => listeners.push(listener);

const chosen = () => document.documentElement.dataset.theme ?? "system";

export function turn() {
  const next = NEXT[chosen()];
  put(document.documentElement, "data-theme", next === "system" ? null : next);
  remember(next);
  paint();
}

export function build() {
  find("theme").addEventListener("click", turn);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  paint();
}

function paint() {
  say(find("theme-word"), { system: "Auto", dark: "Dark", light: "Light" }[chosen()]);
  for (const listener of listeners) listener();
}

function remember(theme) {
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Not remembered then.
  }
}
