// One program: its origin, its source, its ancestors, and the changes between them.
import { element, number } from "./elements.js";

export class ProgramPanel {
  constructor(context) {
    this.context = context;
    this.panel = element("section", { class: "panel", "aria-label": "The chosen cell" });
    this.digest = null;
    this.empty();
  }

  empty() {
    const about = this.context.store.runs[this.context.run];
    this.digest = null;
    this.panel.replaceChildren(
      element("h2", {}, "No cell chosen"),
      element("p", { class: "soft" }, `Choose a filled cell to see its ${about.words.program} and its origin.`),
    );
  }

  async show(cell, title) {
    const { store, feed, run } = this.context;
    if (this.digest === cell.digest && this.title === title) return;
    [this.digest, this.title] = [cell.digest, title];
    const maker = cell.model === "peer" ? store.authorName(run, cell.maker) : cell.maker;
    const facts = [
      ["fitness", number(cell.fitness)], ["model", store.modelOf(run, cell)], ["held at", cell.node],
      ["made by", maker || "–"], ["since turn", number(cell.turn)], [store.runs[run].words.program, cell.digest.slice(0, 16)],
    ];
    const below = element("div", {}, element("p", { class: "soft" }, "Loading …"));
    this.panel.replaceChildren(
      element("h2", {}, title),
      element("table", {}, facts.map(([name, value]) => element("tr", {},
        element("th", { scope: "row", class: "left" }, name), element("td", { class: "left" }, value)))),
      element("div", { class: "tools" }, store.runs[run].tabs.includes("replay") ? element("button", {
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
    const { words } = store.runs[run];
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
          : element("p", { class: "soft" }, parent ? `The ${words.programs} are too long to be compared here.`
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

const MOST_LINES = 600; // as texts come from anywhere

// Rows of ["same" | "added" | "removed", line]; null if the texts are too long to be compared.
function difference(before, after) {
  const old = before.split("\n");
  const fresh = after.split("\n");
  if (old.length > MOST_LINES || fresh.length > MOST_LINES) return null;
  const width = fresh.length + 1;
  const common = new Uint16Array((old.length + 1) * width); // longest common part of the two ends
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = old[i] === fresh[j]
        ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const rows = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      rows.push(["same", old[i++]]);
      j += 1;
    } else if (j >= fresh.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      rows.push(["removed", old[i++]]);
    } else rows.push(["added", fresh[j++]]);
  }
  return rows;
}
