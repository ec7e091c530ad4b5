// Actions need two requests. The server answers the first one with a code, and acts on the second one, which has that code.

import * as server from "./server.js";
import { $, element } from "./format.js";


export class Actions {
  constructor(job) {
    this.job = job;
    this.code = null;
    const forms = {
      rescale: () => ({ region: $("region").value, replicas: Number($("replicas").value) }),
      snapshot: () => ({ folder: $("folder").value }),
      leave: () => ({ node: $("node").value }),
      pause: () => ({}),
      resume: () => ({}),
      drain: () => ({}),
      cancel: () => ({}),
    };
    for (const [action, more] of Object.entries(forms))
      $(action).addEventListener("submit", (event) => { event.preventDefault(); this.ask({ action, ...more() }); });
    $("savepoint").addEventListener("click", () => this.ask({ action: "savepoint", folder: $("folder").value }));
    $("confirm-yes").addEventListener("click", () => this.confirm());
    $("confirm-no").addEventListener("click", () => this.close(""));
  }

  regions(found) {
    const scalable = found.filter((region) => region.scalable), chosen = $("region").value;
    $("rescale").hidden = scalable.length === 0;
    $("region").replaceChildren(...scalable.map((region) => element("option", { value: region.name }, `${region.name} (${region.replicas} now)`)));
    if (scalable.some((region) => region.name === chosen)) $("region").value = chosen;
  }

  // Offer the actions that the state of the job allows; keep the choices of the user.
  status(report) {
    $("pause").hidden = report.paused;
    $("resume").hidden = !report.paused;
    const nodes = [...new Set(Object.values(report.elements).map((one) => one.node).filter(Boolean))];
    if ([...$("node").options].map((one) => one.value).join() !== nodes.join())
      $("node").replaceChildren(...nodes.map((node) => element("option", { value: node }, node)));
    $("leave").hidden = nodes.length < 2;
  }

  close(answer) {
    this.code = null;
    $("confirm").hidden = true;
    $("answer").textContent = answer;
  }

  async ask(wanted) {
    try {
      const report = await server.act(this.job(), wanted);
      this.code = report.confirm;
      $("answer").textContent = "";
      $("confirm-text").textContent = `${report.text}?`;
      $("confirm").hidden = false;
      $("confirm-yes").focus();
    } catch (error) { this.close(error.message); }
  }

  async confirm() {
    const code = this.code;
    this.close("Under way …");
    try {
      const report = await server.act(this.job(), { confirm: code });
      this.close(report.done ? `Done: ${report.text}.` : `Not done: ${report.problem}`);
    } catch (error) { this.close(error.message); }
  }
}
