"use strict";
/* Untrusted text becomes text nodes, never markup. Characters that could reverse or hide text are shown as escapes. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(9)) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function escaped(character) {
  const code = character.codePointAt(0);
  const hex = code.toString(16);
  return code < 256 ? "\\x" + hex.padStart(2, "0") : code < 65536 ? "\\u" + hex.padStart(4, "0") : "\\U" + hex.padStart(8, "0");
}

function visible(text, keep = "\n\t") {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (keep.includes(found[0])) continue;
    if (found.index > from) nodes.push(text.slice(from, found.index));
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    nodes.push(el("span", { class: "esc", title: "character U+" + code }, escaped(found[0])));
    from = found.index + found[0].length;
  }
  if (from < text.length || !nodes.length) nodes.push(text.slice(from));
  return nodes;
}

/* A sentence whose `code` is code. */
const spans = (text) => text.split(/`([^`]*)`/).map((part, n) => (n % 2 ? el("code", { class: "ltr" }, visible(part, "")) : visible(part, "")));

/* The same as one string, for the title of the tab. */
const plain = (text) => text.replace(HIDDEN, escaped);

/* Say something at the top of the page, or to screen readers only. */
function notice(text) {
  const place = document.getElementById("notice");
  place.hidden = !text;
  place.replaceChildren(...(text ? visible(text, "") : []));
}

const announce = (text) => { document.getElementById("announcement").textContent = plain(text); };

/* Mark what a search found, across the elements that colour a line; browsers without highlights show the text as it is. */
function highlight(place, query) {
  if (!CSS.highlights) return;
  const ranges = [];
  for (const part of query ? place.querySelectorAll(".row, .mono, .word, h3") : []) {
    const nodes = [], walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) nodes.push(walker.currentNode);
    const text = nodes.map((node) => node.data).join("").toLowerCase();
    const point = (at) => { for (const node of nodes) { if (at <= node.data.length) return [node, at]; at -= node.data.length; } };
    for (let at = text.indexOf(query); at >= 0 && ranges.length < MOST_MARKED; at = text.indexOf(query, at + query.length)) {
      const range = new Range(), [last, end] = point(at + query.length) ?? [], [first, start] = point(at) ?? [];
      if (!last) break; // lower case can be longer than the text
      range.setStart(first, start);
      range.setEnd(last, end);
      ranges.push(range);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}

/* A text without the line breaks that only fill its paragraphs: after a full line, where the next word would not have fitted. */
const FULL = 60, CODE = /^\s*(?:>>>|\.\.\.|@|#|"""|def |class |import |[\w.[\]]+(?:, [\w.[\]]+)* [-+*/]?= )|==|=>|➞/, ITEM = /^\s*(?:[-*•]|\d+[.)])\s+/, HEAD = /^\s*(?:(?:\S+ )?\S+:|Examples?)$/;

function unfilled(text) {
  return text.split(/(\n[ \t]*\n)/).map((paragraph) => {
    const lines = paragraph.split("\n"), width = lines.reduce((most, line) => Math.max(most, line.length), 0);
    const goesOn = (line, before) => before.length >= FULL && before.length + 1 + line.trim().split(" ")[0].length > width && /\p{L}{2}/u.test(before)
      && !CODE.test(before) && !CODE.test(line) && !before.trimEnd().endsWith(")") && !/^from .+ import/.test(before) && !ITEM.test(line) && !HEAD.test(line) && (ITEM.exec(before) ?? /^\s*/.exec(before))[0].length === /^\s*/.exec(line)[0].length;
    return lines.map((line, n) => (n && line.trim() && goesOn(line, lines[n - 1]) ? " " + line.trimStart() : (n ? "\n" : "") + line)).join("");
  }).join("");
}

/* Colours Python with a scanner that does not backtrack, so that no text can make it slow. */
const KEYWORDS = new Set(("False None True and as assert async await break case class continue def del elif else except finally for " +
  "from global if import in is lambda match nonlocal not or pass raise return try while with yield").split(" "));
const NAME = /[\p{L}_][\p{L}\p{N}_]*/uy, NUMBER = /(?:0[xob][\da-f_]+|\d[\d_]*\.?[\d_]*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)j?/iy, PREFIX = /^[rbuft]{1,2}$/i;
const MOST_COLOURED = 60000, MOST_MARKED = 1000;

function endOfString(text, from) {
  const quote = text[from];
  const triple = text.startsWith(quote.repeat(3), from);
  let at = from + (triple ? 3 : 1);
  for (; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (!triple && text[at] === "\n") return at;
    else if (text[at] === quote && (!triple || text.startsWith(quote.repeat(3), at))) return at + (triple ? 3 : 1);
  }
  return text.length;
}

function tokens(text) {
  const found = [];
  let at = 0, plain = 0, before = "";
  const take = (kind, to) => {
    if (at > plain) found.push(["", text.slice(plain, at)]);
    found.push([kind, text.slice(at, to)]);
    at = plain = to;
  };
  while (at < text.length && at < MOST_COLOURED) {
    const c = text[at];
    if (c === "#") { const end = text.indexOf("\n", at); take("c", end < 0 ? text.length : end); continue; }
    if (c === '"' || c === "'") { take("s", endOfString(text, at)); continue; }
    NAME.lastIndex = at;
    const name = NAME.exec(text);
    if (name) {
      const to = at + name[0].length;
      if (PREFIX.test(name[0]) && (text[to] === '"' || text[to] === "'")) take("s", endOfString(text, to));
      else if (KEYWORDS.has(name[0])) take("k", to);
      else if (before === "def" || before === "class") take("f", to);
      else at = to;
      before = name[0];
      continue;
    }
    NUMBER.lastIndex = at;
    const number = NUMBER.exec(text);
    if (number) { take("n", at + number[0].length); continue; }
    at++;
  }
  if (plain < text.length) found.push(["", text.slice(plain)]);
  return found;
}

function code(text, { numbered = true, label = "Program" } = {}) {
  const body = el("code", {});
  let row = el("span", { class: "row" });
  for (const [kind, part] of tokens(text.replace(/\r\n?/g, "\n").replace(/\n+$/, ""))) {
    part.split("\n").forEach((line, number) => {
      if (number) { body.append(row); row = el("span", { class: "row" }); }
      if (line) row.append(...(kind ? [el("span", { class: kind }, visible(line))] : visible(line)));
    });
  }
  body.append(row);
  return el("pre", { class: "code" + (numbered ? "" : " bare"), tabindex: "0", role: "region", "aria-label": label }, body);
}
