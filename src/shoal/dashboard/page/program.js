// One program: where it came from, its source, its ancestors, and what changed between them.
import { element, number } from "./elements.js";
import { difference } from "./difference.js";

export class ProgramPanel {
  constructor(context) {
    this.context = context;
    this.panel = element("section", { class: "panel", "aria-label": "Program" });
    this.digest = null;
    this.empty();
  }

  empty() {
    this.digest = null;
    this.panel.replaceChildren(
      element("h2", {}, "No cell chosen"),
      element("p", { class: "soft" }, "Choose a filled cell to see its program, where it came from, and to replay it."),
    );
  }

  async show(cell, title) {
    const { store, feed, run } = this.context;
    if (this.digest === cell.digest && this.title === title) return;
    [this.digest, this.title] = [cell.digest, title];
    const maker = cell.model === "peer" ? store.authorName(run, cell.maker) : cell.maker;
    const facts = [
      ["fitness", number(cell.fitness)], ["model", store.modelOf(run, cell)], ["held at", cell.node],
      ["made by", maker || "–"], ["since turn", number(cell.turn)], ["program", cell.digest.slice(0, 16)],
    ];
    const below = element("div", {}, element("p", { class: "soft" }, "Loading …"));
    this.panel.replaceChildren(
      element("h2", {}, title),
      element("table", {}, facts.map(([name, value]) => element("tr", {},
        element("th", { scope: "row", class: "left" }, name), element("td", { class: "left" }, value)))),
      element("div", { class: "tools" }, store.runs[run].core ? element("button", {
        class: "main", id: "replay", onclick: () => this.context.go("replay", cell.digest),
      }, "Replay a battle") : null),
      below,
    );
    let lineage;
    try {
      lineage = await feed.lineage(run, cell.digest);
    } catch (error) {
      if (this.digest === cell.digest) below.replaceChildren(element("p", { class: "warning" }, error.message));
      return;
    }
    if (this.digest === cell.digest) below.replaceChildren(...this.history(lineage));
  }

  history(lineage) {
    const { store, run } = this.context;
    const source = element("div", {});
    const choose = (index) => {
      const [one, parent] = [lineage[index], lineage[index + 1]];
      const rows = parent ? difference(parent.source, one.source) : null;
      source.replaceChildren(
        element("h3", {}, index ? `Ancestor ${index}: source` : "Source"),
        element("pre", { tabindex: "0", class: "source" }, one.source),
        element("h3", {}, "Changes to its parent"),
        parent && rows ? element("pre", { tabindex: "0", class: "difference" }, rows.map(([kind, line]) => element("span", { class: kind },
          `${{ same: " ", added: "+", removed: "-" }[kind]} ${line}\n`)))
          : element("p", { class: "soft" }, parent ? "The programs are too long to be compared here."
            : one.parent ? "Its parent is not kept any more." : "It has no parent: it was written from scratch or came from elsewhere."),
      );
    };
    choose(0);
    return [
      source,
      element("h3", {}, "Lineage"),
      element("ol", { class: "lineage" }, lineage.map((one, index) => element("li", {}, element("button", { onclick: () => choose(index) },
        `${one.digest.slice(0, 10)}  ${one.model === "peer" ? `peer ${store.authorName(run, one.node)}` : one.model || "unknown"}` +
        `${one.node && one.model !== "peer" ? `, round ${one.round + 1}` : ""}` +
        `${one.fitness === null ? "" : `, fitness ${number(one.fitness)}`}`)))),
    ];
  }
}
