// A menu of what can be taken along: data in each format, and the charts as pictures.

import { address as link } from "./api.js";
import { announce, make } from "./dom.js";
import { savePicture } from "./picture.js";

const NAMES = { csv: "CSV", json: "JSON", jsonl: "JSON lines", parquet: "Parquet" };

// `parts()` gives what there is now, as [{title, parameters}]; `charts()` those that are shown.
export function exportMenu(parts, charts) {
  const panel = make("div", { class: "panel card" });
  const menu = make("details", { class: "menu" }, make("summary", { class: "button" }, "Export"), panel);
  menu.addEventListener("toggle", () => menu.open && fill(panel, parts(), charts));
  menu.addEventListener("keydown", (event) => event.key === "Escape" && close(menu, event));
  document.addEventListener("click", (event) => menu.open && !menu.contains(event.target) && (menu.open = false));
  return menu;
}

function close(menu, event) {
  event.stopPropagation();
  menu.open = false;
  menu.querySelector("summary").focus();
}

function fill(panel, parts, charts) {
  const rows = parts.map(({ title, parameters }) =>
    make(
      "div",
      {},
      make("h3", {}, title),
      make(
        "p",
        { class: "links" },
        Object.keys(NAMES).map((format) => entry(format, parameters)),
      ),
    ),
  );
  const pictures = make("button", { type: "button", click: () => charts().forEach(savePicture) }, "Every chart as PNG");
  panel.replaceChildren(...rows, pictures, make("p", { class: "soft words", role: "status" }));
}

function entry(format, parameters) {
  const href = link("/api/v1/export", { ...parameters, format });
  const check = format === "parquet" ? (event) => ask(event, href) : () => {};
  return make("a", { class: "button", href, download: "", click: check }, NAMES[format]);
}

// Parquet needs what may not be installed: then its words are shown, and no broken file is saved.
async function ask(event, href) {
  event.preventDefault();
  const place = event.target.closest(".panel").querySelector(".words");
  const answer = await fetch(href).catch(() => null);
  if (!answer?.ok) {
    const told = await answer?.json().catch(() => null);
    place.textContent = told?.error ?? "The agent does not answer.";
    return announce(place.textContent);
  }
  const name =
    /filename="?([^";]+)/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "trainvitals.parquet";
  const file = make("a", { href: URL.createObjectURL(await answer.blob()), download: name });
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 10_000);
}
