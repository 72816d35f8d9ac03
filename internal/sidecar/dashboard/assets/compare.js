// compare splits two texts into runs of lines, each marked: "same", "moved" (in both, elsewhere), or "only" in one.
export function compare(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  const stays = common(a, b);
  return [marked(a, stays.a, new Set(b)), marked(b, stays.b, new Set(a))];
}

function marked(lines, stays, other) {
  const runs = [];
  lines.forEach((line, i) => {
    let mark = "same";
    if (!stays[i] && line.trim() !== "") mark = other.has(line) ? "moved" : "only";
    if (runs.at(-1)?.mark === mark) runs.at(-1).lines.push(line);
    else runs.push({ mark, lines: [line] });
  });
  return runs;
}

// common finds a longest common subsequence of lines: what stands in the same order on both sides. Texts of more than
// about 2,000 differing lines are not searched; their lines are then said to have moved.
function common(a, b) {
  const inA = new Array(a.length).fill(false), inB = new Array(b.length).fill(false);
  let start = 0, endA = a.length, endB = b.length;
  const keep = (i, j) => { inA[i] = inB[j] = true; };
  while (start < endA && start < endB && a[start] === b[start]) keep(start, start++);
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) keep(--endA, --endB);
  const n = endA - start, m = endB - start;
  if (n * m > 4e6) return { a: inA, b: inB };
  const width = m + 1, length = new Uint16Array((n + 1) * width); // [i, j]: of the longest behind i and j
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      length[i * width + j] = a[start + i] === b[start + j]
        ? length[(i + 1) * width + j + 1] + 1
        : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < n && j < m;) {
    if (a[start + i] === b[start + j]) keep(start + i++, start + j++);
    else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) i++;
    else j++;
  }
  return { a: inA, b: inB };
}
