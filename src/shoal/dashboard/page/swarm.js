// The swarm: its nodes, their progress, and who learns from whom.
import { element, entry, fill, number, reasons, table, total } from "./elements.js";

export class SwarmView {
  constructor(context) {
    this.context = context;
    this.main = element("div", {});
  }

  update() {
    const { store, run } = this.context;
    const nodes = store.nodesOf(run);
    // Regions that can be scrolled keep their place.
    const places = [...this.main.querySelectorAll(".wide, .events")].map((one) => [one.scrollLeft, one.scrollTop]);
    fill(this.main,
      element("h1", {}, "Swarm"),
      element("p", { class: "soft" }, `${nodes.length} nodes. Each goes at its own pace; none waits for another.`),
      this.warnings(nodes),
      this.nodes(nodes),
      element("h2", {}, "Who uses whose items"),
      this.uses(nodes),
      element("h2", {}, "Items"),
      this.items(nodes),
      this.accounts(nodes),
      element("h2", {}, "Last events"),
      this.events(nodes),
    );
    [...this.main.querySelectorAll(".wide, .events")].forEach((one, index) => {
      if (places[index]) [one.scrollLeft, one.scrollTop] = places[index];
    });
  }

  warnings(nodes) {
    const about = this.context.store.runs[this.context.run];
    const lines = [...this.context.store.notices];
    for (const node of nodes.filter((one) => one.head.trouble)) lines.push(`${node.name}: ${node.head.trouble}`);
    for (const node of nodes.filter((one) => one.head.unread)) {
      lines.push(`${node.name}: ${node.head.unread} records were not understood and are left out`);
    }
    if (about.passed_over) lines.push(`${about.passed_over} more nodes are not shown`);
    return lines.map((line) => element("p", { class: "warning" }, line));
  }

  nodes(nodes) {
    const rows = nodes.map(({ name, head }) => [
      name, head.model || "–", head.trouble ? "cannot be read" : head.state, head.progress, number(head.records), this.quiet(head), head.result,
    ]);
    const heads = ["node", "model", "state", "progress", "records", "last record", "result"];
    return table("Nodes", heads, rows, [0, 1, 2, 3, 6]);
  }

  quiet(head) {
    if (!head.changed_at) return "–";
    if (this.context.store.single || head.ended) {
      return new Date(head.changed_at * 1000).toISOString().slice(0, 16).replace("T", " ");
    }
    const seconds = Math.max(0, Date.now() / 1000 - head.changed_at);
    if (seconds < 90) return `${Math.round(seconds)} s ago`;
    return seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
  }

  uses(nodes) {
    const { store, run } = this.context;
    const authors = [...new Set(nodes.flatMap(({ head }) => [...Object.keys(head.arrived), ...Object.keys(head.used)]))];
    if (!authors.length) return element("p", { class: "empty" }, "Nothing has arrived from anyone yet.");
    const named = authors.map((author) => [store.authorName(run, author), author])
      .sort((one, other) => one[0].localeCompare(other[0], "en", { numeric: true })).slice(0, 40);
    const rows = nodes.map(({ name, head }) => [name, ...named.map(([authorName, author]) => {
      if (authorName === name) return element("td", { class: "self" }, "itself");
      const arrived = entry(head.arrived, author, 0);
      return arrived ? `${number(entry(head.used, author, 0))} of ${number(arrived)}` : "–";
    })]);
    return [
      table("Items used of items arrived, by receiver and author", ["receiver ↓   author →", ...named.map(([name]) => name)], rows),
      element("p", { class: "hint" }, "Items used of items that arrived. Authors are matched to nodes by their items."),
    ];
  }

  items(nodes) {
    const rows = nodes.map(({ name, head }) => [
      name, number(head.shared), reasons(head.not_shared) || "–", number(total(head.arrived)), number(total(head.accepted)),
      number(total(head.used)), element("td", { class: "wrap" }, reasons(head.rejected) || "–"),
      element("td", { class: "wrap" }, reasons(head.passed_over) || "–"),
      element("td", { class: "wrap" }, reasons({ ...head.dropped, ...head.refused, ...head.missed }) || "–"),
    ]);
    const heads = ["node", "shared", "not shared", "received", "verified", "used", "rejected by reason", "passed over by reason", "dropped or missed by reason"];
    return table("Items by node", heads, rows, [0, 2, 6, 7, 8]);
  }

  accounts(nodes) {
    const { store, run } = this.context;
    const rows = nodes.flatMap(({ name, head }) => head.accounts.map((one) => [
      name, store.authorName(run, one.author), number(one.received), number(one.verified), number(one.used),
      number(one.useful), number(one.passed_over), reasons(one.rejected) || "–",
    ]));
    if (!rows.length) return null;
    return [
      element("h2", {}, "Accounts: the worth of each author"),
      table("Accounts", ["kept by", "author", "received", "verified", "used", "useful", "passed over", "rejected"], rows.slice(0, 200), [0, 1, 7]),
    ];
  }

  events(nodes) {
    const all = nodes.flatMap((node) => node.events.map(([, time, text]) => [time, node.name, text]));
    all.sort((one, other) => other[0] - one[0]);
    if (!all.length) return element("p", { class: "empty" }, "Nothing yet.");
    return element("ul", { class: "events", tabindex: "0", "aria-label": "Last events" }, all.slice(0, 60).map(([, name, text]) =>
      element("li", {}, element("b", {}, name), `  ${text}`)));
  }
}
