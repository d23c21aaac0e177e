// Values in words. What is not known is a dash, never a nought; what is no number keeps its name.

export const UNKNOWN = "–";

const SIGNS = { NaN: "NaN", Infinity: "∞", "-Infinity": "−∞" };
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export const known = (value, words) =>
  value === null || value === undefined ? UNKNOWN : typeof value === "string" ? (SIGNS[value] ?? value) : words(value);

export const integer = (value) => known(value, (number) => whole.format(number));

// Four digits that count: 1.824, 0.00031, 2.8e-7, 12,400.
export const plain = (value) => known(value, fourDigits);

function fourDigits(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return SIGNS[String(value)];
  if (size >= 1e9 || size < 1e-3) return exponent(value);
  if (size >= 1000) return whole.format(value);
  return String(Number(value.toPrecision(4)));
}

const exponent = (value) =>
  value
    .toExponential(2)
    .replace(/\.?0+e/, "e")
    .replace("e+", "e")
    .replaceAll("-", "−");

const rounded = (value, digits) => value.toFixed(Math.abs(value) >= 100 ? 0 : digits);

function scaled(value, base, units) {
  let place = 0;
  while (Math.abs(value) >= base && place < units.length - 1) {
    value /= base;
    place += 1;
  }
  return `${rounded(value, place ? 1 : 0)} ${units[place]}`;
}

export const bytes = (value) =>
  known(value, (number) => scaled(number, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]));
export const percent = (value) => known(value, (number) => `${rounded(number, number < 10 && number > 0 ? 1 : 0)} %`);
export const share = (value) => known(value, (number) => percent(100 * number));
export const celsius = (value) => known(value, (number) => `${rounded(number, 0)} °C`);
export const watts = (value) => known(value, (number) => `${rounded(number, 0)} W`);
export const money = (value) =>
  known(value, (number) => `$${number >= 1000 ? whole.format(number) : number.toFixed(2)}`);
export const large = (value) =>
  known(value, (number) =>
    Math.abs(number) < 1000
      ? fourDigits(number)
      : scaled(number, 1000, ["", "k", "M", "G", "T"]).replace(/(\.0)? /, ""),
  );
export const hertz = (value) => known(value, (number) => `${whole.format(number / 1e6)} MHz`);
export const mebibytes = (value) => known(value, (number) => bytes(number * 2 ** 20));
export const perSecond = (value) =>
  known(value, (number) => `${scaled(number, 1000, ["B", "kB", "MB", "GB", "TB"])}/s`);

// How long a thing takes: 290 ms, 12.4 s.
export const seconds = (value) =>
  known(value, (number) => {
    if (number !== 0 && Math.abs(number) < 1) return `${Number((1000 * number).toPrecision(3))} ms`;
    return Math.abs(number) < 120 ? `${Number(number.toPrecision(3))} s` : duration(number);
  });

const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

// How long it is: 41 min, 2 h 10 min, 3 d 4 h.
export const duration = (value) =>
  known(value, (number) => {
    const left = Math.max(0, Math.round(number));
    const first = UNITS.findIndex(([size]) => left >= size);
    if (first < 0) return "0 s";
    const [size, unit] = UNITS[first];
    const rest = first < 2 ? Math.floor((left % size) / UNITS[first + 1][0]) : 0;
    return `${Math.floor(left / size)} ${unit}${rest ? ` ${rest} ${UNITS[first + 1][1]}` : ""}`;
  });

export const ago = (value) => known(value, (number) => `${duration(number)} ago`);

const two = (number) => String(number).padStart(2, "0");
const clockOf = (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

// In the viewer's zone: 14:03:22 today, 17 Nov 14:03 before, with the year where it is another.
export function time(when, now = Date.now()) {
  const at = new Date(typeof when === "number" ? 1000 * when : when);
  if (Number.isNaN(at.getTime())) return UNKNOWN;
  const today = new Date(now);
  if (at.toDateString() === today.toDateString()) return clockOf(at);
  const year = at.getFullYear() === today.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()]}${year} ${clockOf(at).slice(0, 5)}`;
}

// Without seconds: for what is only foreseen.
export function about(when, now = Date.now()) {
  const text = time(when, now);
  return text.length === 8 ? text.slice(0, 5) : text;
}

export const secondsOf = (stamp) => (typeof stamp === "number" ? stamp : Date.parse(stamp) / 1000);

// A name of a field or a kind as words: "sw_thermal_slowdown" -> "sw thermal slowdown".
export const words = (name) => name.replaceAll("_", " ");
