"use strict";
/* The difference of two texts by lines: a longest common subsequence between the equal lines at both ends. */
const MOST_PAIRS = 4e6, CONTEXT = 3;

function difference(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let start = 0, end = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const equal = (lines) => lines.map((line) => [" ", line]);
  return [...equal(a.slice(0, start)), ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)), ...equal(a.slice(a.length - end))];
}

function middle(a, b) {
  const wide = b.length + 1, found = [];
  if ((a.length + 1) * wide > MOST_PAIRS) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const common = new Uint16Array((a.length + 1) * wide); // of the lines from i and from j on; below 2000, since the shorter side is
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    common[i * wide + j] = a[i] === b[j] ? common[(i + 1) * wide + j + 1] + 1 : Math.max(common[(i + 1) * wide + j], common[i * wide + j + 1]);
  }
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { found.push([" ", a[i]]); i++; j++; }
    else if (j === b.length || (i < a.length && common[(i + 1) * wide + j] >= common[i * wide + j + 1])) found.push(["-", a[i++]]);
    else found.push(["+", b[j++]]);
  }
  return found;
}

function changed(before, after, label) {
  if (before === after) return el("p", {}, "They are equal.");
  const lines = difference(before, after), near = new Uint8Array(lines.length), body = el("code", {});
  lines.forEach(([sign, line], at) => { // imports are always shown: what they name is used below
    if (sign !== " ") near.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
    else if (/^(import|from) /.test(line)) near[at] = 1;
  });
  for (let at = 0; at < lines.length; at++) {
    if (near[at]) {
      const [sign, line] = lines[at];
      body.append(el({ "+": "ins", "-": "del", " ": "span" }[sign], { class: "row" }, sign + " ", visible(line)));
      continue;
    }
    const from = at;
    while (at + 1 < lines.length && !near[at + 1]) at++;
    body.append(el("span", { class: "row quiet" }, `  … ${at - from + 1} equal ${at === from ? "line" : "lines"}`));
  }
  return el("pre", { class: "code bare change", tabindex: "0", role: "region", "aria-label": label }, body);
}
