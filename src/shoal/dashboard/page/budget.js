// The budget: spent by each node, and reserved for answers that are still to come.
import { element, entry, fill, number, table } from "./elements.js";
import { charts } from "./drawing.js";

export class BudgetView {
  constructor(context) {
    this.context = context;
    this.main = element("div", {});
  }

  update() {
    const { store, run } = this.context;
    const nodes = store.nodesOf(run);
    const measures = [...new Set(nodes.flatMap(({ head }) => [...Object.keys(head.budget), ...Object.keys(head.spent), ...Object.keys(head.reserved)]))]
      .filter((measure) => nodes.some(({ head }) => entry(head.budget, measure, null) !== null || entry(head.spent, measure, 0) || entry(head.reserved, measure, 0)));
    const rows = measures.flatMap((measure) => {
      const of = (name) => nodes.reduce((sum, { head }) => sum + entry(head[name], measure, 0), 0);
      const limited = nodes.every(({ head }) => entry(head.budget, measure) !== undefined);
      const one = nodes.map(({ name, head }) => row(name, measure, entry(head.spent, measure, 0), entry(head.reserved, measure, 0), entry(head.budget, measure), entry(head.overrun, measure, 0)));
      return [...one, row("all nodes", measure, of("spent"), of("reserved"), limited ? of("budget") : undefined, of("overrun"))];
    });
    fill(this.main,
      element("h1", {}, "Budget"),
      element("p", { class: "soft" }, "A request reserves the most that it may cost. Its real cost is settled once its turn begins."),
      rows.length ? table("Budget by node", ["node", "measure", "spent", "reserved", "budget", "used", "over the reserve"], rows, [0, 1, 5])
        : element("p", { class: "empty" }, "Nothing was spent yet."),
      element("h2", {}, "Along the run"),
      element("div", { class: "charts" }, charts(nodes, "turn", true)),
    );
  }
}

function row(name, measure, spent, reserved, budget, overrun) {
  const cells = [name, measure, number(spent), number(reserved), budget === undefined ? "no limit" : number(budget)];
  if (!budget) return [...cells, "–", number(overrun)];
  const bar = element("span", { class: "bar", role: "img", "aria-label": `${Math.round((100 * spent) / budget)} % spent` }, element("i", {}), element("i", { class: "reserved" }));
  bar.children[0].style.width = `${Math.min(100, (100 * spent) / budget)}%`;
  bar.children[1].style.width = `${Math.min(100, (100 * reserved) / budget)}%`;
  return [...cells, element("span", {}, bar, ` ${Math.round((100 * spent) / budget)} %`), number(overrun)];
}
