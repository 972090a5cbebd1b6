// Colours that people with the common kinds of colour blindness can tell apart (Okabe and Ito; viridis), and
// never alone: lines have dashes, cells have numbers and letters.

const VIRIDIS = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
const CATEGORIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f7f7f"];
const DASHES = ["", "7 3", "2 2", "9 3 2 3", "4 4", "1 3", "12 4", "6 2 1 2"];

// From 0 to 1; light is much.
export function scaled(share) {
  const place = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const low = Math.min(Math.floor(place), VIRIDIS.length - 2);
  const mixed = VIRIDIS[low].map((from, index) => Math.round(from + (VIRIDIS[low + 1][index] - from) * (place - low)));
  return `rgb(${mixed.join(",")})`;
}

export function category(index) {
  return CATEGORIES[index % CATEGORIES.length];
}

export function seriesColour(index) {
  return `var(--series-${(index % 8) + 1})`;
}

export function seriesDashes(index) {
  return DASHES[index % DASHES.length] || null;
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
