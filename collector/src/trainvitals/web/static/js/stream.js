// The event stream of the agent: `tell({ data })` the text of each snapshot, `tell({ lost })` that it ended, and why.

const AGAIN_SECONDS = 3;

export class Stream {
  constructor(tell) {
    this.tell = tell;
    this.begin();
  }

  begin() {
    clearTimeout(this.again);
    this.source?.close();
    this.began = performance.now();
    const source = (this.source = new EventSource("/api/v1/stream"));
    source.onmessage = ({ data }) => this.tell({ data });
    source.onerror = () => this.fail(source);
  }

  // Several tabs may ask for that at once.
  renew() {
    if (performance.now() - this.began > 1000 * AGAIN_SECONDS) this.begin();
  }

  // It tries again by itself, unless it was answered with an error: then why is asked for.
  async fail(source) {
    this.tell({ lost: "" });
    if (source.readyState !== EventSource.CLOSED) return;
    this.again = setTimeout(() => this.begin(), 1000 * AGAIN_SECONDS);
    const answer = await fetch("/api/v1/snapshot", { method: "HEAD" }).catch(() => null);
    if (answer?.status === 401) this.tell({ lost: "This page wants you to log in again: reload it." });
  }
}
