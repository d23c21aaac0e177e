// The share of its time that a run waited for data in the last 15 seconds, from the sums that each snapshot brings.

const WAIT_SECONDS = 15;
const sums = new Map();

// A sum that falls is another run's: it is measured anew.
export function waitShare(run, rank, now) {
  const phases = Object.keys(rank).filter((key) => key.startsWith("phase_seconds_total_"));
  const all = phases.reduce((sum, key) => sum + rank[key], 0);
  const newest = { at: now, wait: rank.phase_seconds_total_data_wait ?? 0, all };
  let kept = sums.get(run) ?? [];
  if (kept.length && (kept.at(-1).all > all || kept.at(-1).at > now)) kept = [];
  // The newest of those that are old enough stays as the start.
  const start = kept.findLastIndex((one) => now - one.at >= WAIT_SECONDS);
  kept = [...kept.slice(Math.max(0, start)), newest];
  sums.set(run, kept);
  const spent = all - kept[0].all;
  return spent > 0 ? (newest.wait - kept[0].wait) / spent : undefined;
}

export function forgetOthers(runs) {
  for (const run of sums.keys()) if (!runs.has(run)) sums.delete(run);
}
