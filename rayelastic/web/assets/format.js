// Formats of numbers and names, and creation of elements. Text is inserted as text, never as markup.

/**
 * The element of the page with this id.
 * @param {string} id
 * @returns {any}
 */
export const $ = (id) => document.getElementById(id);

const THOUSANDS = [{ limit: 1e9, unit: "G" }, { limit: 1e6, unit: "M" }, { limit: 1e3, unit: "k" }];
const BYTES = [{ limit: 2 ** 30, unit: "GiB" }, { limit: 2 ** 20, unit: "MiB" }, { limit: 2 ** 10, unit: "KiB" }];
const SPANS = [
  { limit: 86400, unit: "d", smaller: 3600, name: "h" },
  { limit: 3600, unit: "h", smaller: 60, name: "min" },
  { limit: 60, unit: "min", smaller: 1, name: "s" },
];

export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  for (const { limit, unit } of THOUSANDS)
    if (value >= limit) return `${Number((value / limit).toPrecision(3))}${unit}`;
  return value >= 100 || Number.isInteger(value) ? value.toFixed(0) : `${Number(value.toPrecision(3))}`;
}

export const counted = (value, noun) => `${short(value)} ${noun}${value === 1 ? "" : "s"}`;
export const rate = (value) => `${short(value)}/s`;
export const percent = (value) => `${Math.round(value * 100)} %`;

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1e-3) return `${Number((value * 1e6).toPrecision(3))} µs`;
  if (value < 1) return `${Number((value * 1e3).toPrecision(3))} ms`;
  return `${Number(value.toPrecision(3))} s`;
}

export function bytes(value) {
  for (const { limit, unit } of BYTES)
    if (value >= limit) return `${Number((value / limit).toPrecision(3))} ${unit}`;
  return `${value ?? 0} B`;
}

export function clock(value) {
  if (value === null || value === undefined) return "";
  const whole = Math.floor(value), parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return whole < 60 ? `${value.toFixed(1)} s` : parts.map((part) => String(part).padStart(2, "0")).join(":").replace(/^00:/, "");
}

let started = null; // of the job that is shown, in seconds since 1970; null: unknown

export function startedAt(value) { started = value ?? null; }

const date = (value) => new Date((started + value) * 1000);

// Return the local time of day, so many seconds after the start; with the date unless it is today. Empty: unknown.
export function wall(value) {
  if (started === null || value === null || value === undefined) return "";
  const at = date(value), time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

// Return both for the cell of a table: the time since the start and, below it, the time of day. The tooltip has UTC, as logs do.
export function when(value) {
  const day = wall(value);
  return day ? [clock(value), element("time", { class: "dim", datetime: date(value).toISOString(), title: date(value).toISOString() }, day)] : [clock(value)];
}

// Return a duration in at most two units.
export function span(value) {
  const larger = SPANS.find(({ limit }) => value >= limit);
  if (!larger) return seconds(value);
  const { limit, unit, smaller, name } = larger;
  return `${Math.floor(value / limit)} ${unit} ${Math.floor((value % limit) / smaller)} ${name}`;
}

// Return an event time, in seconds since 1970, as UTC. A number that is no plausible time stays a number.
export function moment(value) {
  return Math.abs(value) < 31_536_000 || Math.abs(value) > 8e12 ? String(Number(value.toFixed(3))) : new Date(value * 1000).toISOString().replace("T", " ").replace(/\.000Z$|Z$/, "");
}

export function middle(text, letters) {
  if (text.length <= letters) return text;
  const tail = Math.floor((letters - 1) / 2);
  return `${text.slice(0, letters - 1 - tail)}…${text.slice(text.length - tail)}`;
}

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.addEventListener("click", value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// A list of names and values. An update changes only values that differ, so selections and focus stay.
export class Pairs {
  constructor(values) {
    this.places = new Map(Object.keys(values).map((key) => [key, element("dd", {})]));
    this.list = element("dl", this.places.size > 6 ? { class: "many" } : {}, ...[...this.places].flatMap(([key, place]) => [element("dt", {}, key), place]));
    this.update(values);
  }

  update(values) {
    for (const [key, place] of this.places) if (place.textContent !== String(values[key])) place.textContent = String(values[key]);
  }
}
