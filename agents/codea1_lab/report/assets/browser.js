"use strict";
/* The list of candidates, its filters and its addresses. Filters read the columns of the index, a search all pages of texts.
   Tables of problems and the duels shown first come from the same columns. A page of a server asks it for changes. */
const PER_LIST = 100, PAGES_KEPT = 8, POLL_MS = 2000, BEATEN = 1, INVALID = 3, MASKED = 5; // the last three are outcomes

class Browser {
  constructor(index, runs) {
    this.runs = runs;
    this.take(index);
    this.found = { query: "", hits: null };
    this.page = 0;
    this.chosen = -1;
    this.rows = [];
    this.hits = null;
    this.title = document.title;
    this.fill();
    this.listen();
  }

  take(index) {
    this.index = index;
    this.columns = index.columns;
    this.pages = new Map();
    this.problems = null;
  }

  /* Show an index with more candidates than the last one. */
  async update(index) {
    this.take(index);
    this.fill();
    this.found = { query: "", hits: null };
    await this.filter();
  }

  fill() {
    const { outcomes, problems } = this.index, unpicked = [...document.querySelectorAll("#picks input:not(:checked)")].map((box) => Number(box.value)), counts = new Array(outcomes.length).fill(0);
    for (const outcome of this.columns.outcome) counts[outcome]++;
    $("picks").replaceChildren();
    outcomes.forEach((name, number) => {
      if (!counts[number]) return;
      const box = el("input", { type: "checkbox", value: number, checked: !unpicked.includes(number), name: "outcome" });
      $("picks").append(el("label", { class: "pick" }, box, el("span", {}, name, " ", el("b", {}, counts[number].toLocaleString("en")))));
    });
    for (const place of document.querySelectorAll("#filters .axis")) place.textContent = [...new Set(this.runs.map(({ axis }) => axis))].join(" or ");
    if (this.runs.length === 1) $("f-run").closest("div").hidden = true;
    else if ($("f-run").options.length === 1) this.runs.forEach(({ name }, number) => $("f-run").append(el("option", { value: number }, visible(name))));
    const names = [...new Set(problems.map(([, name]) => name))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    $("omitted").replaceChildren(...this.index.notes.map((note) => el("p", {}, note)));
    $("f-problems").replaceChildren(...names.map((name) => el("option", { value: name })));
  }

  listen() {
    let waiting = 0;
    $("filters").addEventListener("input", (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.filter(), event.target.id === "f-text" ? 250 : 60);
    });
    $("filters").addEventListener("submit", (event) => { event.preventDefault(); this.roving()?.focus(); });
    $("filters").addEventListener("reset", () => setTimeout(() => this.filter()));
    $("older").addEventListener("click", () => this.turn(-1));
    $("newer").addEventListener("click", () => this.turn(1));
    $("list").addEventListener("keydown", (event) => this.keys(event));
    document.addEventListener("keydown", (event) => {
      const { target } = event, isOpen = this.chosen >= 0;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(target.tagName)) return;
      if (!$("episodes").contains(target) && !(isOpen && target === document.body)) return; // a click on text focuses the body
      if (event.key === "j" || event.key === "k") this.step(event.key === "j" ? 1 : -1);
      if (event.key === "Escape" && isOpen) this.close();
    });
    addEventListener("hashchange", () => this.follow());
  }

  async filter() {
    const query = $("f-text").value.trim().toLowerCase();
    if (query !== this.found.query) {
      this.found = { query, hits: query ? this.search(query) : null };
      if (query) $("count").textContent = "Searching…";
    }
    const found = this.found, hits = await found.hits;
    if (found !== this.found) return;
    this.rows = this.sorted(this.fitting(hits));
    this.hits = hits;
    this.page = 0;
    this.list();
    const count = (n) => n.toLocaleString("en"), n = hits ? this.rows.reduce((sum, row) => sum + hits[row], 0) : 0;
    $("count").textContent = `${count(this.rows.length)} of ${count(this.columns.step.length)} candidates${hits ? `, ${count(n)} ${n === 1 ? "hit" : "hits"}` : ""}`;
    if (this.chosen >= 0) highlight($("detail"), query);
  }

  fitting(hits) {
    const wanted = new Set([...document.querySelectorAll("#picks input:checked")].map((box) => Number(box.value)));
    const run = $("f-run").value === "" ? -1 : Number($("f-run").value), text = $("f-problem").value.trim().toLowerCase();
    const from = $("f-from").value === "" ? -Infinity : Number($("f-from").value), to = $("f-to").value === "" ? Infinity : Number($("f-to").value);
    const fits = this.index.problems.map(([, name]) => name.toLowerCase().includes(text));
    const c = this.columns, rows = [];
    for (let i = 0; i < c.step.length; i++) {
      if (wanted.has(c.outcome[i]) && (run < 0 || c.run[i] === run) && fits[c.problem[i]] && c.step[i] >= from && c.step[i] <= to && (!hits || hits[i])) rows.push(i);
    }
    return rows;
  }

  sorted(rows) {
    const by = $("f-sort").value, missing = by.endsWith("-low") ? Infinity : -Infinity, key = by.split("-")[0], c = this.columns;
    if (key in c) {
      const sign = by.endsWith("-low") ? 1 : -1;
      rows.sort((a, b) => sign * ((c[key][a] ?? missing) - (c[key][b] ?? missing)) || a - b);
    } else if (by === "last") rows.reverse();
    return rows;
  }

  /* Count for each row the texts that hold the query: problem, program, tests with their values, dropped tests, verdicts. */
  async search(query) {
    const { verdicts, problems } = this.index, c = this.columns, hits = new Uint32Array(c.step.length), texts = await this.problemTexts();
    const holds = (text) => text.toLowerCase().includes(query);
    const named = problems.map(([run, name]) => holds(name) + holds(texts[run]?.[name]?.[0] ?? ""));
    const judged = verdicts.map((verdict) => holds(verdict) || holds(words(verdict)));
    let row = 0;
    for (let page = 0; row < c.step.length; page++) {
      const { t, g } = await (this.pages.get(page) ?? unpack("page-" + page));
      if (this.found.query !== query) return null;
      const found = t.map(holds), at = (number) => (number === null ? 0 : Number(found[number]));
      const inCase = ([expression, expected, , prediction, verdict, actual]) => at(expression) + at(expected) + at(prediction) + judged[verdict] + at(actual);
      const inDropped = ([why, word, source]) => Math.max(at(why), at(word)) + at(source);
      for (const [, members] of g) for (const [, program, verdict, reason, replayed, suites] of members) {
        let n = named[c.problem[row]] + at(program) + judged[verdict] + at(reason);
        for (const one of replayed) n += inCase(one);
        for (const [cases, dropped] of suites) {
          for (const one of cases) n += inCase(one);
          for (const one of dropped) n += inDropped(one);
        }
        hits[row++] = n;
      }
    }
    return hits;
  }

  list() {
    const held = $("list").contains(document.activeElement);
    const pages = Math.max(1, Math.ceil(this.rows.length / PER_LIST)), shown = this.rows.slice(this.page * PER_LIST, (this.page + 1) * PER_LIST);
    $("list").replaceChildren(...shown.map((row) => el("li", {}, this.item(row))));
    if (!shown.length) $("list").append(el("li", { class: "quiet" }, "No candidate fits these filters."));
    $("where").textContent = `page ${this.page + 1} of ${pages}`;
    $("older").disabled = this.page === 0;
    $("newer").disabled = this.page >= pages - 1;
    const first = this.roving();
    if (first) first.tabIndex = 0;
    if (held) (first || $("list")).focus();
  }

  /* The button of the list that Tab reaches: of the chosen candidate, if it is on this page. */
  roving() { return $("list").querySelector("[aria-current=true]") || $("list").querySelector("button"); }

  rove(button) {
    for (const other of $("list").querySelectorAll("button")) other.tabIndex = -1;
    button.tabIndex = 0;
    button.focus();
  }

  item(row) {
    const c = this.columns, outcome = c.outcome[row], member = this.memberLabel(row);
    return el("button", { type: "button", tabindex: "-1", "data-row": row, "aria-current": String(row === this.chosen), onclick: () => this.open(row) },
      el("span", { class: "mark o" + outcome, "aria-hidden": "true" }, el("b", {}, MARKS[outcome])),
      el("span", { class: "what" }, visible(this.index.problems[c.problem[row]][1])),
      el("span", { class: "when" }, `${this.axis(row)} ${c.step[row]}${member}`),
      el("span", { class: "visually-hidden" }, this.index.outcomes[outcome]),
      el("span", { class: "rewards" }, `${this.rewards(row)}${this.hits ? ` · ${this.hits[row]} ${this.hits[row] === 1 ? "hit" : "hits"}` : ""}`));
  }

  rewards(row) {
    const c = this.columns, told = ["coder", "tester"].map((role) => `${role} ${c[role][row] === null ? "–" : c[role][row].toFixed(3)}`);
    return `${told.join(" · ")} · ${c.failed[row]} of ${c.cases[row]} failed`;
  }

  axis(row) { return this.runs[this.columns.run[row]].axis; }

  memberLabel(row) {
    const c = this.columns, single = c.member[row] === 0 && c.group[row + 1] !== c.group[row];
    return single ? "" : ` · ${c.member[row] + 1}`;
  }

  turn(by) {
    this.page += by;
    this.list();
    $("list").scrollTop = 0;
    this.rove($("list").querySelector("button"));
  }

  keys(event) {
    const buttons = [...$("list").querySelectorAll("button")], at = buttons.indexOf(document.activeElement);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const to = moves[event.key];
    if (to >= buttons.length && !$("newer").disabled) return this.turn(1);
    const next = buttons[Math.max(0, Math.min(buttons.length - 1, to))];
    this.rove(next);
  }

  step(by) {
    const focused = document.activeElement, held = $("list").contains(focused);
    const now = this.chosen >= 0 ? this.chosen : Number(focused.dataset.row ?? -1), at = this.rows.indexOf(now);
    const to = Math.max(0, Math.min(this.rows.length - 1, at + by));
    if (this.rows.length) this.open(this.rows[to], { keep: held, replace: this.chosen >= 0 });
  }

  async textsOf(group) {
    const page = Math.floor(group / this.index.perPage);
    if (!this.pages.has(page)) {
      if (this.pages.size >= PAGES_KEPT) this.pages.delete(this.pages.keys().next().value);
      this.pages.set(page, unpack("page-" + page));
    }
    const { t, g } = await this.pages.get(page);
    return { t, group: g[group % this.index.perPage] };
  }

  problemTexts() { return this.problems || (this.problems = unpack("problems")); }

  /* Open a candidate: in the list's page that holds it, in the address unless that names it already, and in the detail. */
  async open(row, { keep = false, replace = false, address = "#candidate-" + row } = {}) {
    this.chosen = row;
    this.show(row);
    if (keep) this.rove(this.roving());
    if (replace) location.replace(address);
    else if (location.hash !== address) location.hash = address;
    const [{ t, group }, problems] = await Promise.all([this.textsOf(this.columns.group[row]), this.problemTexts()]);
    if (this.chosen !== row) return;
    const detail = new Detail(this, row, t, group, problems), name = this.index.problems[this.columns.problem[row]][1];
    $("detail").replaceChildren(...detail.nodes());
    $("browser").classList.add("open");
    document.title = plain(`${detail.place} · ${name} · ${this.runs[this.columns.run[row]].name}`);
    highlight($("detail"), this.found.query);
    const heading = $("detail").querySelector("h3");
    if (!keep || !$("list").contains(document.activeElement)) heading.focus({ preventScroll: true });
    const box = $("detail").getBoundingClientRect();
    if (!keep && (box.top < 0 || box.top > innerHeight * 0.6)) $("detail").scrollIntoView({ block: "start" });
    announce(heading.textContent);
  }

  /* Mark the candidate in the list, on the page of the list that holds it. */
  show(row) {
    const page = Math.floor(this.rows.indexOf(row) / PER_LIST);
    if (page >= 0 && page !== this.page) { this.page = page; this.list(); }
    for (const button of $("list").querySelectorAll("button")) button.setAttribute("aria-current", String(Number(button.dataset.row) === row));
    const list = $("list"), button = list.querySelector("[aria-current=true]");
    if (!button) return;
    const box = button.getBoundingClientRect(), around = list.getBoundingClientRect();
    if (box.top < around.top || box.bottom > around.bottom) list.scrollTop += box.top - around.top - around.height / 2;
  }

  close() {
    location.hash = "#episodes";
    this.shut(true);
  }

  /* Leave the detail empty; the focus goes to the candidate's button in the list. */
  shut(move) {
    const button = this.roving();
    this.chosen = -1;
    $("browser").classList.remove("open");
    $("detail").replaceChildren(el("p", { class: "quiet" }, "Choose a candidate from the list."));
    document.title = this.title;
    for (const other of $("list").querySelectorAll("button")) other.setAttribute("aria-current", "false");
    if (move) button ? this.rove(button) : $("list").focus();
  }

  copy(row) {
    const address = location.href.split("#")[0] + "#candidate-" + row, say = (text) => { $("copy").textContent = text; announce(text); };
    const copied = navigator.clipboard ? navigator.clipboard.writeText(address) : Promise.reject(new Error("no clipboard"));
    copied.then(() => say("Link copied"), () => say("Copy the link from the address bar"));
  }

  /* The row that an address names; -1: none on this page; undefined: the address names no candidate. */
  rowOf(address) {
    const found = /^#(?:run-(\d+)-)?(candidate|episode|step)-(\d+)$/.exec(address), c = this.columns;
    if (!found) return undefined;
    const [, run, kind, n] = found;
    if (kind === "candidate") return Number(n) < c.step.length ? Number(n) : -1;
    return c.step.findIndex((step, row) => step === Number(n) && this.axis(row) === kind && (run === undefined || c.run[row] === Number(run)));
  }

  /* Show what the address names. Every candidate that is opened is in the address, so that reload, back and forward find it. */
  follow() {
    const address = location.hash, row = this.rowOf(address), isOpen = this.chosen >= 0;
    if (row >= 0) { notice(""); if (row !== this.chosen) this.open(row, { address }); return; }
    noticeUnknown(row === -1);
    if (isOpen && (address === "" || address === "#episodes")) this.shut($("detail").contains(document.activeElement));
  }
}

/* One row per problem of a run, the hardest for the coder first. */
function problemTable({ index, columns: c }, run) {
  const rows = new Map(), mean = (values) => (values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : null);
  for (let i = 0; i < c.step.length; i++) {
    if (c.run[i] !== run) continue;
    if (!rows.has(c.problem[i])) rows.set(c.problem[i], { n: 0, coder: [], tester: [], valid: 0, beaten: 0 });
    const row = rows.get(c.problem[i]), outcome = c.outcome[i];
    row.n++;
    for (const role of ["coder", "tester"]) if (c[role][i] !== null) row[role].push(c[role][i]);
    row.valid += outcome !== INVALID && outcome !== MASKED;
    row.beaten += outcome === BEATEN;
  }
  const known = [...rows].map(([number, { n, coder, tester, valid, beaten }]) => [index.problems[number][1], n, mean(coder), mean(tester), valid ? beaten / valid : null, index.problems[number][2]]);
  known.sort((a, b) => (a[2] ?? Infinity) - (b[2] ?? Infinity));
  const n = known.some((row) => row[5] !== null) ? 6 : 5, heads = ["problem", "candidates", "coder reward", "tester reward", "beaten by a new test", "in the book"].slice(0, n);
  return tableOf("Problems", heads, known.map(([name, ...values]) => el("tr", {}, el("th", { scope: "row" }, visible(name)),
    values.slice(0, n - 1).map((value) => el("td", { "data-value": value ?? "" }, figureText(value))))), "sortable");
}

/* Fill what a run's section shows from the columns. */
async function fillRuns(browser) {
  for (const place of document.querySelectorAll("[data-problems]")) {
    const table = problemTable(browser, Number(place.dataset.problems));
    place.replaceChildren(place.firstElementChild, table);
    sortables(place);
    place.hidden = false;
  }
  for (const place of document.querySelectorAll("[data-duel]")) {
    const [heading, row, ...texts] = browser.index.duels[Number(place.dataset.duel)] ?? [];
    if (heading === undefined) continue;
    if (row === undefined) { place.replaceChildren(el("p", {}, heading)); place.hidden = false; continue; }
    const [{ t, group }, problems] = await Promise.all([browser.textsOf(browser.columns.group[row]), browser.problemTexts()]);
    place.replaceChildren(...new Detail(browser, row, t, group, problems).short(heading, texts).flat(9).filter(Boolean));
    place.hidden = false;
  }
}

/* Say at the top of the page that the address names nothing on it. */
function noticeUnknown(isUnknown) {
  let name = location.hash.slice(1);
  try { name = decodeURIComponent(name); } catch { /* an address may hold anything */ }
  notice(isUnknown || (name && !$(name)) ? `Nothing on this page has the address #${name.slice(0, 100)}.` : "");
}

/* Give life to the charts and tables of a part of the page. */
function enliven(root) {
  legends(root);
  charts(root);
}

/* Replace the sections that the server has changed, and keep what the reader has opened. */
function renew(text, served) {
  for (const section of new DOMParser().parseFromString(text, "text/html").querySelectorAll("main section")) {
    const old = $(section.id), now = section.outerHTML;
    if (old && (section.id === "episodes" || served.get(section.id) === now || old.contains(document.activeElement))) continue;
    served.set(section.id, now);
    const opened = new Map([...(old?.querySelectorAll("details") ?? [])].map((each) => [each.closest("figure")?.textContent + each.firstElementChild.textContent, each.open]));
    if (old) old.replaceWith(section);
    else document.querySelector("main .wrap").append(section);
    enliven(section);
    for (const each of section.querySelectorAll("details")) each.open = opened.get(each.closest("figure")?.textContent + each.firstElementChild.textContent) ?? each.open;
  }
}

async function follow(browser) {
  const served = new Map([...document.querySelectorAll("main section")].map((section) => [section.id, ""]));
  for (let last = ""; ;) {
    await new Promise((done) => setTimeout(done, POLL_MS));
    if (document.hidden) continue;
    try {
      const answer = await fetch(location.href.split("#")[0]), text = await answer.text();
      if (!answer.ok) throw new Error(new DOMParser().parseFromString(text, "text/html").querySelector("section")?.textContent ?? `status ${answer.status}`);
      notice("");
      if (text === last) continue;
      last = text;
      renew(text, served);
      if (!$("episodes")) continue;
      if (browser) await browser.update(await unpack("index"));
      else browser = await browse();
      await fillRuns(browser);
    } catch (error) { notice(`This page does not follow the run: ${error.message}`); }
  }
}

async function browse() {
  const browser = new Browser(await unpack("index"), await unpack("runs"));
  await browser.filter();
  browser.follow();
  return browser;
}

async function start() {
  themes();
  menus();
  enliven(document);
  let browser = null;
  if ($("episodes")) {
    browser = await browse();
    await fillRuns(browser);
  } else {
    noticeUnknown();
    addEventListener("hashchange", () => noticeUnknown());
  }
  document.documentElement.dataset.ready = "yes";
  if (SOURCE) await follow(browser);
}
start().catch((error) => { const place = $("count"); if (place) place.textContent = "This report is damaged: " + error.message; console.error(error); });
