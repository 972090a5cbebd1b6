// What changed between two texts, line by line; bounded, as the texts come from anywhere.

const MOST_LINES = 600;

// Rows of ["same" | "added" | "removed", line]; null if the texts are too long to be compared.
export function difference(before, after) {
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
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      rows.push(["same", old[i]]);
      i += 1;
      j += 1;
    } else if (j >= fresh.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      rows.push(["removed", old[i]]);
      i += 1;
    } else {
      rows.push(["added", fresh[j]]);
      j += 1;
    }
  }
  return rows;
}
