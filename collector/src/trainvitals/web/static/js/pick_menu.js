// A menu of boxes: names to choose from, of which some are chosen.

import { keep, make, say, show } from "./dom.js";

export function pickMenu(name, choose) {
  const list = make("ul", { class: "picks" });
  const title = make("summary", { class: "button" }, name);
  const element = make("details", { class: "menu" }, title, make("div", { class: "panel card" }, list));
  document.addEventListener(
    "click",
    (event) => element.open && !element.contains(event.target) && (element.open = false),
  );
  element.addEventListener("keydown", (event) => event.key === "Escape" && ((element.open = false), title.focus()));
  let chosen = [];
  const toggle = (each, is) => choose(is ? [...chosen, each] : chosen.filter((one) => one !== each));
  const set = (next, offered) => {
    chosen = next;
    const there = [...new Set([...offered, ...next])];
    show(element, there.length);
    say(title, next.length ? `${name}: ${next.length}` : name);
    keep(
      list,
      there,
      (each) => each,
      (each) => entry(each, toggle, () => chosen.includes(each)),
    );
  };
  return { element, set };
}

function entry(name, toggle, isChosen) {
  const box = make("input", { type: "checkbox", change: () => toggle(name, box.checked) });
  const item = make("li", {}, make("label", { title: name }, box, make("span", { class: "ellipsis" }, name)));
  item.update = () => (box.checked = isChosen());
  return item;
}
