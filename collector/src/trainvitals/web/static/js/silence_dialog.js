// How long nobody is to be told of what: a form over the page, with the focus in it and back where it was.

import { announce, make } from "./dom.js";
import { where } from "./findings.js";

const HOURS = [
  [1, "1 hour"],
  [4, "4 hours"],
  [12, "12 hours"],
  [24, "1 day"],
  [72, "3 days"],
  [168, "7 days"],
  [720, "30 days"],
];
const USUAL_HOURS = 4;

export function silenceDialog(finding, act) {
  const scopes = scopesOf(finding);
  const choices = scopes.map(({ title }, place) =>
    make(
      "label",
      {},
      make("input", { type: "radio", name: "scope", value: place, checked: place === 0 }),
      make("span", {}, title),
    ),
  );
  const hours = make(
    "select",
    { "aria-label": "For how long", name: "hours" },
    HOURS.map(([value, name]) => make("option", { value, selected: value === USUAL_HOURS }, name)),
  );
  const note = make("input", {
    type: "text",
    name: "note",
    maxlength: 500,
    placeholder: "Why, for the others",
    "aria-label": "Note",
  });
  const cancel = make("button", { type: "button", click: () => dialog.close() }, "Cancel");
  const form = make(
    "form",
    { method: "dialog", submit: (event) => submit(event) },
    make("fieldset", { class: "scopes" }, make("legend", { class: "hidden" }, "What to silence"), choices),
    make("p", {}, make("label", {}, "For ", hours)),
    make("p", {}, note),
    make("p", { class: "soft" }, "It stays on this page. Nobody is told of it while the silence lasts."),
    make("p", { class: "actions" }, cancel, make("button", { type: "submit", class: "main" }, "Silence")),
  );
  const dialog = make(
    "dialog",
    { "aria-labelledby": "silence-title", id: "silence-dialog", close: () => dialog.remove() },
    make("h2", { id: "silence-title" }, `Silence ${finding.kind}`),
    form,
  );
  const submit = async (event) => {
    event.preventDefault();
    const { scope } = scopes[Number(new FormData(form).get("scope"))];
    dialog.close();
    const said = note.value.trim() ? { note: note.value.trim() } : {};
    if (await act("POST", "/api/v1/silences", [{ ...scope, hours: Number(hours.value), ...said }]))
      announce(`${finding.kind} is silenced.`);
  };
  document.body.append(dialog);
  dialog.showModal();
}

// The narrowest first: what it is about stands in it.
function scopesOf(finding) {
  const named = (...names) =>
    Object.fromEntries(
      names.filter((name) => finding[name] !== undefined && finding[name] !== "").map((name) => [name, finding[name]]),
    );
  const { kind } = finding;
  // Of several ranks or GPUs it is the run, or the kind, that bears a silence.
  const place = where({ ...finding, ranks: undefined, gpus: undefined, part: undefined });
  return [
    ...(place ? [{ title: `${kind} of ${place}`, scope: named("kind", "run", "rank", "gpu", "uuid") }] : []),
    { title: `${kind}, wherever it is`, scope: { kind } },
    ...(finding.run ? [{ title: `Everything of run ${finding.run}`, scope: named("run") }] : []),
    ...(finding.uuid ? [{ title: `Everything of GPU ${finding.gpu ?? finding.uuid}`, scope: named("uuid") }] : []),
  ];
}
