// What an axis is marked with: times in the viewer's zone, spans, or counts.

import { duration, large } from "./format.js";

const DAY = 86400;
const SPANS = [
  1,
  2,
  5,
  10,
  15,
  30,
  60,
  120,
  300,
  600,
  900,
  1800,
  3600,
  7200,
  14400,
  21600,
  43200,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
  30 * DAY,
];
const two = (number) => String(number).padStart(2, "0");
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

export const axisOf = {
  time: { values: (_, splits, __, ___, step) => splits.map((at) => timeMark(at, step)) },
  span: { values: (_, splits) => splits.map((seconds) => duration(seconds)), incrs: SPANS, space: 70 },
  count: { values: (_, splits) => splits.map(large) },
};

function timeMark(seconds, step) {
  const at = new Date(1000 * seconds);
  const day = `${at.getDate()} ${MONTHS[at.getMonth()]}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (step >= DAY) return day;
  if (step < 60) return `${clock}:${two(at.getSeconds())}`;
  return clock === "00:00" ? day : clock;
}
