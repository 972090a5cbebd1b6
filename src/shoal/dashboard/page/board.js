// The board of a judge: who answered how many questions rightly, and cumulative rewards by rounds taken part in.
import { element, figures, fill, number, reasons, table } from "./elements.js";
import { chart } from "./drawing.js";

const LINES_IN_A_CHART = 16;

// A claim of a stranger stands in an element of its own, so that it turns nothing around it.
const foreign = (text) => element("bdi", {}, text);

export class BoardView {
  constructor(context) {
    this.context = context;
    this.main = element("div", {});
  }

  update() {
    const { store, run } = this.context;
    const judges = store.nodesOf(run).filter((node) => node.head.board);
    const wide = [...this.main.querySelectorAll(".wide")].map((one) => one.scrollLeft);
    fill(this.main,
      element("h1", {}, "Board"),
      element("p", { class: "soft" }, "Each node is asked one fresh question after a round of its own. Model and manner of training are the nodes’ own claims."),
      judges.length ? judges.map((judge) => this.board(judge)) : element("p", { class: "empty" }, "The judge has not begun yet."),
    );
    [...this.main.querySelectorAll(".wide")].forEach((one, index) => { one.scrollLeft = wide[index] || 0; });
  }

  board({ head, curves }) {
    const { board } = head;
    const share = board.counted ? `${((100 * board.right) / board.counted).toFixed(1)} %` : "–";
    const rows = board.rows.map((one, index) => [
      number(index + 1), `${one.author.slice(0, 8)}…`, foreign(one.model || "–"), `${one.alone ? "alone" : "in the swarm"}${one.left ? ", left" : ""}`,
      number(one.rounds), number(one.answered), number(one.right), one.pass === null ? "–" : `${(100 * one.pass).toFixed(1)} %`, number(one.reward, 2),
    ]);
    const heads = ["", "node", "model", "trains", "rounds", "answered", "right", "pass@1", "cumulative reward"];
    const passed = reasons(head.dropped);
    return [
      figures([
        ["nodes", number(board.nodes)], ["questions asked", number(board.asked)], ["answered", number(board.answered)],
        ["right", number(board.right)], ["of all that count", share], ["without an answer yet", number(board.open)],
      ]),
      rows.length ? table("Board", heads, rows, [1, 2, 3])
        : element("p", { class: "empty" }, `Nobody has asked yet. Nodes ask with: shoal train --judge ${board.judge}`),
      board.nodes > rows.length ? element("p", { class: "soft" }, `and ${number(board.nodes - rows.length)} more nodes`) : null,
      this.curves(board.rows, curves),
      element("p", { class: "hint" }, `Judge ${board.judge}. A question without an answer in time counts as wrong.`),
      passed ? element("p", { class: "hint" }, `Passed over: ${passed}.`) : null,
    ];
  }

  // The nodes of one model in one chart, so that those in the swarm and those alone can be compared.
  curves(rows, curves) {
    const models = [...new Set(rows.map((one) => one.model))].slice(0, 12);
    const drawn = models.map((model) => {
      const own = rows.filter((one) => one.model === model && curves.has(one.curve)).slice(0, LINES_IN_A_CHART);
      return chart(`Cumulative reward: ${model || "no model"}`, "rounds taken part in", own.map((one, index) => ({
        name: `${one.author.slice(0, 8)} ${one.alone ? "alone" : "swarm"}`, index, ...curves.get(one.curve),
      })));
    }).filter((one) => one);
    return drawn.length ? [element("h2", {}, "By rounds that a node took part in"), element("div", { class: "charts" }, drawn)] : null;
  }
}
