// What is looked at stands in the address: /?view=training&run=a&run=b&x=step&from=0&to=9000. It can be kept and sent.

const listeners = [];
const lastOf = new Map();

export const VIEWS = ["overview", "training", "system", "alerts"];

const parameters = () => new URLSearchParams(location.search);

export const one = (name) => parameters().get(name);
export const all = (name) => parameters().getAll(name);
export const view = () => (VIEWS.includes(one("view")) ? one("view") : "overview");

export function numberOf(name) {
  const text = one(name);
  return text === null || text.trim() === "" || !Number.isFinite(Number(text)) ? null : Number(text);
}

export const onChange = (listener) => listeners.push(listener);

// null and empty lists are taken out. `quietly` is for what changes many times in a row, as a slider does.
export function change(changes, quietly = false) {
  const next = parameters();
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "") next.append(name, each);
    }
  }
  go(next, quietly);
}

// Each view is found again as it was left.
export function goTo(name, fresh = null) {
  const next = new URLSearchParams(fresh ?? lastOf.get(name) ?? {});
  next.set("view", name);
  go(next, false);
}

function go(next, quietly) {
  const query = next.toString() ? `/?${next}` : "/";
  if (query === location.pathname + location.search) return;
  history[quietly ? "replaceState" : "pushState"](null, "", query);
  changed();
}

function changed() {
  lastOf.set(view(), location.search);
  for (const listener of listeners) listener();
}

window.addEventListener("popstate", changed);
