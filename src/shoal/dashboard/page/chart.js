// Line charts as SVG: one line per node, told apart by colour and dashes, with the last value in the legend.
import { drawn, element, number } from "./elements.js";
import { seriesColour, seriesDashes } from "./colours.js";

const WIDTH = 420;
const HEIGHT = 210;
const LEFT = 46;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 36;

// `lines` are {name, index, points: [x, y, x, y …], tip: [x, y] or null}; nothing to show is null.
export function chart(title, horizontal, lines) {
  const shown = lines.map((line) => ({ ...line, all: line.tip ? [...line.points, ...line.tip] : line.points }))
    .filter((line) => line.all.length);
  if (!shown.length) return null;
  const range = (offset) => {
    let low = Infinity;
    let high = -Infinity;
    for (const line of shown) {
      for (let index = offset; index < line.all.length; index += 2) {
        low = Math.min(low, line.all[index]);
        high = Math.max(high, line.all[index]);
      }
    }
    return [low, high];
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
  const curves = shown.map((line) => drawn("path", {
    class: "curve", d: path(line.all, x, y), stroke: seriesColour(line.index), "stroke-dasharray": seriesDashes(line.index),
  }));
  const dots = shown.filter((line) => line.all.length === 2).map((line) => drawn("circle", {
    cx: x(line.all[0]), cy: y(line.all[1]), r: 3, fill: seriesColour(line.index),
  }));
  const name = drawn("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, horizontal);
  return element("figure", {},
    element("figcaption", {}, title),
    drawn("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} by ${horizontal}` },
      marks, below, curves, dots, name),
    element("ul", { class: "legend" }, shown.map((line) => element("li", {}, sample(line.index),
      `${line.name}: ${number(line.all.at(-1))}`))));
}

function sample(index) {
  return drawn("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" }, drawn("path", {
    class: "curve", d: "M0 4H26", stroke: seriesColour(index), "stroke-dasharray": seriesDashes(index),
  }));
}

function path(points, x, y) {
  let text = "";
  for (let index = 0; index < points.length; index += 2) {
    text += `${index ? "L" : "M"}${x(points[index]).toFixed(1)} ${y(points[index + 1]).toFixed(1)}`;
  }
  return text;
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

// The lines of one curve over the nodes of a run.
export function linesOf(nodes, curve) {
  return nodes.map((node, index) => ({ name: node.name, index, points: [], tip: null, ...node.curves.get(curve) }));
}
