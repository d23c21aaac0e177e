// Elements made of names, attributes and text. Text is always a text node: a run named "<script>" stays its name.
//
// make("p", { class: "note" }, "loss ", make("b", {}, "1.82"))

const SVG = "http://www.w3.org/2000/svg";
// Controls but for the ends of lines, and marks of direction and width; joiners are part of letters.
const UNSEEN = /[^\P{Cc}\n\t]|[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

export const find = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  const there = children.flat().filter((child) => child !== null && child !== undefined && child !== "");
  element.append(...there.map((child) => (typeof child === "string" ? plain(child) : child)));
  return element;
}

// What came from others must not turn the direction of what stands beside it, nor hide anything.
const plain = (text) => text.replaceAll(UNSEEN, " ");
const SPOKEN = new Set(["title", "aria-label"]);
const spoken = (name, value) => (SPOKEN.has(name) ? plain(String(value)) : String(value));

// A function is a listener, false and null are an attribute that is not there.
function set(element, name, value) {
  if (typeof value === "function") element.addEventListener(name, value);
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, spoken(name, value));
}

// What has not changed is not touched: a selection of text stays, and nothing is laid out anew.
export function say(element, text) {
  const next = plain(String(text ?? ""));
  if (element.textContent !== next) element.textContent = next;
}

// With what stands between backticks as code.
export function sayWithCode(element, text) {
  if (element.told === text) return;
  element.told = text;
  const parts = plain(text).split("`");
  const isPaired = parts.length % 2;
  element.replaceChildren(...parts.map((part, place) => (isPaired && place % 2 ? make("code", {}, part) : part)));
  if (!isPaired) element.textContent = plain(text);
}

export function put(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== spoken(name, value)) element.setAttribute(name, spoken(name, value));
}

export function show(element, is) {
  if (element.hidden === Boolean(is)) element.hidden = !is;
}

// One child for each item, in their order; those that were there are kept with their focus. `create(item)` gives a child
// with a method `update(item)`, or without one.
export function keep(parent, items, key, create) {
  parent.kept ??= new Map();
  const wanted = new Set(items.map(key));
  for (const [name, child] of parent.kept) {
    if (!wanted.has(name)) {
      child.remove();
      parent.kept.delete(name);
    }
  }
  items.forEach((item, place) => {
    const name = key(item);
    if (!parent.kept.has(name)) parent.kept.set(name, create(item));
    const child = parent.kept.get(name);
    child.update?.(item);
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
  });
}

// Says a thing once to who listens to the page.
export function announce(text) {
  const told = find("told");
  const next = plain(text);
  told.textContent = told.textContent === next ? `${next} ` : next;
}
