// Time lines: one plot a quantity, with a marker for everything that happened. uPlot draws.

import { bytes, clock, element, rate, seconds, short } from "./format.js";

const PLOTS = [
  { title: "Throughput of the sources", series: ["throughput"], write: rate },
  { title: "Latency to the sinks", lines: ["p50", "p99"], series: ["p50", "p99"], write: seconds },
  { title: "Threads and CPUs", lines: ["threads", "CPUs used by operators"], series: ["threads", "cpu"], write: short, steps: true },
  { title: "Queues in front of operators", series: ["queues"], write: short, steps: true },
  { title: "Replicas of keyed regions", series: ["replicas"], write: short, steps: true },
  { title: "Tuples in queues", series: ["queued"], write: short },
  { title: "Keys on the move", lines: ["partitions to go", "waiting"], series: ["to_move", "held"], write: short, steps: true },
  { title: "Keyed state", series: ["state_bytes"], write: bytes },
];
const POWERS = [...Array(50).keys()].map((power) => 2 ** power); // bytes between two lines of a grid
const HEIGHT = 150, MARKS = 60, CHECKPOINTS = 20; // pixels; markers of a plot: the last ones, and of these checkpoints
const MARK = 13, ROWS = 8; // pixels of a marker; rows of them that a plot has room for

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Timeline {
  constructor(place, choose) {
    this.place = place;
    this.choose = choose;
    this.events = [];
    this.chosen = null;
    new ResizeObserver(() => this.resize()).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.start(this.data));
  }

  start(data) {
    this.data = data;
    this.place.replaceChildren();
    this.plots = PLOTS.filter((plot) => plot.series.some((name) => data[name].some((value) => value !== null)) || data.seconds.length === 0).map((plot) => this.plot(plot));
    this.redraw();
    this.resize(); // the first ones were made when they had the row for themselves
  }

  plot(plot) {
    const holder = element("div", { class: "plot" }, element("h3", {}, plot.title, ...(plot.lines ?? []).flatMap((name, i) => [i ? ", " : ": ", element("span", { class: `line${i}` }, name)]))), ink = colour("--dim"), grid = colour("--line");
    this.place.append(holder);
    const axis = (more) => ({ stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid }, font: "11px system-ui", ...more });
    const shown = { ...plot, holder };
    const paths = plot.steps ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const made = new uPlot({
      width: Math.max(200, holder.clientWidth - 12), height: HEIGHT, legend: { show: false }, cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range: (u, low, high) => [low ?? 0, Math.max(high ?? 1, (low ?? 0) + 1)] }, y: { range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [axis({ values: (u, ticks) => ticks.map(clock), size: 28 }), axis({ values: (u, ticks) => ticks.map(plot.write), size: 62, ...(plot.write === bytes ? { incrs: POWERS } : {}) })],
      series: [{}, ...plot.series.map((name, i) => ({ label: name, stroke: colour(i ? "--waited" : "--accent"), width: 1.5, paths, spanGaps: true, points: { show: this.data.seconds.length < 2 } }))],
      hooks: { draw: [() => this.mark(shown)] }, // when its scales are known
    }, this.columns(plot), holder);
    return Object.assign(shown, { made });
  }

  columns(plot) {
    return [this.data.seconds, ...plot.series.map((name) => this.data[name])];
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

  // Takes points that came while nobody listened.
  catchUp(more) {
    if (more.seconds.length === 0) return;
    const before = this.data.seconds.length;
    for (const name of Object.keys(this.data)) this.data[name].push(...more[name]);
    this.grown(before);
  }

  // Shows points that came behind so many; a plot comes with its first value.
  grown(before) {
    const first = (plot) => plot.series.some((name) => this.data[name].slice(before).some((value) => value !== null));
    if (before < 3 || PLOTS.some((plot) => first(plot) && !this.plots.some((shown) => shown.title === plot.title))) this.start(this.data);
    else this.redraw();
  }

  redraw() {
    for (const plot of this.plots ?? []) plot.made.setData(this.columns(plot));
    this.remark();
  }

  remark() {
    for (const plot of this.plots ?? []) this.mark(plot);
  }

  mark(plot) {
    if (!plot.made || plot.made.scales.x.max === undefined || plot.made.scales.x.max === null) return;
    const { min, max } = plot.made.scales.x;
    const regular = (event) => event.kind === "checkpoint"; // there are so many that the others would go
    const shown = [...this.events.filter((event) => event.kind !== "pass" && !regular(event)).slice(-MARKS), ...this.events.filter(regular).slice(-CHECKPOINTS)].sort((a, b) => a.seconds - b.seconds || a.number - b.number);
    const key = `${shown.map((event) => event.number)}|${this.chosen}|${plot.made.width}|${min}|${max}`;
    if (plot.marked === key) return;
    plot.marked = key;
    const kept = new Map([...plot.made.over.querySelectorAll(".mark")].map((one) => [one.dataset.number, one]));
    let last = null; // they are in the order of time, for keyboards too
    const ends = []; // of each row of markers: where the last one ends, so that all can be pressed
    for (const event of shown) {
      const number = String(event.number);
      const button = kept.get(number) ?? element("button", { type: "button", class: `mark ${event.kind}`, "data-number": number, title: `${clock(event.seconds)}: ${event.title}`, "aria-label": `${clock(event.seconds)}, ${event.kind}: ${event.title}`, onclick: () => this.choose(event) });
      kept.delete(number);
      const x = plot.made.valToPos(event.seconds, "x");
      const row = ((found) => (found < 0 ? ends.length : found))(ends.findIndex((end) => x >= end));
      ends[row] = x + MARK;
      button.style.left = `${Math.max(0, Math.min(plot.made.over.clientWidth, x))}px`;
      button.style.top = `${(row % ROWS) * MARK}px`;
      button.classList.toggle("chosen", this.chosen === event.number);
      if (last && last.nextSibling !== button) last.after(button);
      else if (!button.isConnected) plot.made.over.append(button);
      last = button;
    }
    for (const gone of kept.values()) gone.remove();
  }

  resize() {
    for (const plot of this.plots ?? []) {
      plot.made.setSize({ width: Math.max(200, plot.holder.clientWidth - 12), height: HEIGHT });
    }
  }

  // Throughput in the seconds before and behind an event: what came of it.
  around(at, span = 3) {
    const mean = (from, to) => {
      const found = this.data.seconds.map((t, i) => [t, this.data.throughput[i]]).filter(([t, value]) => t > from && t <= to && value !== null);
      return found.length ? found.reduce((sum, [, value]) => sum + value, 0) / found.length : null;
    };
    return [mean(at - span, at), mean(at + 0.5, at + 0.5 + span)];
  }
}
