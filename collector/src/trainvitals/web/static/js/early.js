// Before anything is painted: the colours that were chosen here, so that no page flashes white at night.
try {
  const chosen = localStorage.getItem("trainvitals-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system's colours hold.
}

// A script that did not come leaves a page that would wait for ever.
addEventListener(
  "error",
  ({ target }) => {
    if (target.type !== "module") return;
    document.getElementById("verdict-first").textContent = "This page did not come whole: reload it.";
  },
  true,
);

// What a view is made of, asked for at once and not one import after the other.
const MODULES = {
  all: "address dom format keys live main signs stream theme verdict",
  overview: "api data_wait finding_groups findings gpu_tile host_facts overview run_card trail",
  training:
    "api axes chart chart_table event_list export_menu gestures group marks palette pick_menu picture plot_data plot_library plot_options rank_table run_picker training training_choice training_controls training_data training_specs",
  system:
    "api axes chart chart_table export_menu gestures gpu_facts group marks palette pick_menu picture plot_data plot_library plot_options system system_choice system_controls system_specs",
  alerts: "alerts api finding_card finding_groups findings past_table silence_dialog",
};
const view = new URLSearchParams(location.search).get("view");
for (const name of `${MODULES.all} ${MODULES[view] ?? MODULES.overview}`.split(" ")) {
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = `/static/js/${name}.js`;
  document.head.append(link);
}
