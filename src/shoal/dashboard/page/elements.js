// Makes elements. Text from a run is put in as text. No part of this page parses HTML, so a program or an answer
// that looks like HTML is shown and does nothing.

export function element(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function drawn(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...present(children));
  return made;
}

function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

// Replaces the content by children, or lists of them; null is left out.
export function fill(parent, ...children) {
  parent.replaceChildren(...present(children));
}

// A table from rows of texts or elements; `left` are the columns that hold words.
export function table(caption, heads, rows, left = []) {
  const side = (index) => (left.includes(index) ? "left" : null);
  return element(
    "div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    element(
      "table", {},
      element("thead", {}, element("tr", {}, heads.map((head, index) => element("th", { scope: "col", class: side(index) }, head)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map((one, index) =>
        one instanceof HTMLTableCellElement ? one : element("td", { class: side(index) }, one))))),
    ),
  );
}

export function figures(entries) {
  return element("div", { class: "figures" }, entries.map(([name, value]) =>
    element("div", {}, element("b", {}, value), element("span", {}, name))));
}

// Options are [value, text]; an open list is not disturbed when nothing changed.
export function setOptions(select, options, chosen) {
  const signature = JSON.stringify(options);
  if (select.dataset.signature !== signature) {
    select.dataset.signature = signature;
    select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  }
  if (chosen !== undefined && select.value !== chosen) select.value = chosen;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  if (size !== 0 && (size < 10 ** -digits || size >= 1e7)) return value.toExponential(1);
  return value.toFixed(size >= 100 ? 1 : digits);
}

// The entry of a run's table under a run's key. A key such as "constructor" finds nothing else.
export function entry(found, key, otherwise) {
  return found && Object.hasOwn(found, key) ? found[key] : otherwise;
}

export function total(counts) {
  return Object.values(counts || {}).reduce((sum, count) => sum + count, 0);
}

export function reasons(counts) {
  const entries = Object.entries(counts || {}).sort((one, other) => other[1] - one[1]);
  return entries.map(([reason, count]) => `${reason} ${number(count)}`).join(", ");
}
