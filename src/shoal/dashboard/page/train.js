// Training: rewards, informative groups, staleness, losses, and the newest rollouts with their verdicts.
import { element, figures, fill, number, setOptions } from "./elements.js";
import { charts } from "./drawing.js";

export class TrainView {
  constructor(context) {
    this.context = context;
    this.node = "";
    this.select = element("select", { id: "choose-trainer", onchange: (event) => {
      this.node = event.target.value;
      this.signature = "";
      this.update();
    } });
    this.hold = element("input", { type: "checkbox", id: "hold" });
    this.figures = element("div", {});
    this.charts = element("div", { class: "charts" });
    this.rollouts = element("div", { id: "rollouts" });
    this.main = element("div", {},
      element("h1", {}, "Training"), this.figures, this.charts,
      element("h2", {}, "Rollouts and verdicts"),
      element("div", { class: "tools" }, element("label", {}, "Node ", this.select), element("label", {}, this.hold, "hold still")),
      this.rollouts);
  }

  update() {
    const { store, run } = this.context;
    const nodes = store.nodesOf(run).filter((node) => node.head.totals); // those that have begun
    if (!nodes.length) {
      this.rollouts.replaceChildren(element("p", { class: "empty" }, "No node has begun yet."));
      return;
    }
    setOptions(this.select, nodes.map((node) => [node.name, node.name]), this.node || nodes[0].name);
    const sum = (name) => nodes.reduce((all, node) => all + (node.head.totals[name] || 0), 0);
    this.figures.replaceChildren(figures([
      ["own groups", number(sum("own"))], ["of them informative", number(sum("own_informative"))], ["foreign groups seen", number(sum("seen"))],
      ["verified", number(sum("verified"))], ["informative", number(sum("found"))], ["trained on", number(sum("used"))],
    ]));
    fill(this.charts, charts(nodes, "step"));
    const node = nodes.find((one) => one.name === this.select.value) || nodes[0];
    const signature = node.name + JSON.stringify(node.rollouts.map((one) => [one.turn, one.author, one.question]));
    if (signature === this.signature || (this.hold.checked && this.signature)) return;
    this.signature = signature;
    const open = new Set([...this.rollouts.querySelectorAll("details")].flatMap((one, index) => (one.open ? [index] : [])));
    this.rollouts.replaceChildren(...(node.rollouts.length ? node.rollouts.map((one, index) => this.group(one, open.has(index)))
      : [element("p", { class: "empty" }, "No rollouts yet.")]));
  }

  group(one, open) {
    const { store, run } = this.context;
    const rewards = one.completions.map((completion) => completion[2]).filter((reward) => reward !== null);
    const mean = rewards.length ? rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length : null;
    // A foreign name stands in an element of its own: letters that run from right to left turn nothing around it.
    const foreign = (text) => element("bdi", {}, text);
    const from = one.author ? ["from ", store.authorName(run, one.author), one.model ? [" (says it is ", foreign(one.model), ")"] : null] : "own";
    return element("details", { open },
      element("summary", {}, `turn ${number(one.turn)}, `, from, ", ", foreign(one.family || "task"), ": ", foreign(one.verdict),
        mean === null ? null : `, mean reward ${number(mean)}`,
        element("span", { class: "soft" }, " · ", foreign(one.question.slice(0, 60)))),
      element("pre", { class: "text question", tabindex: "0" }, one.question),
      one.completions.map(([text, finished, reward]) => element("div", { class: "completion" },
        element("span", {}, `reward ${number(reward, 2)}${finished ? "" : ", cut off"}`), element("pre", { class: "text" }, text))),
      one.more ? element("p", { class: "soft" }, `and ${one.more} more completions`) : null);
  }
}
