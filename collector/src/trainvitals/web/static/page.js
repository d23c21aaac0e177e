"use strict";
// Live readings, drawn from the event stream; unknown values show as a dash.
const UNKNOWN = "–";
const WAIT_SECONDS = 15;
const phaseSums = new Map();
const find = (id) => document.getElementById(id);
const known = (value, show) => (value === undefined || value === null ? UNKNOWN : show(value));
const whole = (unit) => (value) => (typeof value === "number" ? value.toFixed(0) + unit : String(value));
const age = (seconds) => {
  for (const [size, unit] of [[86400, " days"], [3600, " h"], [60, " min"]]) {
    if (seconds >= 2 * size) return (seconds / size).toFixed(0) + unit + " ago";
  }
  return Math.max(0, seconds).toFixed(0) + " s ago";
};
const gib = (value) => (value / 2 ** 30).toFixed(1) + " GiB";

function row(cells) {
  const line = document.createElement("tr");
  cells.forEach((text, column) => {
    const cell = line.insertCell();
    cell.textContent = text;
    if (column === 0) { cell.className = "name"; cell.title = text; }
  });
  return line;
}

function fill(name, rows, emptyText) {
  find(name).tBodies[0].replaceChildren(...rows);
  find(name).hidden = rows.length === 0;
  find("no-" + name).hidden = rows.length > 0;
  if (emptyText) find("no-" + name).textContent = emptyText;
}

function gpuRow(gpu) {
  return row([
    gpu.gpu + (gpu.name ? " " + gpu.name : ""),
    known(gpu.utilization_percent, whole("%")),
    known(gpu.memory_percent, whole("%")),
    known(gpu.temperature_celsius, whole(" °C")),
    known(gpu.power_draw_watts, whole(" W")),
    known(gpu.clock_hertz_sm, (hertz) => (hertz / 1e6).toFixed(0) + " MHz"),
    known(gpu.throttle_active, (reasons) => reasons.join(", ").replaceAll("_", " ") || "nothing"),
  ]);
}

function xidRows(xids) {
  return xids.map((xid) => {
    const line = document.createElement("li");
    line.textContent = "GPU " + xid.gpu + ": Xid " + xid.xid + ", " +
      known(xid.last_timestamp_seconds, (at) => new Date(1000 * at).toLocaleTimeString("en-GB"));
    return line;
  });
}

const place = (labels) => [
  labels.run && "run " + labels.run, labels.rank && "rank " + labels.rank,
  labels.gpu ? "GPU " + labels.gpu : labels.uuid, labels.instance,
].filter(Boolean).join(", ");

function alertRow(alert, now) {
  const { labels, annotations } = alert;
  const line = row([alert.name, labels.severity || UNKNOWN, place(labels) || UNKNOWN,
    age(now - Date.parse(alert.starts) / 1000), annotations.summary || annotations.description || UNKNOWN]);
  line.lastChild.title = annotations.description || "";
  if (labels.severity === "page") line.className = "page";
  // Only what leads to the web: an address may hold a script.
  if (/^https?:\/\//.test(annotations.runbook_url || "")) {
    const link = document.createElement("a");
    link.href = annotations.runbook_url;
    link.rel = "noreferrer";
    link.textContent = alert.name;
    line.firstChild.replaceChildren(link);
  }
  return line;
}

function drawAlerts(alerts, now) {
  fill("alerts", alerts.firing.map((alert) => alertRow(alert, now)));
  find("alerts-title").textContent = alerts.firing_count ? "Alerts: " + alerts.firing_count : "Alerts";
  find("resolved").hidden = alerts.resolved.length === 0;
  find("resolved").firstElementChild.textContent = "Ended lately: " + alerts.resolved.length;
  find("resolved").lastElementChild.replaceChildren(...alerts.resolved.map((alert) => {
    const line = document.createElement("li");
    line.textContent = [alert.name, place(alert.labels), age(now - Date.parse(alert.timestamp) / 1000)].filter(Boolean).join(" · ");
    return line;
  }));
}

// What the phases of a rank had taken at each snapshot of the last 15 seconds; a sum that falls is another run's.
function waitShare(run, rank, now) {
  const all = Object.keys(rank).filter((key) => key.startsWith("phase_seconds_total_"))
    .reduce((sum, key) => sum + rank[key], 0);
  const newest = { at: now, wait: rank.phase_seconds_total_data_wait || 0, all };
  let kept = phaseSums.get(run) || [];
  if (kept.length && (kept[kept.length - 1].all > all || kept[kept.length - 1].at > now)) kept = [];
  // The newest of those that are old enough stays as the start.
  const start = kept.findLastIndex((sums) => now - sums.at >= WAIT_SECONDS);
  kept = [...kept.slice(Math.max(0, start)), newest];
  phaseSums.set(run, kept);
  const spent = all - kept[0].all;
  return spent > 0 ? (newest.wait - kept[0].wait) / spent : undefined;
}

function runRow(run, now) {
  const first = run.ranks.find((rank) => rank.rank === 0) || {};
  const share = waitShare(run.run, first, now);
  const planned = run.planned_steps ? " of " + run.planned_steps : "";
  return row([
    run.run, run.status, String(run.ranks.length),
    known(first.step, (step) => step + planned),
    known(first.loss, (loss) => (typeof loss === "number" ? loss.toPrecision(4) : loss)),
    known(share, (ratio) => (100 * ratio).toFixed(0) + "%"),
    known(first.last_step_timestamp_seconds, (at) => age(now - at)),
  ]);
}

function hostRows(host) {
  const rows = [
    ["Processors", known(host.cpu_usage_percent, whole("%"))],
    ["Waiting for disks", known(host.cpu_iowait_ratio, (ratio) => (100 * ratio).toFixed(1) + "%")],
    ["Memory used", known(host.memory_used_bytes, gib) + " of " + known(host.memory_total_bytes, gib)],
    ["Load, 1 min", known(host.load_average_1m, (load) => load.toFixed(2))],
    ...(host.filesystems || []).map((disk) => ["Free on " + disk.mountpoint, gib(disk.free_bytes) + " of " + gib(disk.size_bytes)]),
  ];
  return rows.map(([name, text]) => {
    const pair = document.createElement("div");
    const term = pair.appendChild(document.createElement("dt"));
    const value = pair.appendChild(document.createElement("dd"));
    term.textContent = name;
    value.textContent = text;
    return pair;
  });
}

// The words are read out by screen readers whenever they change: the time of day stands apart.
function say(text, bad) {
  if (find("state").textContent !== text) find("state").textContent = text;
  find("state").className = bad ? "bad" : "";
  document.title = (bad ? "✗ " : "✓ ") + (find("node").textContent || "TrainVitals");
}

function draw(now) {
  const sources = Object.values(now.sources);
  const problems = [...now.problems, ...sources.filter((source) => source.up === false).map((source) => source.problem)];
  heard = Date.now();
  patience = Math.max(5000, 3000 * now.interval);
  find("node").textContent = now.node;
  document.querySelector("main").classList.remove("old");
  drawAlerts(now.alerts, Date.now() / 1000);
  if (now.timestamp === null) return;
  find("at").textContent = new Date(now.timestamp).toLocaleTimeString();
  say(problems.length ? "✗ " + problems.join("; ") : "✓ Live", problems.length > 0);
  const why = sources.map((source) => source.problem).filter(Boolean).join("; ");
  fill("gpus", now.gpus.map(gpuRow), why || "No GPU answers.");
  find("xids").replaceChildren(...xidRows(now.xids));
  find("xids").hidden = now.xids.length === 0;
  const there = new Set(now.runs.map((run) => run.run));
  for (const run of phaseSums.keys()) if (!there.has(run)) phaseSums.delete(run);
  fill("runs", now.runs.map((run) => runRow(run, Date.parse(now.timestamp) / 1000)));
  find("host").replaceChildren(...hostRows(now.host));
}

function lose() {
  document.querySelector("main").classList.add("old");
  say("✗ Connection lost; what is shown is old. Trying again…", true);
}

function connect() {
  const live = new EventSource("/api/v1/stream");
  live.onmessage = (event) => draw(JSON.parse(event.data));
  live.onerror = () => {
    lose();
    // It tries again by itself unless it was answered with an error.
    if (live.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  };
}

let heard = Date.now();
let patience = 5000;
setInterval(() => { if (Date.now() - heard > patience) lose(); }, 1000);
connect();
