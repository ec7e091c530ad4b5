// The page: one job, followed live or looked back at. What is chosen goes into the address, behind the #.

import * as server from "./server.js";
import { bytes, clock, counted, element, pairs, percent, rate, seconds, short } from "./format.js";
import { Graph } from "./graph.js";
import { Known } from "./known.js";
import { Timeline } from "./timeline.js";
import { Actions } from "./actions.js";

const $ = (id) => document.getElementById(id);
const MOST_ROWS = 400; // of the journal that are shown at once
const NUMBERS = [["throughput", "tuples/s", short], ["p99", "latency p99", seconds], ["threads", "threads", short], ["queues", "queues", short], ["replicas", "replicas", short], ["cpu", "CPUs in operators", short], ["queued", "in queues", short], ["state_bytes", "keyed state", bytes]];

const page = { job: null, told: null, at: {}, events: [], opened: new Set(), detail: "", looked: null, table: null, frame: null, epoch: null, source: null };
const graph = new Graph($("graph"), chooseBox);
const timeline = new Timeline($("plots"), chooseEvent);
const actions = new Actions(() => page.job);

function problem(text) { $("problem").textContent = text; $("problem").hidden = !text; }
const guarded = (work) => (...given) => work(...given).catch((error) => problem(error.message));

// --- one job ---------------------------------------------------------------------------------------------------------

async function listJobs() {
  const found = await server.jobs();
  const names = found.map((one) => one.name);
  if ([...$("jobs").options].map((option) => option.value).join("\n") !== names.join("\n"))
    $("jobs").replaceChildren(...found.map((one) => element("option", { value: one.name }, one.name)));
  if (page.job) $("jobs").value = page.job;
  return found;
}

async function open(name) {
  page.source?.close();
  Object.assign(page, { job: name, looked: null, table: null, frame: null, opened: new Set(), epoch: null });
  location.hash = encodeURIComponent(name);
  $("jobs").value = name;
  document.title = `${name} – rayelastic`;
  problem("");
  closePanel();
  page.told = await server.story(name);
  page.at = Object.fromEntries(page.told.columns.map((column, i) => [column, i]));
  page.at.width = page.told.columns.length;
  page.events = page.told.events;
  timeline.events = page.events;
  await drawGraph();
  timeline.start(page.told.series);
  journal();
  $("actions").hidden = !(page.told.live && page.told.actions);
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
    async (said) => {
      if (!here()) return;
      problem("");
      happened(said.told);
      if (said.series) timeline.add(said.seconds, said.series);
      page.last = said;
      journal();
      if (page.looked === null) await show(said);
    },
  );
  source.onmessage = guarded((message) => known.take(JSON.parse(message.data)));
  source.addEventListener("over", guarded(async (message) => {
    source.close();
    $("actions").hidden = true;
    await known.end(JSON.parse(message.data).number);
  }));
  source.onerror = () => { if (source.readyState !== EventSource.CLOSED) problem("The page has lost its server; it tries again."); };
}

async function drawGraph() {
  const drawn = await server.graph(page.job, page.detail, page.opened, page.looked);
  graph.draw(drawn);
  page.epoch = drawn.epoch;
  $("close-all").hidden = page.opened.size === 0;
  actions.regions(drawn.regions);
  if (page.table) graph.update(page.table, page.at);
}

async function show(said) {
  page.frame = said;
  page.table = said.table ?? page.table;
  if (said.epoch !== page.epoch || (page.needsLanes && page.table)) { page.needsLanes = false; await drawGraph(); }
  if (page.table && graph.graph && graph.graph.boxes.every((box) => !box.lane) && !page.triedLanes) { page.triedLanes = true; page.needsLanes = true; }
  $("state").textContent = said.state;
  $("state").className = `chip ${said.state}`;
  $("clock").textContent = clock(said.seconds);
  $("bottleneck").textContent = said.bottleneck ? `Bottleneck: ${said.bottleneck}` : "";
  $("bottleneck").hidden = !said.bottleneck;
  graph.update(page.table, page.at);
  const series = said.series ?? {};
  $("numbers").replaceChildren(...NUMBERS.filter(([name]) => series[name] !== undefined && series[name] !== null).map(([name, title, write]) => element("div", {}, element("dt", {}, title), element("dd", {}, write(series[name])))));
  elements(said);
  moving(said.regions ?? []);
  status(said.status ?? {});
  failure(said.failure);
}

function elements(said) {
  const about = said.status?.elements ?? {}, names = ["element or link", "state", "node, process", "encryption", "threads", "stuck", "memory", "waits for the token", "sent", "received", "waits for room"];
  const words = 4, kind = (i) => ({ class: i >= words ? "n" : "" });
  $("elements").tHead.replaceChildren(element("tr", {}, ...names.map((name, i) => element("th", { scope: "col", ...kind(i) }, name))));
  const row = (cells) => element("tr", {}, ...cells.map((cell, i) => element("td", kind(i), cell)));
  const known = (pe) => { const one = about[pe]; return one ? [one.state, [one.node, one.pid].filter(Boolean).join(", "), one.links || "–"] : ["", "", ""]; };
  $("elements").tBodies[0].replaceChildren(
    ...(said.pes ?? []).map((pe) => row([pe.pe, ...known(pe.pe), String(pe.threads), String(pe.stuck), pe.rss ? bytes(pe.rss) : "–", percent(pe.token), "", "", ""])),
    ...Object.keys(about).filter((name) => !(said.pes ?? []).some((pe) => pe.pe === name)).map((name) => row([name, ...known(name), "", "", "", "", "", "", ""])),
    ...(said.links ?? []).map((link) => row([`${link.link} at ${link.pe}`, "", "", "", "", "", "", "", `${bytes(link.sent)}/s`, `${bytes(link.received)}/s`, percent(link.blocked)])),
  );
}

// Keys whose state moves: which wait now, and what is yet to come.
function moving(regions) {
  const under = regions.filter((one) => one.to_move > 0);
  $("moving").hidden = under.length === 0;
  $("moving").textContent = under.map((one) => `${one.region} moves keys: ${counted(one.to_move, "partition")} to go${one.held ? `, those of ${one.held} wait now` : ""}; moved so far: ${counted(one.moved_keys, "key")}, ${bytes(one.moved_bytes)}, the longest wait was ${seconds(one.longest_hold)}`).join(". ");
}

function status(said) {
  $("paused").hidden = !said.paused;
  if (said.elements) actions.status(said);
  const found = said.checkpoints ?? [], any = found.length > 0 || said.problem || said.taken > 0;
  $("checkpoints-part").hidden = !any;
  if (!any) return;
  const told = [`${short(said.taken)} complete, ${short(said.abandoned)} given up, gone back ${counted(said.restarts, "time")}.`];
  if (said.problem) told.push(`Problem: ${said.problem}.`);
  if (said.standstill) told.push(`All sources stand still for one: ${said.standstill}.`);
  if (said.called_again?.length) told.push(`After a loss these are called from their beginning: ${said.called_again.join(", ")}.`);
  $("checkpoints-said").textContent = told.join(" ");
  const key = JSON.stringify(found);
  if (key === page.checkpointsKey) return;
  page.checkpointsKey = key;
  const slowest = (one) => (one.slowest ? `${one.slowest}, after ${seconds(one.slowest_seconds)}` : "–");
  const name = (one) => (one.problem ? `given up: ${one.problem}` : one.place ? `savepoint ${one.number} at ${one.place}` : `${one.number}`);
  $("checkpoints").tBodies[0].replaceChildren(...[...found].reverse().map((one) => element("tr", { class: one.problem ? "bad" : "" },
    ...[[clock(one.at)], [name(one)], [seconds(one.seconds), "n"], [one.problem ? "–" : seconds(one.paused), "n"], [one.problem ? "–" : bytes(one.bytes), "n"], [one.problem ? "–" : slowest(one)]].map(([text, kind]) => element("td", { class: kind ?? "" }, text)))));
}

function failure(found) {
  $("errors").hidden = !found;
  if (!found || $("failure").dataset.reason === found.reason) return;
  $("failure").dataset.reason = found.reason;
  const told = { reason: found.reason };
  if (found.operator) told.operator = found.operator;
  if (found.tuple) told.tuple = found.tuple;
  $("failure").replaceChildren(pairs(told), ...(found.traceback ? [element("pre", { tabindex: 0 }, found.traceback)] : []));
}

// --- details ---------------------------------------------------------------------------------------------------------

function panel(title, ...content) {
  $("panel-title").textContent = title;
  $("panel-body").replaceChildren(...content);
  $("detail-panel").hidden = false;
  $("detail-panel").scrollIntoView({ block: "nearest" });
}

function closePanel() { $("detail-panel").hidden = true; timeline.chosen = null; timeline.remark(); }

function chooseEvent(event) {
  timeline.chosen = event.number;
  timeline.remark();
  const [before, after] = timeline.around(event.seconds);
  const came = before === null || after === null ? "not measured yet" : `${rate(before)} before, ${rate(after)} after${before > 0 ? ` (${after >= before ? "+" : "−"}${Math.abs(Math.round((after / before - 1) * 100))} %)` : ""}`;
  const told = { when: clock(event.seconds), where: event.where };
  if (event.rule) told.rule = event.rule;
  panel(event.title, ...(event.reason ? [element("p", { class: "reason" }, event.reason)] : []), pairs(told),
    ...(Object.keys(event.seen).length ? [element("h3", {}, "What was seen"), pairs(event.seen)] : []),
    ...(event.kind === "failure" ? [] : [element("h3", {}, "What came of it"), pairs({ "tuples of the sources": came })]),
    ...(event.detail ? [element("h3", {}, "More"), element("pre", { tabindex: 0 }, event.detail)] : []),
    element("button", { type: "button", onclick: guarded(() => look(event.seconds)) }, "Show the graph of that time"));
}

function chooseBox(box) {
  if (box.kind !== "operators") {
    page.opened.add(box.name);
    guarded(drawGraph)();
    return;
  }
  const row = box.rows[0], value = (name) => (page.table ? page.table[row * page.at.width + page.at[name]] : 0);
  const told = {
    "how it runs": box.lane || "unknown", "threading model": ["manual: in the thread that submits to it", "dynamic: any thread, from a queue", "dedicated: a thread of its own"][value("model")],
    "takes, gives": `${rate(value("rate_in"))}, ${rate(value("rate_out"))}`, busy: percent(value("busy")), "waits for something outside": percent(value("waited")),
    "blocked, for want of room": percent(value("blocked")), "share of the cost": percent(value("cost")), "queue": `${percent(value("fill"))} full, ${short(value("queued"))} tuples`,
    "tuples in, out": `${short(value("tuples_in"))}, ${short(value("tuples_out"))}`, "errors, dropped": `${short(value("errors"))}, ${short(value("dropped"))}`,
    "keys, state": `${short(value("state_keys"))}, ${bytes(value("state_bytes"))}`, "latency p99": value("p99") ? seconds(value("p99")) : "–", "runs on": counted(value("hosts"), "processing element"),
  };
  const about = page.events.filter((event) => event.kind !== "pass" && event.operators.includes(box.title)).slice(-5).reverse();
  panel(box.title, pairs(told), ...(about.length ? [element("h3", {}, "What happened to it")] : []),
    ...about.map((event) => element("p", {}, element("button", { type: "button", onclick: () => chooseEvent(event) }, `${clock(event.seconds)}: ${event.title}`))));
}

function journal() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean), every = $("passes").checked;
  const found = page.events.filter((event) => (every || event.kind !== "pass") && words.every((word) => `${event.where} ${event.title} ${event.reason} ${event.rule} ${event.kind}`.toLowerCase().includes(word)));
  const key = `${page.job}|${found.length}|${found.at(-1)?.number}|${words}|${every}`;
  timeline.events = page.events;
  timeline.remark();
  $("found").textContent = `${found.length} of ${page.events.length}`;
  if (key === page.journalKey) return;
  page.journalKey = key;
  found.sort((a, b) => a.seconds - b.seconds || a.number - b.number);
  $("journal").tBodies[0].replaceChildren(...found.slice(-MOST_ROWS).reverse().map((event) => element("tr", { role: "row" }, ...[clock(event.seconds), event.where,
    element("button", { type: "button", onclick: () => chooseEvent(event) }, event.title), event.reason + (event.rule ? ` [${event.rule}]` : "")].map((cell) => element("td", { role: "cell" }, cell)))));
}

// --- looking back ----------------------------------------------------------------------------------------------------

async function look(at) {
  page.looked = at;
  $("live").hidden = at === null;
  $("scrubbed").textContent = at === null ? "now" : clock(at);
  const all = timeline.data.seconds;
  $("scrub").value = at === null || !all.length ? 1000 : Math.round((1000 * (at - all[0])) / Math.max(1e-9, all.at(-1) - all[0]));
  const said = at === null ? page.last : await server.frame(page.job, at);
  if (!said) return;
  if (at !== null && said.operators) said.table = server.floats(said.operators);
  page.epoch = null; // the plan of that time
  await show({ ...said, state: at === null ? said.state : `as of ${clock(at)}` });
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
$("detail").addEventListener("change", guarded(async () => { page.detail = $("detail").value; page.opened.clear(); await drawGraph(); }));
$("close-all").addEventListener("click", guarded(async () => { page.opened.clear(); await drawGraph(); }));
$("zoom-in").addEventListener("click", () => graph.fit(graph.scale * 1.25));
$("zoom-out").addEventListener("click", () => graph.fit(graph.scale / 1.25));
$("zoom-fit").addEventListener("click", () => graph.fit(null));
$("panel-close").addEventListener("click", closePanel);
$("search").addEventListener("input", journal);
$("passes").addEventListener("change", journal);
$("live").addEventListener("click", guarded(() => look(null)));
$("scrub").addEventListener("input", debounced(guarded(async () => {
  const all = timeline.data.seconds, share = Number($("scrub").value) / 1000;
  if (all.length) await look(share >= 1 ? null : all[0] + share * (all.at(-1) - all[0]));
}), 80));
addEventListener("hashchange", guarded(async () => { const name = decodeURIComponent(location.hash.slice(1)); if (name && name !== page.job) await open(name); }));

$("tab-jobs").addEventListener("click", () => tab("jobs"));
$("tab-ray").addEventListener("click", () => tab("ray"));
guarded(async () => { $("tabs").hidden = !(await server.about()).ray; })();

guarded(async () => {
  const found = await listJobs(), wanted = decodeURIComponent(location.hash.slice(1));
  const first = found.find((one) => one.name === wanted) ?? found.find((one) => one.live) ?? found[0];
  if (first) await open(first.name); else problem("There is no job yet.");
  setInterval(guarded(listJobs), 5000);
})();
