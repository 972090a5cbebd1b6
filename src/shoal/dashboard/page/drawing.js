// Line charts as SVG, and colours. One line per node, told apart by colour and dashes; the legend has the last value.
import { drawn, element, number } from "./elements.js";

// Colours that people with the common kinds of colour blindness can tell apart (Okabe and Ito; viridis), and
// never alone: lines have dashes, cells have numbers and letters.

const VIRIDIS = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
const CATEGORIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f7f7f"];
const DASHES = ["", "7 3", "2 2", "9 3 2 3", "4 4", "1 3", "12 4", "6 2 1 2"];

// A colour from 0 (dark) to 1 (light).
export function scaled(share) {
  const place = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const low = Math.min(Math.floor(place), VIRIDIS.length - 2);
  const mixed = VIRIDIS[low].map((from, index) => Math.round(from + (VIRIDIS[low + 1][index] - from) * (place - low)));
  return `rgb(${mixed.join(",")})`;
}

export function category(index) {
  return CATEGORIES[index % CATEGORIES.length];
}

function look(index) {
  return { class: "curve", stroke: `var(--series-${(index % 8) + 1})`, "stroke-dasharray": DASHES[index % DASHES.length] || null };
}

export function letter(index) {
  return index < 0 ? "?" : String.fromCharCode(65 + (index % 26));
}

// Black or white, whichever can be read on the colour.
export function readable(colour) {
  const parts = colour.startsWith("#")
    ? [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16))
    : colour.match(/\d+/g).map(Number);
  const [red, green, blue] = parts.map((part) => (part / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? "#000000" : "#ffffff";
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [420, 210, 46, 10, 8, 36];

// `lines` are {name, index, points: [x, y, x, y …], tip: [x, y] or null}; nothing to show is null.
export function chart(title, horizontal, lines) {
  const shown = lines.map((line) => ({ ...line, all: line.tip ? [...line.points, ...line.tip] : line.points }))
    .filter((line) => line.all.length);
  if (!shown.length) return null;
  const range = (offset) => {
    const values = shown.flatMap((line) => line.all.filter((_, index) => index % 2 === offset));
    return [values.reduce((one, other) => Math.min(one, other)), values.reduce((one, other) => Math.max(one, other))];
  };
  const across = ticks(...range(0), 5);
  const upward = ticks(...range(1), 5);
  const x = (value) => LEFT + ((value - across[0]) / (across.at(-1) - across[0])) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((value - upward[0]) / (upward.at(-1) - upward[0])) * (HEIGHT - TOP - BOTTOM);
  const marks = upward.flatMap((value) => [
    drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    drawn("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value)),
  ]);
  const below = across.map((value, index) => drawn("text", {
    x: x(value), y: HEIGHT - BOTTOM + 16, "text-anchor": index === across.length - 1 ? "end" : "middle",
  }, tickText(value)));
  const curves = shown.map((line) => drawn("path", { ...look(line.index), d: path(line.all, x, y) }));
  const dots = shown.filter((line) => line.all.length === 2).map((line) => drawn("circle", {
    cx: x(line.all[0]), cy: y(line.all[1]), r: 3, fill: look(line.index).stroke,
  }));
  const name = drawn("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, horizontal);
  return element("figure", {},
    element("figcaption", {}, title),
    drawn("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} by ${horizontal}` },
      marks, below, curves, dots, name),
    element("ul", { class: "legend" }, shown.map((line) => element("li", {},
      drawn("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" }, drawn("path", { ...look(line.index), d: "M0 4H26" })),
      `${line.name}: ${number(line.all.at(-1))}`))));
}

function path(points, x, y) {
  const places = points.map((value, index) => (index % 2 ? y(value) : x(value)).toFixed(1));
  return places.map((place, index) => `${index % 2 ? " " : index ? "L" : "M"}${place}`).join("");
}

// Round numbers from below `low` to above `high`, evenly spaced.
function ticks(low, high, most) {
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high), 1e-6)) {
    const room = Math.abs(low) * 0.1 || 1;
    [low, high] = [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
  }
  const rough = (high - low) / Math.max(1, most - 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough) || 10 * power;
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(4))}k`;
  return size && size < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(4)));
}

// The charts of all curves of these nodes, or of those of the budget: a curve is named by its chart's title.
export function charts(nodes, horizontal, spending = false) {
  const titles = [...new Set(nodes.flatMap((node) => [...node.curves.keys()]))].filter((title) => title.startsWith("Spent: ") === spending);
  return titles.map((title) => chart(title, horizontal, nodes.map((node, index) => ({
    name: node.name, index, points: [], tip: null, ...node.curves.get(title),
  }))));
}
