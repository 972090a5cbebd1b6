// The page's data. Messages replace parts of it, so it is as large as the server's bounded views and does not
// grow while the page stays open.
import { entry } from "./elements.js";

const MOST_EVENTS = 100;

export class Store {
  constructor() {
    this.clear();
    this.replays = []; // those of a single file
    this.single = false;
  }

  clear() {
    this.runs = [];
    this.nodes = [];
    this.notices = [];
    this.reading = { behind: 0, size: 0 };
    this.failure = "";
    this.filled = false;
  }

  apply(message) {
    if (message.kind === "everything") this.clear();
    this.failure = message.failure || "";
    if (message.kind === "beat") return;
    this.filled = true;
    if (message.runs) {
      this.runs = message.runs;
      while (this.nodes.length < this.runs.length) this.nodes.push(new Map());
    }
    if (message.notices) this.notices = message.notices;
    if (message.reading) this.reading = message.reading;
    for (const told of message.nodes || []) this.applyNode(told);
  }

  applyNode(told) {
    const nodes = this.nodes[told.run];
    if (!nodes.has(told.name)) nodes.set(told.name, { name: told.name, grids: {}, curves: new Map(), events: [], rollouts: [] });
    const node = nodes.get(told.name);
    node.head = told.head;
    for (const [name, grid] of Object.entries(told.grids || {})) {
      const kept = node.grids[name] && !grid.fresh ? node.grids[name] : { cells: new Map() };
      kept.round = grid.round;
      for (const [cell, fitness, digest, model, maker, turn] of grid.cells) {
        kept.cells.set(cell.join(","), { cell, fitness, digest, model, maker, turn, node: told.name });
      }
      node.grids[name] = kept;
    }
    for (const [name, curve] of Object.entries(told.curves || {})) {
      const kept = node.curves.get(name) || { points: [], tip: null };
      kept.points.length = Math.min(kept.points.length, curve.from * 2);
      for (const value of curve.points) kept.points.push(value);
      kept.tip = curve.tip;
      node.curves.set(name, kept);
    }
    if (told.events) node.events = [...node.events, ...told.events].slice(-MOST_EVENTS);
    if (told.rollouts) node.rollouts = told.rollouts;
  }

  // The nodes of a run in the order of their names, which begin with numbers.
  nodesOf(run) {
    const nodes = [...(this.nodes[run] || new Map()).values()].filter((node) => node.head);
    return nodes.sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));
  }

  // A node's name where the author is one of this run, else the beginning of its key.
  authorName(run, author) {
    if (!author) return "";
    const about = this.runs[run];
    const known = entry(about.authors, author, "");
    if (known) return known;
    return about.nodes.includes(author) || author === "others" ? author : `${author.slice(0, 8)}…`;
  }

  // The model that made the program of a cell: peers are named by their own node's model where it is known.
  modelOf(run, cell) {
    if (cell.model !== "peer") return cell.model || "unknown";
    const node = this.nodes[run].get(entry(this.runs[run].authors, cell.maker, ""));
    return node && node.head.model ? node.head.model : "peer";
  }
}
