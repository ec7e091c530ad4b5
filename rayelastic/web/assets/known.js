// What is known of a job: all of it with a number, then what changes from one number to the next. Messages are taken
// one after the other. One that doesn't follow has all be asked for again, so that nothing is shown that isn't so.

import { floats, numbers } from "./server.js";

export class Known {
  // whole: asks for all of it; missed: fetches events and points of time lines that came meanwhile; show: shows it.
  constructor(whole, missed, show) {
    this.ask = whole;
    this.missed = missed;
    this.show = show;
    this.said = null; // null: not known, or not for certain
    this.before = Promise.resolve();
  }

  take(message) { return this.next(() => this.taken(message)); }

  // There is nothing behind this number.
  end(number) {
    return this.next(async () => {
      if (this.said?.number === number) return;
      await this.start(await this.ask());
      await this.show(this.said);
    });
  }

  next(work) {
    this.before = this.before.catch(() => null).then(work);
    return this.before;
  }

  async taken(message) {
    if ("after" in message) {
      if (this.said && message.number <= this.said.number) return; // it is in the whole
      if (message.after === this.said?.number) this.change(message);
      else await this.start(await this.ask());
    } else await this.start(message);
    await this.show(this.said);
  }

  async start(whole) {
    this.said = null;
    await this.missed(whole);
    this.said = { ...whole, told: [], table: whole.operators ? floats(whole.operators) : null };
  }

  change({ after, operators, rows, values, ...message }) {
    const said = { ...this.said, told: [], ...message };
    if (operators) said.table = floats(operators);
    if (rows) {
      const changed = floats(values), width = said.columns;
      numbers(rows).forEach((row, i) => said.table.set(changed.subarray(i * width, (i + 1) * width), row * width));
    }
    this.said = said;
  }
}
