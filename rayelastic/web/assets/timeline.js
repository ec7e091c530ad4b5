// Charts of the job over time, with a marker for each event. Checkpoints have markers only on request.

import { bytes, clock, element, rate, seconds, short, wall } from "./format.js";
import { Chart } from "./chart.js";

const PLOTS = [
  { title: "Throughput of sources", series: ["throughput"], write: rate },
  { title: "Latency from source to sink", lines: ["p50", "p99"], series: ["p50", "p99"], write: seconds },
  { title: "Threads and CPUs", lines: ["threads", "CPUs used by operators"], series: ["threads", "cpu"], write: short, steps: true },
  { title: "Scheduler queues", series: ["queues"], write: short, steps: true },
  { title: "Replicas of the most replicated region", series: ["replicas"], write: short, steps: true },
  { title: "Queued tuples", series: ["queued"], write: short },
  { title: "Keys being moved", lines: ["partitions to go", "waiting"], series: ["to_move", "held"], write: short, steps: true },
  { title: "Keyed state", series: ["state_bytes"], write: bytes, optional: true },
];
const MARKS = 60; // markers of a chart: the last ones
const MARK = 13, ROWS = 8; // pixels of a marker; rows of them that a chart has room for

// Return whether a chart has values from a point on; an optional one needs a value besides 0.
const shows = (plot, data, from) => plot.series.some((name) => data[name].slice(from).some((value) => value !== null && !(plot.optional && value === 0)));

export class Timeline {
  constructor(place, choose) {
    this.place = place;
    this.choose = choose;
    this.events = [];
    this.chosen = null;
    this.checkpoints = false; // whether they have markers
    new ResizeObserver(() => this.resize()).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.start(this.data));
  }

  start(data) {
    this.data = data;
    this.place.replaceChildren();
    const has = (plot) => shows(plot, data, 0) || (data.seconds.length === 0 && !plot.optional);
    this.charts = PLOTS.filter(has).map((spec) => new Chart(this.place, spec, data, (chart) => this.mark(chart)));
    this.redraw();
    this.resize(); // the first ones were made when they had the row for themselves
  }

  add(at, series) {
    const last = this.data.seconds.at(-1);
    if (last !== undefined && at <= last) return;
    this.data.seconds.push(at);
    for (const name of Object.keys(this.data)) if (name !== "seconds") this.data[name].push(series[name] ?? null);
    this.grown(this.data.seconds.length - 1);
  }

  // The time of the last point.
  get last() { return this.data.seconds.at(-1) ?? -1; }

  // Append points that were missed.
  catchUp(more) {
    if (more.seconds.length === 0) return;
    const before = this.data.seconds.length;
    for (const name of Object.keys(this.data)) this.data[name].push(...more[name]);
    this.grown(before);
  }

  // Show the points after the first `before` ones; a chart appears with its first value.
  grown(before) {
    const first = (plot) => shows(plot, this.data, before);
    if (before < 3 || PLOTS.some((plot) => first(plot) && !this.charts.some(({ spec }) => spec === plot))) this.start(this.data);
    else this.redraw();
  }

  redraw() {
    for (const chart of this.charts ?? []) chart.show(this.data);
    this.remark();
  }

  remark() {
    for (const chart of this.charts ?? []) this.mark(chart);
  }

  // Draw a cursor at an earlier moment; null: none.
  look(at) {
    for (const chart of this.charts ?? []) chart.look(at);
  }

  mark(chart) {
    const plot = chart.plot;
    if (!plot || plot.scales.x.max === undefined || plot.scales.x.max === null) return;
    const { min, max } = plot.scales.x;
    const wanted = (event) => event.kind !== "pass" && (this.checkpoints || event.kind !== "checkpoint");
    const shown = this.events.filter(wanted).slice(-MARKS).sort((a, b) => a.seconds - b.seconds || a.number - b.number);
    const key = `${shown.map((event) => event.number)}|${this.chosen}|${plot.width}|${min}|${max}`;
    if (chart.marked === key) return;
    chart.marked = key;
    const kept = new Map([...plot.over.querySelectorAll(".mark")].map((one) => [one.dataset.number, one]));
    let last = null; // they are in the order of time, for keyboards too
    const ends = []; // of each row of markers: where the last one ends, so that all can be pressed
    for (const event of shown) {
      const number = String(event.number);
      const button = kept.get(number) ?? this.marker(event);
      kept.delete(number);
      const x = plot.valToPos(event.seconds, "x");
      const row = ((found) => (found < 0 ? ends.length : found))(ends.findIndex((end) => x >= end));
      ends[row] = x + MARK;
      button.style.left = `${Math.max(0, Math.min(plot.over.clientWidth, x))}px`;
      button.style.top = `${(row % ROWS) * MARK}px`;
      button.classList.toggle("chosen", this.chosen === event.number);
      if (last && last.nextSibling !== button) last.after(button);
      else if (!button.isConnected) plot.over.append(button);
      last = button;
    }
    for (const gone of kept.values()) gone.remove();
  }

  marker(event) {
    const when = [clock(event.seconds), wall(event.seconds)].filter(Boolean).join(", ");
    return element("button", { type: "button", class: `mark ${event.kind}`, "data-number": event.number, title: `${when}: ${event.title}`, "aria-label": `${when}, ${event.kind}: ${event.title}`, onclick: () => this.choose(event) });
  }

  resize() {
    for (const chart of this.charts ?? []) chart.resize();
  }

  // Return the mean throughput before and after an event.
  around(at, span = 3) {
    const mean = (from, to) => {
      const found = this.data.seconds.map((t, i) => [t, this.data.throughput[i]]).filter(([t, value]) => t > from && t <= to && value !== null);
      return found.length ? found.reduce((sum, [, value]) => sum + value, 0) / found.length : null;
    };
    return [mean(at - span, at), mean(at + 0.5, at + 0.5 + span)];
  }
}
