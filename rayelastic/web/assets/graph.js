// The graph: the server places boxes and lines, each frame colours them.

import { counted, middle, percent, rate } from "./format.js";

const NS = "http://www.w3.org/2000/svg";
const REGIONS = ["#8da0cb", "#66c2a5", "#fc8d62", "#e78ac3", "#a6d854", "#e5c494"];
const LANES = new Set(["built-in", "compiled", "vectorised", "python"]);
const BAR = 150, HOT = 0.3; // pixels of a bar; share of time blocked from which an edge is red
const MOST = 1.15, LEAST = 0.08; // scales that fit
const READABLE = 0.62, NARROW = 600; // the least scale on screens narrower than so many pixels, where users scroll
const LETTERS = 0.5, NAMES = 0.22; // below these scales boxes have short names alone, and no names
const LONG_NAME = 23, SHORT_NAME = 9; // letters

function svg(name, attributes, ...children) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export class Graph {
  constructor(place, choose) {
    this.place = place;
    this.choose = choose;
    this.zoom = null;
    this.drawn = null;
  }

  // home: fit the graph to the width and show where tuples come from.
  draw(graph, home = false) {
    this.graph = graph;
    if (home) this.zoom = null;
    const root = svg("svg", { viewBox: `0 0 ${graph.width} ${graph.height}`, role: "group", "aria-label": "operators" });
    root.append(svg("defs", {}, svg("marker", { id: "end", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" }, svg("path", { d: "M0 0L8 4L0 8z", class: "arrow" }))));
    this.lines = graph.lines.map((line) => {
      const path = svg("path", { class: line.back ? "edge back" : "edge", d: "M" + line.points.map((p) => p.join(" ")).join("L"), "marker-end": "url(#end)" }, svg("title", {}));
      root.append(path);
      return path;
    });
    this.boxes = graph.boxes.map((box) => this.box(box, root));
    this.place.replaceChildren(root);
    const first = this.drawn === null;
    this.drawn = root;
    this.tiny = false;
    this.fit(this.zoom);
    if ((first || home) && graph.boxes.length) {
      const [x, y, , height] = graph.boxes[0].at;
      this.place.scrollLeft = x * this.scale - 8;
      this.place.scrollTop = (y + height / 2) * this.scale - this.place.clientHeight / 2;
    }
  }

  box(box, root) {
    const [x, y, width, height] = box.at;
    const lane = LANES.has(box.lane) ? box.lane : "";
    const group = svg("g", { class: `box ${lane}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "button" });
    group.dataset.name = box.name;
    if (box.rows.length > 1) group.append(svg("rect", { class: "stack", x: 4, y: -4, width, height, rx: 5 }));
    group.append(svg("rect", { class: "body", width, height, rx: 4 }));
    group.append(svg("rect", { y: 3, width: 4, height: height - 6, fill: REGIONS[box.region % REGIONS.length] }));
    const name = svg("text", { class: "name", x: 10, y: 16 }), mode = svg("text", { class: "small", x: 10, y: 30 }), activity = svg("text", { x: 10, y: 43 });
    name.textContent = middle(box.title, LONG_NAME);
    const bars = ["rail", "busy", "waited", "blocked"].map((kind) => svg("rect", { class: kind, x: 10, y: height - 9, height: 4, width: kind === "rail" ? BAR : 0 }));
    const queue = svg("rect", { class: "queue", x: width - 32, y: 35, width: 24, height: 9, visibility: "hidden" }), full = svg("rect", { class: "full", x: width - 32, y: 35, width: 0, height: 9 });
    const title = svg("title", {});
    group.append(title, name, mode, activity, ...bars, queue, full);
    group.addEventListener("click", () => this.choose(box));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.choose(box); }
    });
    root.append(group);
    return { box, group, name, mode, activity, bars, queue, full, title, last: "" };
  }

  // Return the sums of the rates of the operators of a box, and the highest of each share.
  static sum(box, table, at) {
    const sum = { in: 0, out: 0, taken: 0, emitted: 0, busy: 0, waited: 0, blocked: 0, cost: 0, fill: 0, queues: 0, dedicated: 0, errors: 0 };
    for (const row of box.rows) {
      const value = (name) => table[row * at.width + at[name]];
      sum.in += value("rate_in"); sum.out += value("rate_out"); sum.cost += value("cost"); sum.errors += value("errors"); sum.taken += value("tuples_in"); sum.emitted += value("tuples_out");
      for (const name of ["busy", "waited", "blocked", "fill"]) sum[name] = Math.max(sum[name], value(name));
      sum.queues += Number(value("model") === 1); sum.dedicated += Number(value("model") === 2);
    }
    return sum;
  }

  // over: the job has ended, so that its operators have totals and no rates.
  update(table, at, over = false) {
    if (!this.graph || !table) return;
    const sums = this.boxes.map((one) => Graph.sum(one.box, table, at));
    this.boxes.forEach((one, number) => {
      const sum = sums[number], box = one.box;
      const model = box.rows.length > 1 ? `${sum.queues} of ${box.rows.length} queued` : sum.dedicated ? "dedicated" : sum.queues ? "dynamic" : "manual";
      const activity = over ? (sum.taken > 0 ? `${counted(sum.taken, "tuple")} received` : sum.emitted > 0 ? `${counted(sum.emitted, "tuple")} emitted` : "no tuples counted") : sum.in > 0 ? `${rate(sum.in)} in, cost ${percent(sum.cost)}` : `${rate(sum.out)} out`;
      const key = `${model}|${activity}|${percent(sum.busy)}|${percent(sum.waited)}|${percent(sum.blocked)}|${percent(sum.fill)}`;
      if (key === one.last) return; // nothing that anybody could see
      one.last = key;
      one.mode.textContent = box.lane ? `${box.lane}, ${model}` : model;
      one.activity.textContent = activity;
      let x = 10;
      [sum.busy, sum.waited, sum.blocked].forEach((share, i) => {
        const width = Math.min(BAR * Math.min(1, share), 10 + BAR - x);
        one.bars[i + 1].setAttribute("x", x.toFixed(1));
        one.bars[i + 1].setAttribute("width", Math.max(0, width).toFixed(1));
        x += Math.max(0, width);
      });
      const queued = sum.queues > 0 || (sum.dedicated > 0 && sum.taken > 0); // a source has a thread and no queue
      one.queue.setAttribute("visibility", queued ? "visible" : "hidden");
      one.full.setAttribute("width", queued ? (24 * sum.fill).toFixed(1) : 0);
      const text = `${box.title}: ${model}, ${activity}; busy ${percent(sum.busy)}, waits ${percent(sum.waited)}, blocked on output ${percent(sum.blocked)}`;
      one.title.textContent = text;
      one.group.setAttribute("aria-label", text);
    });
    const most = Math.max(1, ...sums.map((sum) => sum.out));
    this.graph.lines.forEach((line, number) => {
      const from = sums[line.ends[0]], [origin, target] = line.ends.map((end) => this.graph.boxes[end].title);
      const path = this.lines[number];
      path.setAttribute("stroke-width", (1 + 2.5 * Math.sqrt(from.out / most)).toFixed(1));
      path.classList.toggle("hot", from.blocked >= HOT);
      path.firstChild.textContent = `${origin} → ${target}: ${rate(from.out)}, blocked on output ${percent(from.blocked)} of the time`;
    });
  }

  fit(zoom) {
    this.zoom = zoom;
    if (!this.drawn) return;
    const room = this.place.clientWidth - 2, least = room < NARROW ? READABLE : LEAST;
    const scale = zoom ?? Math.max(least, Math.min(MOST, room / this.graph.width));
    if (this.drawn.classList.toggle("tiny", scale < LETTERS) !== this.tiny) {
      this.tiny = !this.tiny;
      for (const { box, name } of this.boxes) name.textContent = middle(box.title, this.tiny ? SHORT_NAME : LONG_NAME);
    }
    this.drawn.classList.toggle("nameless", scale < NAMES);
    this.drawn.setAttribute("width", Math.round(this.graph.width * scale));
    this.drawn.setAttribute("height", Math.round(this.graph.height * scale));
    this.scale = scale;
  }
}
