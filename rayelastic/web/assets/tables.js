// The tables below the charts: PEs and links, moving keys, checkpoints, event times, a failure.

import { $, bytes, counted, element, moment, Pairs, percent, seconds, short, span, when } from "./format.js";

const COLUMNS = ["PE or link", "state", "node, process", "encryption", "threads", "stuck", "memory", "waits for the GIL", "sent", "received", "blocked on output"];
const WORDS = 4; // columns of text, which come first

export function elements(report) {
  const about = report.status?.elements ?? {}, pes = report.pes ?? [];
  const kind = (i) => ({ class: i >= WORDS ? "n" : "" });
  $("elements").tHead.replaceChildren(element("tr", {}, ...COLUMNS.map((name, i) => element("th", { scope: "col", ...kind(i) }, name))));
  const row = (cells) => element("tr", {}, ...cells.map((cell, i) => element("td", kind(i), cell)));
  const known = (pe, silent = false) => { const one = about[pe]; return one ? [silent ? "no answer" : one.state, [one.node, one.pid].filter(Boolean).join(", "), one.links || "–"] : ["", "", ""]; };
  $("elements").tBodies[0].replaceChildren(
    ...pes.map((pe) => row([pe.pe, ...known(pe.pe, pe.silent), String(pe.threads), String(pe.stuck), pe.rss ? bytes(pe.rss) : "–", percent(pe.gil), "", "", ""])),
    ...Object.keys(about).filter((name) => !pes.some((pe) => pe.pe === name)).map((name) => row([name, ...known(name), "", "", "", "", "", "", ""])),
    ...(report.links ?? []).map((link) => row([`${link.link} at ${link.pe}`, "", "", "", "", "", "", "", `${bytes(link.sent)}/s`, `${bytes(link.received)}/s`, percent(link.blocked)])),
  );
}

// Show the migration of keys: waiting ones, and partitions to go.
export function moving(regions) {
  const under = regions.filter((one) => one.to_move > 0);
  $("moving").hidden = under.length === 0;
  $("moving").dataset.toMove = under.reduce((sum, one) => sum + one.to_move, 0);
  $("moving").dataset.held = under.reduce((sum, one) => sum + one.held, 0);
  const text = (one) => `${one.region} moves keys: ${counted(one.to_move, "partition")} to go, ${short(one.held)} waiting now. Moved so far: ${counted(one.moved_keys, "key")}, ${bytes(one.moved_bytes)}; longest wait ${seconds(one.longest_hold)}.`;
  $("moving").textContent = under.map(text).join(" ");
}

let shown = ""; // the checkpoints in the table

export function checkpoints(report) {
  const found = report.checkpoints ?? [], any = found.length > 0 || report.problem || report.taken > 0;
  $("checkpoints-part").hidden = !any;
  if (!any) return;
  const sentences = [`${counted(report.taken, "checkpoint")} complete, ${short(report.abandoned)} abandoned, ${report.restarts === 1 ? "1 recovery" : `${short(report.restarts)} recoveries`}.`];
  if (report.problem) sentences.push(`Problem: ${report.problem}.`);
  if (report.standstill) sentences.push(`All sources pause for a checkpoint: ${report.standstill}.`);
  if (report.called_again?.length) sentences.push(`A recovery calls these from their beginning: ${report.called_again.join(", ")}.`);
  $("checkpoints-text").textContent = sentences.join(" ");
  for (const name of ["taken", "abandoned", "restarts"]) $("checkpoints-text").dataset[name] = report[name];
  const key = JSON.stringify(found);
  if (key === shown) return;
  shown = key;
  const slowest = (one) => (one.slowest ? `${one.slowest}, after ${seconds(one.slowest_seconds)}` : "–");
  const name = (one) => (one.problem ? `abandoned: ${one.problem}` : one.place ? `savepoint ${one.number} at ${one.place}` : `${one.number}`);
  const kind = (one) => (one.problem ? "abandoned" : one.place ? "savepoint" : "checkpoint");
  const unless = (one, text) => (one.problem ? "–" : text);
  $("checkpoints").tBodies[0].replaceChildren(...[...found].reverse().map((one) => element("tr", { class: one.problem ? "bad" : "", "data-kind": kind(one), "data-slowest": one.slowest },
    element("td", {}, ...when(one.at)), element("td", {}, name(one)), element("td", { class: "n" }, seconds(one.seconds)),
    element("td", { class: "n" }, unless(one, seconds(one.paused))), element("td", { class: "n" }, unless(one, bytes(one.bytes))), element("td", {}, unless(one, slowest(one))))));
}

export function failure(found) {
  $("errors").hidden = !found;
  if (!found || $("failure").dataset.reason === found.reason) return;
  $("failure").dataset.reason = found.reason;
  $("failure").dataset.operator = found.operator ?? "";
  const facts = { reason: found.reason, code: found.code };
  if (found.operator) facts.operator = found.operator;
  if (found.tuple) facts.tuple = found.tuple;
  $("failure").replaceChildren(new Pairs(facts).list, ...(found.traceback ? [element("pre", { tabindex: 0 }, found.traceback)] : []));
}

const CAUSES = { waiting: "its function waits for something outside", skewed_key: "skewed key", expensive: "expensive function", gil: "the GIL" };

// Show the bottleneck, or that the job keeps up with its sources; nothing for a job that has ended.
export function verdict(found) {
  $("verdict").hidden = !found;
  $("verdict").dataset.code = found?.code ?? "";
  $("verdict").dataset.operator = found?.operator ?? found?.busiest ?? "";
  $("verdict").classList.toggle("good", Boolean(found) && found.code !== "bottleneck");
  const busiest = found?.busiest ? `; the busiest operator, ${found.busiest}, is ${percent(Math.min(1, found.share))} busy` : "";
  if (!found) $("verdict").replaceChildren();
  else if (found.code === "keeps_up") $("verdict").replaceChildren(`Keeps up with its sources${busiest}.`);
  else if (found.code === "no_bottleneck") $("verdict").replaceChildren(`No operator is a bottleneck${busiest}. The sources emit as fast as they can.`);
  else $("verdict").replaceChildren(element("strong", {}, `Bottleneck: ${found.operator} on ${found.pe}`), ` (${CAUSES[found.cause] ?? found.cause}). ${found.reason} ${found.rule}`);
}

const MOST_TIMES = 20, MOST_NAMES = 8; // watermarks in the table of event times, and operators that each names
const LIVE = 604_800; // seconds: older data is read anew, and how far it lags behind the clock says nothing

// Return the watermark of an operator, seconds since 1970; null: none.
export function watermark(table, at, row) {
  const whole = table ? table[row * at.width + at.watermark] : -Infinity;
  return Number.isFinite(whole) ? whole + table[row * at.width + at.watermark_rest] : null;
}

// Return the lag of a watermark behind the clock, if the data is recent, and behind the newest watermark of the job.
export function lag(value, newest, now) {
  const behind = now - value;
  const clockSays = now !== null && behind > -60 && behind < LIVE ? span(Math.max(0, behind)) : "–";
  return [clockSays, newest - value > 0 ? span(newest - value) : "0 s"];
}

// Operators with the same watermark share a row; those that lag most come first. now: of the frame, seconds since 1970, or null.
export function eventTimes(table, at, names, now) {
  const rows = new Map();
  names.forEach((name, row) => { const value = watermark(table, at, row); if (value !== null) rows.set(value, [...(rows.get(value) ?? []), name]); });
  $("event-times-part").hidden = rows.size === 0;
  if (!rows.size) return;
  const newest = Math.max(...rows.keys()), shown = [...rows].sort(([a], [b]) => a - b).slice(0, MOST_TIMES);
  $("event-times-text").textContent = shown.length < rows.size ? `The ${shown.length} watermarks that lag most, of ${rows.size}.` : "";
  $("event-times").tBodies[0].replaceChildren(...shown.map(([value, found]) => {
    const [clockSays, behind] = lag(value, newest, now), more = found.length - MOST_NAMES;
    const text = found.slice(0, MOST_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
    return element("tr", { "data-watermark": value }, element("td", { title: found.join(", ") }, text), element("td", { class: "n" }, moment(value)), element("td", { class: "n" }, clockSays), element("td", { class: "n" }, behind));
  }));
}
