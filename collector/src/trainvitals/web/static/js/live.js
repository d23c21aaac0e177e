// A snapshot a tick, as the stream brings them. What stops coming is told, and comes again by itself.

import { Stream } from "./stream.js";

const LEAST_PATIENCE_SECONDS = 5;

export class Live {
  constructor(onSnapshot, onLost) {
    this.onSnapshot = onSnapshot;
    this.onLost = onLost;
    this.patience = LEAST_PATIENCE_SECONDS;
    this.why = "";
    this.heard = this.asked = performance.now();
    this.connect();
    setInterval(() => this.watch(), 1000);
    document.addEventListener("visibilitychange", () => this.watch());
  }

  // By the worker that all tabs share, or alone where there is none.
  connect() {
    const hear = (told) => this.hear(told);
    const alone = () => (this.stream = new Stream(hear));
    if (!window.SharedWorker) return alone();
    const worker = new SharedWorker("/static/js/shared_stream.js", { type: "module" });
    const { port } = worker;
    worker.onerror = alone;
    port.onmessage = ({ data }) => hear(data);
    this.stream = { renew: () => port.postMessage("renew") };
    addEventListener("pagehide", () => port.postMessage("leave"));
    addEventListener("pageshow", ({ persisted }) => persisted && this.stream.renew());
  }

  hear({ data, lost = "" }) {
    this.why = lost;
    if (data === undefined) return this.lose();
    const snapshot = JSON.parse(data);
    this.heard = performance.now();
    this.patience = Math.max(LEAST_PATIENCE_SECONDS, 3 * snapshot.interval);
    this.onSnapshot(snapshot);
  }

  // A connection may stay open and say nothing, as after a sleep of this machine.
  watch() {
    const silent = (performance.now() - this.heard) / 1000;
    if (silent > this.patience) this.lose();
    const asked = (performance.now() - this.asked) / 1000;
    if (silent < 3 * this.patience || asked < 3 * this.patience) return;
    this.asked = performance.now();
    this.stream.renew();
  }

  lose() {
    this.onLost(this.why, (performance.now() - this.heard) / 1000);
  }
}
