// The state of a job: the whole of it with a number, then the changes from one number to the next. Messages are processed in order.
// After a gap in the numbers, the whole state is requested again.

import { floats, numbers } from "./server.js";

export class Known {
  // whole: requests the whole state; missed: fetches the events and points of charts since then; show: shows the state.
  constructor(whole, missed, show) {
    this.ask = whole;
    this.missed = missed;
    this.show = show;
    this.report = null; // null: unknown
    this.before = Promise.resolve();
  }

  take(message) { return this.next(() => this.taken(message)); }

  // This number is the last one.
  end(number) {
    return this.next(async () => {
      if (this.report?.number === number) return;
      await this.start(await this.ask());
      await this.show(this.report);
    });
  }

  next(work) {
    this.before = this.before.catch(() => null).then(work);
    return this.before;
  }

  async taken(message) {
    if ("after" in message) {
      if (this.report && message.number <= this.report.number) return; // the whole state includes it
      if (message.after === this.report?.number) this.change(message);
      else await this.start(await this.ask());
    } else await this.start(message);
    await this.show(this.report);
  }

  async start(whole) {
    this.report = null;
    await this.missed(whole);
    this.report = { ...whole, new_events: [], table: whole.operators ? floats(whole.operators) : null };
  }

  change({ after, operators, rows, values, ...message }) {
    const report = { ...this.report, new_events: [], ...message };
    if (operators) report.table = floats(operators);
    if (rows) {
      const changed = floats(values), width = report.columns;
      numbers(rows).forEach((row, i) => report.table.set(changed.subarray(i * width, (i + 1) * width), row * width));
    }
    this.report = report;
  }
}
