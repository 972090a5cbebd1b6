// The archive as a heat map, per node and merged, live; a cell leads to its program.
import { element, figures, fill, number, setOptions } from "./elements.js";
import { category, charts, letter, readable, scaled } from "./drawing.js";
import { ProgramPanel } from "./program.js";

const MERGED = "*";

export class ArchiveView {
  constructor(context) {
    this.context = context;
    this.node = MERGED;
    this.grid = "now";
    this.colour = "fitness";
    this.chosen = null;
    this.cells = new Map();
    this.shape = "";
    this.panel = new ProgramPanel(context);
    const choice = (name, set) => element("select", { id: `choose-${name}`, onchange: (event) => {
      set(event.target.value);
      this.update(true);
    } });
    this.nodeSelect = choice("node", (value) => { this.node = value; this.chosen = null; this.panel.empty(); });
    this.gridSelect = choice("round", (value) => { this.grid = value; });
    this.colourSelect = choice("colour", (value) => { this.colour = value; });
    setOptions(this.gridSelect, [["now", "round under way"], ["complete", "last complete round"]]);
    setOptions(this.colourSelect, [["fitness", "fitness"], ["model", "model"], ["age", "age"]]);
    this.figures = element("div", {});
    this.map = element("div", { class: "wide" });
    this.scale = element("div", { class: "scale" });
    this.hint = element("p", { class: "hint" });
    this.charts = element("div", { class: "charts" });
    this.main = element("div", {},
      element("h1", {}, "Archive"),
      element("div", { class: "tools" },
        element("label", {}, "Node ", this.nodeSelect), element("label", {}, "Archive of the ", this.gridSelect),
        element("label", {}, "Colour ", this.colourSelect)),
      this.figures,
      element("div", { class: "columns split" },
        element("div", { class: "first" }, this.map, this.scale, this.hint), this.panel.panel,
        element("div", { class: "second" }, element("h2", {}, "Along the run"), this.charts)));
  }

  update(atOnce = false) {
    const { store, run } = this.context;
    const nodes = store.nodesOf(run).filter((node) => node.grids.now);
    setOptions(this.nodeSelect, [[MERGED, "all nodes, merged"], ...nodes.map((node) => [node.name, node.name])], this.node);
    const shown = this.merged(nodes.filter((node) => this.node === MERGED || node.name === this.node));
    const about = store.runs[run];
    this.lay(about, shown);
    this.paint(shown, nodes, atOnce);
    const values = [...shown.values()].map((cell) => cell.fitness);
    const capacity = this.cells.size;
    this.figures.replaceChildren(figures([
      ["cells filled", `${values.length} of ${capacity}`],
      ["best fitness", values.length ? number(Math.max(...values)) : "–"],
      ["QD score (sum of fitness)", number(values.reduce((sum, value) => sum + value, 0))],
      ...this.counts(nodes, about),
    ]));
    fill(this.charts, charts(nodes, "turn"));
  }

  counts(nodes, about) {
    const chosen = nodes.filter((node) => this.node === MERGED || node.name === this.node);
    const sum = (...names) => chosen.reduce((all, node) => all + names.reduce((part, name) => part + (node.head.results[name] || 0), 0), 0);
    const evaluations = chosen.reduce((all, node) => all + node.head.evaluations, 0);
    return [
      [about.repeats ? `evaluations of ${number(about.repeats)} ${about.words.plays}` : "evaluations", number(evaluations)],
      ["took a cell", number(sum("new", "improved"))], ["not better", number(sum("rejected", "duplicate"))],
      ["invalid", number(sum("invalid"))], ["failed or missed", number(sum("failed", "missed"))],
    ];
  }

  // The best of each cell, as its own node measured it.
  merged(nodes) {
    const found = new Map();
    for (const node of nodes) {
      for (const [key, cell] of (node.grids[this.grid] || { cells: new Map() }).cells) {
        const other = found.get(key);
        if (!other || cell.fitness > other.fitness) found.set(key, cell);
      }
    }
    return found;
  }

  // The grid: first axis upward, second across; further axes repeat the columns.
  lay(about, shown) {
    const { programs, program } = about.words;
    const sides = about.axes.map((axis) => [axis.measure, axis.labels]);
    if (!sides.length) {
      const widths = [];
      for (const cell of shown.values()) cell.cell.forEach((bin, side) => { widths[side] = Math.min(64, Math.max(widths[side] || 1, bin + 1)); });
      widths.forEach((width, side) => sides.push([`axis ${side + 1}`, Array.from({ length: width }, (_, bin) => String(bin))]));
    }
    const shape = JSON.stringify(sides);
    if (shape === this.shape) return;
    this.shape = shape;
    this.cells.clear();
    if (!sides.length) {
      this.map.replaceChildren(element("p", { class: "empty" }, `No ${program} holds a cell yet.`));
      return;
    }
    const [upward, ...others] = sides.length > 1 ? sides : [["", [""]], sides[0]];
    let columns = [[[], ""]];
    for (const [, labels] of others) {
      columns = columns.flatMap(([bins, text]) => labels.map((label, bin) => [[...bins, bin], text ? `${text} / ${label}` : label])).slice(0, 1296);
    }
    const rows = upward[1].map((label, bin) => element("tr", {},
      element("th", { scope: "row", class: "row" }, label),
      columns.map(([bins, text]) => {
        const key = (sides.length > 1 ? [bin, ...bins] : bins).join(",");
        const title = sides.length > 1 ? `${upward[0]} ${label}, ${others.map(([measure]) => measure).join(" / ")} ${text}` : `${others[0][0]} ${text}`;
        const button = element("button", { class: "cell unfilled", type: "button", "data-cell": key, onclick: () => this.choose(key), onkeydown: (event) => this.move(event, key) });
        this.cells.set(key, { button, title, text: "" });
        return element("td", {}, button);
      }))).reverse(); // much is on top, as in a plot
    this.map.replaceChildren(element("table", { class: "grid-map" },
      element("tbody", {}, rows),
      element("tfoot", {}, element("tr", {}, element("th", { class: "row" }, upward[0] ? `${upward[0]} ↑` : ""), columns.map(([, text]) => element("th", { scope: "col" }, text))))));
    this.hint.textContent = `${upward[0] ? `Upward: ${upward[0]}. ` : ""}Across: ${others.map(([measure]) => measure).join(", then ")}. ` +
      `Arrow keys move, Enter chooses. Merged cells hold the best of all ${programs}, each as its own node measured it.`;
  }

  paint(shown, nodes, atOnce) {
    const { store, run } = this.context;
    const values = [...shown.values()].map((cell) => cell.fitness);
    const [low, high] = [Math.min(...values, 0), Math.max(...values, 1e-9)];
    const models = [...new Set(store.nodesOf(run).map((node) => node.head.model).concat([...shown.values()].map((cell) => store.modelOf(run, cell))))];
    const turns = new Map(nodes.map((node) => [node.name, node.head.turn]));
    const age = (cell) => Math.max(0, (turns.get(cell.node) || 0) - cell.turn);
    const oldest = Math.max(1, ...[...shown.values()].map(age));
    for (const [key, spot] of this.cells) {
      const cell = shown.get(key);
      const button = spot.button;
      const model = cell ? store.modelOf(run, cell) : "";
      const text = cell ? `${number(cell.fitness, 2)}|${letter(models.indexOf(model))}|${age(cell)}|${this.colour}|${high}|${oldest}|${cell.digest}` : "";
      button.setAttribute("aria-pressed", String(this.chosen === key));
      if (text === spot.text) continue;
      const isNew = cell && spot.digest !== cell.digest && !atOnce && spot.painted;
      [spot.text, spot.digest, spot.painted] = [text, cell ? cell.digest : "", true];
      button.classList.toggle("unfilled", !cell);
      if (!cell) {
        button.style.backgroundColor = button.style.color = "";
        button.replaceChildren("·");
        button.setAttribute("aria-label", `${spot.title}: empty`);
        continue;
      }
      const colour = this.colour === "fitness" ? scaled((cell.fitness - low) / (high - low))
        : this.colour === "model" ? category(models.indexOf(model)) : scaled(1 - age(cell) / oldest);
      button.style.backgroundColor = colour;
      button.style.color = readable(colour);
      const small = this.colour === "age" ? `${age(cell)} old` : letter(models.indexOf(model));
      button.replaceChildren(cell.fitness.toFixed(2), element("small", {}, small));
      button.setAttribute("aria-label", `${spot.title}: fitness ${number(cell.fitness)}, ${model}, ${age(cell)} turns old`);
      if (isNew) {
        button.classList.remove("just");
        void button.offsetWidth; // lets the animation begin again
        button.classList.add("just");
      }
    }
    this.legend(models, low, high, oldest);
    if (this.chosen && shown.has(this.chosen)) this.panel.show(shown.get(this.chosen), this.cells.get(this.chosen).title);
  }

  legend(models, low, high, oldest) {
    const steps = [0, 0.25, 0.5, 0.75, 1];
    const swatch = (colour) => {
      const made = element("i", {});
      made.style.backgroundColor = colour;
      return made;
    };
    const letters = models.map((model, index) => element("span", {}, this.colour === "model" ? swatch(category(index)) : null, `${letter(index)} = ${model}`));
    const range = this.colour === "fitness" ? [`fitness ${low.toFixed(1)} `, steps.map((step) => swatch(scaled(step))), ` ${high.toFixed(2)}`]
      : this.colour === "age" ? ["turns since it took the cell: 0 ", steps.map((step) => swatch(scaled(1 - step))), ` ${number(oldest)}`] : null;
    fill(this.scale, range ? element("span", {}, range) : null, letters);
  }

  choose(key) {
    const spot = this.cells.get(key);
    if (!spot || !spot.digest) return;
    this.chosen = key;
    this.update(true);
  }

  // Arrow keys go from cell to cell, as in any grid; Enter and the space bar press the button.
  move(event, key) {
    const steps = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    if (!step) return;
    const bins = key.split(",").map(Number);
    if (bins.length === 1) bins[0] += step[1];
    else {
      bins[0] += step[0];
      bins[bins.length - 1] += step[1];
    }
    const next = this.cells.get(bins.join(","));
    if (next) {
      event.preventDefault();
      next.button.focus();
    }
  }
}
