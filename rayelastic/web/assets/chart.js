// A chart over the time of a job: a title that names its lines, a plot of uPlot, and a cursor at the earlier moment that is shown.

import { bytes, clock, element } from "./format.js";

const { uPlot } = /** @type {any} */ (globalThis); // loaded by the page
const POWERS = [...Array(50).keys()].map((power) => 2 ** power); // bytes between two lines of a grid
const HEIGHT = 150, LEAST = 200; // pixels
const COLOURS = ["--accent", "--waited", "--blocked"];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Chart {
  // spec: title, series (names in data), lines (what the title calls them), write (a value as text), steps. drawn: called after each drawing.
  constructor(place, spec, data, drawn = (_chart) => {}) {
    this.spec = spec;
    this.at = null;
    const names = (spec.lines ?? []).flatMap((name, i) => [i ? ", " : ": ", element("span", { class: `line${i}` }, name)]);
    this.holder = element("div", { class: "plot" }, element("h3", {}, spec.title, ...names));
    place.append(this.holder);
    const ink = colour("--dim"), grid = colour("--line");
    const axis = (more) => ({ stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid }, font: "11px system-ui", ...more });
    const paths = spec.steps ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const top = (high) => spec.most ?? (high > 0 ? high * 1.1 : 1);
    this.plot = new uPlot({
      width: this.width, height: HEIGHT, legend: { show: false }, cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range: (u, low, high) => [low ?? 0, Math.max(high ?? 1, (low ?? 0) + 1)] }, y: { range: (u, low, high) => [0, top(high)] } },
      axes: [axis({ values: (u, ticks) => ticks.map(clock), size: 28 }), axis({ values: (u, ticks) => ticks.map(spec.write), size: 62, ...(spec.write === bytes ? { incrs: POWERS } : {}) })],
      series: [{}, ...spec.series.map((name, i) => ({ label: name, stroke: colour(COLOURS[i]), width: 1.5, paths, spanGaps: true, points: { show: data.seconds.length < 2 } }))],
      hooks: { draw: [(plot) => { this.line(plot); drawn(this); }] }, // when its scales are known
    }, this.columns(data), this.holder);
  }

  get width() { return Math.max(LEAST, this.holder.clientWidth - 12); }

  columns(data) { return [data.seconds, ...this.spec.series.map((name) => data[name])]; }

  show(data) { this.plot.setData(this.columns(data)); }

  resize() { this.plot.setSize({ width: this.width, height: HEIGHT }); }

  look(at) {
    if (at === this.at) return;
    this.at = at;
    this.plot.redraw(false);
  }

  line({ ctx, bbox, scales, valToPos }) {
    if (this.at === null || this.at < scales.x.min || this.at > scales.x.max) return;
    const x = Math.round(valToPos(this.at, "x", true));
    ctx.save();
    ctx.fillStyle = colour("--ink");
    ctx.fillRect(x, bbox.top, 2, bbox.height);
    ctx.restore();
  }
}
