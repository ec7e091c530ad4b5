// How numbers and names are written, and elements made. Text only ever goes in as text, never as markup.

export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
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
  for (const [limit, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (value >= limit) return `${Number((value / limit).toPrecision(3))} ${unit}`;
  return `${value ?? 0} B`;
}

export function clock(value) {
  if (value === null || value === undefined) return "";
  const whole = Math.floor(value), parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return whole < 60 ? `${value.toFixed(1)} s` : parts.map((part) => String(part).padStart(2, "0")).join(":").replace(/^00:/, "");
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

export function pairs(values) {
  return element("dl", Object.keys(values).length > 6 ? { class: "many" } : {}, ...Object.entries(values).flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, String(value))]));
}
