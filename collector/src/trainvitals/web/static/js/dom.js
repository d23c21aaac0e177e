// Elements made of names, attributes and text. Text is always a text node: a run named "<script>" stays its name.
//
// make("p", { class: "note" }, "loss ", make("b", {}, "1.82"))

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

// A function is a listener, false and null are an attribute that is not there.
function set(element, name, value) {
  if (typeof value === "function") element.addEventListener(name, value);
  else if (value === true) element.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
}

// What has not changed is not touched: a selection of text stays, and nothing is laid out anew.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function put(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
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
  told.textContent = told.textContent === text ? `${text} ` : text;
}
