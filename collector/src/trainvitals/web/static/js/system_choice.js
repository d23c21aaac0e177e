// Which time and which GPUs are looked at, as the address says it.

import * as address from "./address.js";
import { LONGEST_RANGE, RANGES, USUAL_RANGE } from "./system_specs.js";

const PAUSES = { least: 2, most: 60, share: 1 / 600, perSecond: 10 };

export function choice(now) {
  const asked = address.numberOf("range");
  const range = RANGES.some(([, seconds]) => seconds === asked) ? asked : USUAL_RANGE;
  const [from, to] = [address.numberOf("from"), address.numberOf("to")];
  const isFixed = from !== null && to !== null && to > from;
  const span = isFixed ? [from, to] : [now - range, now];
  const fields = address.all("field").filter((name) => /^(gpu|host):\w+$/.test(name));
  return { range, isFixed, from: span[0], to: span[1], gpus: address.all("gpu"), fields };
}

// A zoom is held within what can be asked for, and ends with the present.
export function zoomed(from, to, now) {
  if (from === null) return { from: null, to: null };
  const end = Math.min(to, now);
  const span = Math.min(LONGEST_RANGE, to - from);
  const begin = Math.max(0, end - span);
  return { from: begin.toFixed(1), to: (begin + span).toFixed(1) };
}

// Until it is asked again: what is wide changes slowly, and a tenth of the time may go into waiting for an answer.
export const pauseAfter = (took, span) =>
  Math.max(PAUSES.least, Math.min(PAUSES.most, PAUSES.share * span), PAUSES.perSecond * took);
