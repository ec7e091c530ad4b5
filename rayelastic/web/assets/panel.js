// The panel of an operator or of an event. It shows the same moment as the rest of the page.

import * as server from "./server.js";
import { $, bytes, clock, counted, element, moment, Pairs, percent, rate, seconds, short, wall } from "./format.js";
import { Chart } from "./chart.js";
import { watermark } from "./tables.js";

const CHARTS = [
  { title: "Rate", lines: ["receives", "emits"], series: ["rate_in", "rate_out"], write: rate },
  { title: "Share of time", lines: ["busy", "waits", "blocked on output"], series: ["busy", "waited", "blocked"], write: percent, most: 1 },
  { title: "Queue fill", series: ["fill"], write: percent, most: 1 },
];
const MODELS = ["manual: runs in the thread of the upstream operator", "dynamic: any thread, from a queue", "dedicated: a thread of its own"];
const WRITTEN = { count: short, seconds, bytes, share: percent }; // the unit of a counter of the table of metrics
const KEPT = 5; // events of an operator that are listed

export class Panel {
  // view: table(), at, over(), events(), look(seconds) and chosen(event) of the page; timeline: of the job.
  constructor(view, timeline) {
    this.view = view;
    this.timeline = timeline;
    this.series = null; // of the operator, over time
    this.counted = []; // metrics of an operator that its panel lists
    this.close();
    new ResizeObserver(() => this.charts?.forEach((chart) => chart.resize())).observe($("panel-body"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  close() {
    Object.assign(this, { operator: null, event: null, charts: null, series: null });
    $("detail-panel").hidden = true;
    $("detail-panel").removeAttribute("data-operator");
    this.timeline.chosen = null;
    this.timeline.remark();
  }

  show(title, ...content) {
    $("panel-title").textContent = title;
    $("panel-body").replaceChildren(...content);
    $("detail-panel").hidden = false;
    $("detail-panel").scrollIntoView({ block: "nearest" });
  }

  // --- an event --------------------------------------------------------------------------------------------------------

  openEvent(event) {
    this.close();
    this.event = event;
    this.timeline.chosen = event.number;
    this.timeline.remark();
    const facts = { when: [clock(event.seconds), wall(event.seconds)].filter(Boolean).join(", "), where: event.where };
    if (event.rule) facts.rule = event.rule;
    this.pairs = new Pairs({ "tuples/s from sources": "" });
    this.show(event.title, ...(event.reason ? [element("p", { class: "reason" }, event.reason)] : []), new Pairs(facts).list,
      ...(Object.keys(event.seen).length ? [element("h3", {}, "What was seen"), new Pairs(event.seen).list] : []),
      ...(event.kind === "failure" ? [] : [element("h3", {}, "Result"), this.pairs.list]),
      ...(event.detail ? [element("h3", {}, "More"), element("pre", { tabindex: 0 }, event.detail)] : []),
      element("button", { type: "button", onclick: () => this.view.look(event.seconds) }, "Show the graph of that time"));
    this.update();
  }

  result() {
    const [before, after] = this.timeline.around(this.event.seconds);
    if (before === null || after === null) return "too early to say";
    const change = before > 0 ? ` (${after >= before ? "+" : "−"}${Math.abs(Math.round((after / before - 1) * 100))} %)` : "";
    return `${rate(before)} before, ${rate(after)} after${change}`;
  }

  // --- an operator -----------------------------------------------------------------------------------------------------

  async openOperator(box) {
    this.close();
    this.operator = box;
    this.info = null;
    this.pairs = new Pairs(this.values());
    const plots = element("div", { class: "plots small", id: "operator-plots" });
    this.happened = element("div", {});
    this.show(box.title, this.pairs.list, plots, this.happened);
    $("detail-panel").dataset.operator = box.title;
    this.update();
    await this.reload();
  }

  // Fetch the history of the operator.
  async reload() {
    const box = this.operator;
    if (!box) return;
    const { series, info } = await server.operator(this.view.job(), box.title);
    if (this.operator !== box) return;
    Object.assign(this, { series, info });
    this.draw();
    this.update();
  }

  draw() {
    if (!this.operator || !this.series) return;
    $("operator-plots").replaceChildren();
    this.charts = CHARTS.map((spec) => new Chart($("operator-plots"), spec, this.series));
    this.charts.forEach((chart) => chart.resize());
  }

  values() {
    const row = this.operator.rows[0], table = this.view.table(), at = this.view.at();
    const value = (name) => (table ? table[row * at.width + at[name]] : 0);
    const time = watermark(table, at, row), now = (text) => (this.view.over() ? "–" : text); // what an ended job has none of
    return {
      "execution mode": (this.info?.lane ?? this.operator.lane) || "unknown", reason: this.info?.reason || "–", "declared at": this.info?.location || "–", "threading model": MODELS[value("model")],
      "receives, emits": now(`${rate(value("rate_in"))}, ${rate(value("rate_out"))}`), busy: now(percent(value("busy"))), "waits for something outside": now(percent(value("waited"))),
      "blocked on output": now(percent(value("blocked"))), "share of the CPU cost": now(percent(value("cost"))), "queue full": now(percent(value("fill"))),
      ...Object.fromEntries(this.counted.map(({ name, title, unit }) => [title, WRITTEN[unit](value(name))])), "watermark, UTC": time === null ? "–" : moment(time), "latency p99": value("p99") ? seconds(value("p99")) : "–", "runs on": counted(value("hosts"), "PE"),
    };
  }

  about() {
    const found = this.view.events().filter((event) => event.kind !== "pass" && event.kind !== "checkpoint" && event.operators.includes(this.operator.title)).slice(-KEPT).reverse();
    const key = found.map((event) => event.number).join();
    if (key === this.happened.dataset.key) return;
    this.happened.dataset.key = key;
    this.happened.replaceChildren(...(found.length ? [element("h3", {}, "Last changes")] : []),
      ...found.map((event) => element("p", {}, element("button", { type: "button", onclick: () => this.view.chosen(event) }, `${clock(event.seconds)}: ${event.title}`))));
  }

  // --- with each frame -------------------------------------------------------------------------------------------------

  // report: what is shown now; looked: the time that is looked back at, or null.
  update(report = null, looked = null) {
    if (this.event) this.pairs.update({ "tuples/s from sources": this.result() });
    if (!this.operator) return;
    this.pairs.update(this.values());
    this.about();
    if (!this.series || !this.charts) return;
    const last = this.series.seconds.at(-1) ?? -1, table = this.view.table(), at = this.view.at();
    if (report && looked === null && !report.over && table && report.seconds > last) {
      this.series.seconds.push(report.seconds);
      for (const name of Object.keys(this.series)) if (name !== "seconds") this.series[name].push(table[this.operator.rows[0] * at.width + at[name]]);
      for (const chart of this.charts) chart.show(this.series);
    }
    for (const chart of this.charts) chart.look(looked);
  }
}
