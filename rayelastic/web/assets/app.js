// The web UI: it follows one job live, or shows an earlier moment of it. The address names the chosen job behind the #.

import * as server from "./server.js";
import { $, bytes, clock, element, seconds, short, startedAt, wall, when } from "./format.js";
import { Actions } from "./actions.js";
import { Graph } from "./graph.js";
import { Known } from "./known.js";
import { Panel } from "./panel.js";
import { checkpoints, elements, eventTimes, failure, moving, verdict } from "./tables.js";
import { Timeline } from "./timeline.js";

const MOST_ROWS = 400; // of the event log that are shown at once
const MANY = 100; // boxes from which drawing takes so long that it is announced first
const PAINTED = 30; // milliseconds after which the browser has shown an announcement
const RATES = ["rate_in", "rate_out", "busy", "waited", "blocked", "cost"]; // columns that an ended job has none of
/** @type {[string, string, (value: number) => string][]} */
const NUMBERS = [["throughput", "tuples/s from sources", short], ["p99", "latency p99", seconds], ["threads", "threads", short], ["queues", "scheduler queues", short], ["replicas", "replicas", replicas], ["cpu", "CPUs used", short], ["queued", "queued tuples", short], ["state_bytes", "keyed state", bytes]];
const LEFT = new Set(["state_bytes"]); // of these, what a job that is over still has; 0 is nothing

const page = { job: null, story: null, at: {}, events: [], opened: new Set(), detail: "", looked: null, table: null, shown: null, frame: null, last: null, epoch: null, source: null, turn: 0, heard: null };
const graph = new Graph($("graph"), chooseBox);
const timeline = new Timeline($("plots"), (event) => panel.openEvent(event));
const panel = new Panel({ job: () => page.job, table: () => page.shown, at: () => page.at, over: () => page.frame?.over ?? false, events: () => page.events, look: guarded(look), chosen: (event) => panel.openEvent(event) }, timeline);
const actions = new Actions(() => page.job);

function problem(text, code = "") {
  $("problem").textContent = text;
  $("problem").dataset.code = code;
  $("problem").hidden = !text;
}

// Say that the server is unreachable, and when the shown values were current.
function gone() {
  const seen = page.last && page.heard ? `; last seen at ${clock(page.last.seconds)} (${page.heard.toLocaleTimeString("en-GB")})` : "";
  problem(`The web UI's process has ended or can't be reached${seen}.`, "gone");
  if (!page.last?.over) $("state").classList.add("stale");
  $("actions").hidden = true;
}

function guarded(work) {
  return (...given) => work(...given).catch((error) => (error instanceof server.Gone ? gone() : problem(error.message, "error")));
}

// --- one job ---------------------------------------------------------------------------------------------------------

async function listJobs() {
  const found = await server.jobs();
  const names = found.map((one) => one.name);
  if ([...$("jobs").options].map((option) => option.value).join("\n") !== names.join("\n"))
    $("jobs").replaceChildren(...found.map((one) => element("option", { value: one.name }, one.name)));
  if (page.job) $("jobs").value = page.job;
  if ($("problem").dataset.code === "gone" && page.source?.readyState === EventSource.CLOSED) await open(page.job); // it is there again
  page.heard = new Date();
  return found;
}

async function open(name) {
  page.source?.close();
  Object.assign(page, { job: name, looked: null, table: null, shown: null, frame: null, last: null, opened: new Set(), epoch: null });
  location.hash = encodeURIComponent(name);
  $("jobs").value = name;
  $("job-name").textContent = name;
  document.title = `${name} – rayelastic`;
  problem("");
  panel.close();
  verdict(null);
  page.story = await server.story(name);
  page.at = Object.fromEntries(page.story.columns.map((column, i) => [column, i]));
  page.at.width = page.story.columns.length;
  panel.counted = page.story.counted;
  startedAt(page.story.started);
  page.events = page.story.events;
  timeline.events = page.events;
  await drawGraph(true);
  timeline.start(page.story.series);
  eventLog();
  $("actions").hidden = !(page.story.live && page.story.actions);
  follow(name);
}

function follow(name) {
  const source = (page.source = server.stream(name)), here = () => page.source === source;
  const next = () => (page.events.at(-1)?.number ?? -1) + 1;
  const happened = (events) => { const from = next(); page.events.push(...events.filter((event) => event.number >= from)); };
  const known = new Known(
    () => server.frame(name, null),
    async (whole) => {
      if (!here()) return;
      const [events, series] = await Promise.all([whole.events > next() ? server.events(name, next()) : [], server.series(name, timeline.last)]);
      if (!here()) return;
      happened(events);
      timeline.catchUp(series);
    },
    async (report) => {
      if (!here()) return;
      page.heard = new Date();
      problem("");
      startedAt(report.started);
      happened(report.new_events);
      if (report.series) timeline.add(report.seconds, report.series);
      page.last = report;
      eventLog();
      if (page.looked === null) await show(report);
    },
  );
  source.onmessage = guarded((message) => known.take(JSON.parse(message.data)));
  source.addEventListener("over", guarded(async (message) => {
    source.close();
    $("actions").hidden = true;
    await known.end(JSON.parse(message.data).number);
  }));
  source.onerror = () => { if (here()) gone(); };
}

// home: fit the graph to the width and show where tuples come from.
async function drawGraph(home = false) {
  const turn = ++page.turn;
  working("Arranging the graph …");
  try {
    const drawn = await server.graph(page.job, page.detail, page.opened, page.looked);
    if (turn !== page.turn) return;
    if (drawn.boxes.length > MANY) {
      working(`Drawing ${drawn.boxes.length} boxes …`);
      await new Promise((painted) => setTimeout(painted, PAINTED));
      if (turn !== page.turn) return;
    }
    graph.draw(drawn, home);
    page.epoch = drawn.epoch;
    $("close-all").hidden = page.opened.size === 0;
    actions.regions(drawn.regions);
    if (page.shown) graph.update(page.shown, page.at, page.frame?.over);
  } finally {
    if (turn === page.turn) working("");
  }
}

function working(text) {
  $("graph").setAttribute("aria-busy", String(text !== ""));
  $("graph-work").textContent = text;
  $("graph-work").hidden = !text;
}

// Return the table of a job that has ended: its totals stay, its rates are 0.
function stilled(table) {
  const still = table.slice();
  for (const name of RATES) for (let at = page.at[name]; at < still.length; at += page.at.width) still[at] = 0;
  return still;
}

async function show(report) {
  page.frame = report;
  page.table = report.table ?? page.table;
  page.shown = report.over && page.table ? stilled(page.table) : page.table;
  if (report.epoch !== page.epoch) await drawGraph();
  $("state").textContent = report.state;
  $("state").className = `chip ${report.state}`;
  $("state").dataset.state = report.state;
  $("clock").replaceChildren(...(report.seconds === undefined ? [] : when(report.seconds)));
  verdict(report.verdict);
  graph.update(page.shown, page.at, report.over);
  numbers(report);
  elements(report);
  $("lines-part").hidden = Boolean(report.over) && timeline.data.seconds.length < 2; // too short for lines
  eventTimes(page.shown, page.at, page.story.operators, report.started && report.seconds !== undefined && !report.over ? report.started + report.seconds : null);
  moving(report.regions ?? []);
  $("history").textContent = report.status?.history ?? "";
  $("paused").hidden = !report.status?.paused;
  if (report.status?.elements) actions.status(report.status);
  checkpoints(report.status ?? {});
  failure(report.failure);
  timeline.look(page.looked);
  panel.update(report, page.looked);
}

// Replicas of each region, not their sum: two regions of one replica aren't replicated.
function replicas(most) {
  const scalable = graph.graph?.regions.filter((region) => region.scalable).map((region) => region.replicas) ?? [];
  const least = Math.min(...scalable);
  if (!scalable.length) return short(most);
  return least === Math.max(...scalable) ? `${least}${scalable.length > 1 ? " each" : ""}` : `${least} to ${Math.max(...scalable)}`;
}

function numbers(report) {
  const series = report.series ?? {}, known = (name) => series[name] !== undefined && series[name] !== null;
  const shown = NUMBERS.filter(([name]) => known(name) && (!report.over || LEFT.has(name)) && (series[name] > 0 || !LEFT.has(name))).map(([name, title, write]) => [name, title, write(series[name])]);
  if (report.over) shown.unshift(["seconds", "ran for", seconds(report.seconds)]);
  if (report.over && page.table && report.pes?.length) { // else nobody counted
    const emitted = page.story.sources.reduce((sum, row) => sum + page.table[row * page.at.width + page.at.tuples_out], 0);
    shown.splice(1, 0, ["emitted", "tuples from sources", short(emitted)]);
  }
  $("numbers").replaceChildren(...shown.map(([name, title, text]) => element("div", { "data-number": name }, element("dt", {}, title), element("dd", {}, text))));
}

// --- details ---------------------------------------------------------------------------------------------------------

function chooseBox(box) {
  if (box.kind === "operators") return guarded(() => panel.openOperator(box))();
  page.opened.add(box.name);
  return guarded(drawGraph)();
}

function eventLog() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const kinds = { pass: $("passes").checked, checkpoint: $("checkpoints-too").checked }; // others are always shown
  const found = page.events.filter((event) => (kinds[event.kind] ?? true) && words.every((word) => `${event.where} ${event.title} ${event.reason} ${event.rule} ${event.kind}`.toLowerCase().includes(word)));
  const key = JSON.stringify([page.job, found.length, found.at(-1)?.number, words, kinds, wall(0)]);
  timeline.events = page.events;
  timeline.checkpoints = kinds.checkpoint;
  timeline.remark();
  if (key === page.logKey) return;
  page.logKey = key;
  const shown = found.sort((a, b) => a.seconds - b.seconds || a.number - b.number).slice(-MOST_ROWS);
  Object.assign($("found").dataset, { found: found.length, shown: shown.length });
  $("found").textContent = shown.length < found.length ? `the last ${shown.length} of ${found.length}` : `${found.length} ${found.length === 1 ? "event" : "events"}`;
  $("events").tBodies[0].replaceChildren(...shown.reverse().map((event) => element("tr", { role: "row", "data-kind": event.kind }, ...[when(event.seconds), [event.where],
    [element("button", { type: "button", onclick: () => panel.openEvent(event) }, event.title)], [event.reason + (event.rule ? ` [${event.rule}]` : "")]].map((cell) => element("td", { role: "cell" }, ...cell)))));
}

// --- looking back ----------------------------------------------------------------------------------------------------

async function look(at) {
  page.looked = at;
  $("live").hidden = at === null;
  $("scrubbed").textContent = at === null ? "now" : clock(at);
  const all = timeline.data.seconds;
  $("scrub").value = at === null || !all.length ? 1000 : Math.round((1000 * (at - all[0])) / Math.max(1e-9, all.at(-1) - all[0]));
  const report = at === null ? page.last : await server.frame(page.job, at);
  if (!report || page.looked !== at) return;
  if (at !== null && report.operators) report.table = server.floats(report.operators);
  page.epoch = null; // the plan of that time
  await show(at === null ? report : { ...report, over: false, state: `as of ${clock(at)}` });
  if (at === null) await panel.reload();
}

function tab(name) {
  for (const one of ["jobs", "ray"]) $(`tab-${one}`).setAttribute("aria-pressed", String(one === name));
  if (name === "ray" && !$("ray").src) $("ray").src = "ray/";
  $("ray").hidden = name !== "ray";
  $("main").hidden = name === "ray";
  dispatchEvent(new Event("resize"));
}

function debounced(work, milliseconds) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(work, milliseconds); };
}

// --- start -----------------------------------------------------------------------------------------------------------

$("jobs").addEventListener("change", guarded(() => open($("jobs").value)));
$("detail").addEventListener("change", guarded(async () => { page.detail = $("detail").value; page.opened.clear(); await drawGraph(true); }));
$("close-all").addEventListener("click", guarded(async () => { page.opened.clear(); await drawGraph(true); }));
$("zoom-in").addEventListener("click", () => graph.fit(graph.scale * 1.25));
$("zoom-out").addEventListener("click", () => graph.fit(graph.scale / 1.25));
$("zoom-fit").addEventListener("click", () => graph.fit(null));
$("panel-close").addEventListener("click", () => panel.close());
$("search").addEventListener("input", eventLog);
$("passes").addEventListener("change", eventLog);
$("checkpoints-too").addEventListener("change", eventLog);
$("live").addEventListener("click", guarded(() => look(null)));
$("scrub").addEventListener("input", debounced(guarded(async () => {
  const all = timeline.data.seconds, share = Number($("scrub").value) / 1000;
  if (all.length) await look(share >= 1 ? null : all[0] + share * (all.at(-1) - all[0]));
}), 80));
addEventListener("hashchange", guarded(async () => { const name = decodeURIComponent(location.hash.slice(1)); if (name && name !== page.job) await open(name); }));
addEventListener("resize", () => { if (graph.zoom === null) graph.fit(null); });

$("tab-jobs").addEventListener("click", () => tab("jobs"));
$("tab-ray").addEventListener("click", () => tab("ray"));
guarded(async () => { $("tabs").hidden = !(await server.about()).ray; })();

guarded(async () => {
  const found = await listJobs(), wanted = decodeURIComponent(location.hash.slice(1));
  const first = found.find((one) => one.name === wanted) ?? found.find((one) => one.live) ?? found[0];
  if (first) await open(first.name); else problem("There is no job yet.", "none");
  setInterval(guarded(listJobs), 5000);
})();
