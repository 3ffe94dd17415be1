"use strict";
/* The browser of episodes. Filters read the columns of the index; texts are unpacked when an episode is opened. */
const SYMBOLS = { passed: "·", wrong_answer: "W", runtime_error: "E", time_limit: "T", memory_limit: "M", output_limit: "O", not_run: "–", internal_error: "?" };
const MARKS = ["✓", "✗", "R", "!", "–", "?"];
const PER_LIST = 100;
const words = (text) => text.replaceAll("_", " ");
const $ = (id) => document.getElementById(id);

class Browser {
  constructor(index, runs) {
    this.index = index;
    this.columns = index.columns;
    this.runs = runs;
    this.pages = new Map();
    this.problems = null;
    this.page = 0;
    this.chosen = -1;
    this.rows = [];
    this.fill();
    this.listen();
    this.filter();
  }

  fill() {
    const { outcomes, problems } = this.index, counts = new Array(outcomes.length).fill(0);
    for (const outcome of this.columns.outcome) counts[outcome]++;
    outcomes.forEach((name, number) => {
      if (!counts[number]) return;
      const box = el("input", { type: "checkbox", value: number, checked: true, name: "outcome" });
      $("picks").append(el("label", { class: "pick" }, box, el("span", {}, name, " ", el("b", {}, counts[number].toLocaleString("en")))));
    });
    if (this.runs.length > 1) this.runs.forEach(({ name }, number) => $("f-run").append(el("option", { value: number }, visible(name))));
    else $("f-run").closest("div").hidden = true;
    const names = [...new Set(problems.map(([, name]) => name))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    $("f-problems").append(...names.map((name) => el("option", { value: name })));
  }

  listen() {
    let waiting = 0;
    $("filters").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => this.filter(), 60); });
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    $("filters").addEventListener("reset", () => setTimeout(() => this.filter()));
    $("older").addEventListener("click", () => this.turn(-1));
    $("newer").addEventListener("click", () => this.turn(1));
    $("list").addEventListener("keydown", (event) => this.keys(event));
    $("episodes").addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
      if (event.key === "j" || event.key === "k") this.step(event.key === "j" ? 1 : -1);
      if (event.key === "Escape" && $("detail").contains(event.target)) this.close();
    });
    addEventListener("hashchange", () => this.follow());
  }

  filter() {
    const wanted = new Set([...document.querySelectorAll("#picks input:checked")].map((box) => Number(box.value)));
    const run = $("f-run").value === "" ? -1 : Number($("f-run").value), text = $("f-problem").value.trim().toLowerCase();
    const from = $("f-from").value === "" ? -Infinity : Number($("f-from").value), to = $("f-to").value === "" ? Infinity : Number($("f-to").value);
    const fits = this.index.problems.map(([, name]) => name.toLowerCase().includes(text));
    const c = this.columns, rows = [];
    for (let i = 0; i < c.step.length; i++) {
      if (wanted.has(c.outcome[i]) && (run < 0 || c.run[i] === run) && fits[c.problem[i]] && c.step[i] >= from && c.step[i] <= to) rows.push(i);
    }
    const by = $("f-sort").value, missing = by.endsWith("-low") ? Infinity : -Infinity, key = by.split("-")[0];
    if (key in c) {
      const sign = by.endsWith("-low") ? 1 : -1;
      rows.sort((a, b) => sign * ((c[key][a] ?? missing) - (c[key][b] ?? missing)) || a - b);
    } else if (by === "last") rows.reverse();
    this.rows = rows;
    this.page = 0;
    this.list();
    $("count").textContent = `${rows.length.toLocaleString("en")} of ${c.step.length.toLocaleString("en")} candidates`;
  }

  list() {
    const pages = Math.max(1, Math.ceil(this.rows.length / PER_LIST)), shown = this.rows.slice(this.page * PER_LIST, (this.page + 1) * PER_LIST);
    $("list").replaceChildren(...shown.map((row) => el("li", {}, this.item(row))));
    if (!shown.length) $("list").append(el("li", { class: "quiet" }, "No candidate fits these filters."));
    $("where").textContent = `page ${this.page + 1} of ${pages}`;
    $("older").disabled = this.page === 0;
    $("newer").disabled = this.page >= pages - 1;
    const first = $("list").querySelector("[aria-current=true]") || $("list").querySelector("button");
    if (first) first.tabIndex = 0;
  }

  item(row) {
    const c = this.columns, outcome = c.outcome[row], member = this.memberLabel(row);
    const rewards = ["coder", "tester"].map((role) => `${role} ${c[role][row] === null ? "–" : c[role][row].toFixed(3)}`);
    return el("button", { type: "button", tabindex: "-1", "data-row": row, "aria-current": String(row === this.chosen), onclick: () => this.open(row, true) },
      el("span", { class: "mark o" + outcome, "aria-hidden": "true" }, el("b", {}, MARKS[outcome])),
      el("span", { class: "what" }, visible(this.index.problems[c.problem[row]][1])),
      el("span", { class: "when" }, `${this.axis(row)} ${c.step[row]}${member}`),
      el("span", { class: "visually-hidden" }, this.index.outcomes[outcome]),
      el("span", { class: "rewards" }, `${rewards.join(" · ")} · ${c.failed[row]} of ${c.cases[row]} failed`));
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
    $("list").querySelector("button")?.focus();
  }

  keys(event) {
    const buttons = [...$("list").querySelectorAll("button")], at = buttons.indexOf(document.activeElement);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const to = moves[event.key];
    if (to >= buttons.length && !$("newer").disabled) return this.turn(1);
    const next = buttons[Math.max(0, Math.min(buttons.length - 1, to))];
    for (const button of buttons) button.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  step(by) {
    const at = this.rows.indexOf(this.chosen), to = Math.max(0, Math.min(this.rows.length - 1, at + by));
    if (!this.rows.length) return;
    const page = Math.floor(to / PER_LIST);
    if (page !== this.page) { this.page = page; this.list(); }
    this.open(this.rows[to], false);
  }

  async texts(group) {
    const page = Math.floor(group / this.index.perPage);
    if (!this.pages.has(page)) {
      if (this.pages.size > 8) this.pages.delete(this.pages.keys().next().value);
      this.pages.set(page, unpack("page-" + page));
    }
    const { t, g } = await this.pages.get(page);
    return { t, group: g[group % this.index.perPage] };
  }

  async open(row, move) {
    this.chosen = row;
    for (const button of $("list").querySelectorAll("button")) button.setAttribute("aria-current", String(Number(button.dataset.row) === row));
    const [{ t, group }, problems] = await Promise.all([this.texts(this.columns.group[row]), this.problems || (this.problems = unpack("problems"))]);
    if (this.chosen !== row) return;
    $("detail").replaceChildren(...new Detail(this, row, t, group, problems).nodes());
    $("browser").classList.add("open");
    try { history.replaceState(null, "", "#candidate-" + row); } catch { /* some browsers forbid it from disk */ }
    const heading = $("detail").querySelector("h3");
    if (move) heading.focus({ preventScroll: true });
    const box = $("detail").getBoundingClientRect();
    if (move && (box.top < 0 || box.top > innerHeight * 0.6)) $("detail").scrollIntoView({ block: "start" });
    $("announcement").textContent = heading.textContent;
    $("list").querySelector("[aria-current=true]")?.scrollIntoView({ block: "nearest" });
  }

  close() {
    $("browser").classList.remove("open");
    const button = $("list").querySelector("[aria-current=true]") || $("list").querySelector("button");
    if (button) { button.tabIndex = 0; button.focus(); }
  }

  follow() {
    const found = /^#candidate-(\d+)$/.exec(location.hash);
    if (found && Number(found[1]) < this.columns.step.length && Number(found[1]) !== this.chosen) this.open(Number(found[1]), true);
  }
}

class Detail {
  constructor(browser, row, t, group, problems) {
    this.browser = browser; this.row = row; this.t = t; this.problems = problems;
    this.members = group[1];
    this.groupId = t[group[0]];
    this.number = browser.columns.member[row];
    const [label, program, verdict, reason, replayed, suites, rewards, book, replies, golden] = this.members[this.number];
    Object.assign(this, { label, program: t[program], verdict: browser.index.verdicts[verdict], reason: t[reason], replayed, suites, rewards, book, replies, golden });
  }

  nodes() {
    const c = this.browser.columns, row = this.row, [run, name] = this.browser.index.problems[c.problem[row]];
    const title = [...visible(name), ` · ${this.browser.axis(row)} ${c.step[row]}`, this.t[this.label] ? ` · ${this.t[this.label]}` : ""];
    return [
      el("button", { type: "button", class: "plain back", onclick: () => this.browser.close() }, "← back to the list"),
      el("h3", { tabindex: "-1" }, title),
      this.chips(), this.otherMembers(), this.sums(), this.matrix(),
      el("h4", {}, "Program"), this.whyInvalid(), this.program.trim() ? code(this.program) : el("p", { class: "quiet" }, "The reply holds no program."),
      ...this.cases(), ...this.dropped(), this.problem(run, name), this.raw(),
    ].filter(Boolean);
  }

  chips() {
    const outcome = this.browser.columns.outcome[this.row], run = this.browser.runs[this.browser.columns.run[this.row]];
    const chips = [el("span", { class: "chip" }, el("span", { class: "mark o" + outcome, "aria-hidden": "true" }, el("b", {}, MARKS[outcome])), this.browser.index.outcomes[outcome])];
    if (this.golden !== null) chips.push(el("span", { class: "chip" }, "golden tests passed ", el("b", {}, this.golden.toFixed(3))));
    if (this.browser.runs.length > 1) chips.push(el("span", { class: "chip" }, "run ", visible(run.name)));
    chips.push(el("span", { class: "chip quiet mono" }, visible(this.groupId)));
    return el("div", { class: "chips" }, chips);
  }

  otherMembers() {
    if (this.members.length < 2) return null;
    const first = this.row - this.number;
    return el("div", { class: "members", role: "group", "aria-label": "Members of this group" }, this.members.map((member, number) =>
      el("button", { type: "button", class: "plain", "aria-current": String(number === this.number), onclick: () => this.browser.open(first + number, true) }, this.t[member[0]])));
  }

  sum([value, parts]) {
    if (value === null) return "masked: the sandbox or an agent failed";
    const terms = parts.map(([name, weight, each], i) => `${weight < 0 ? "− " : i ? "+ " : ""}${Math.abs(weight)}·${this.t[name]} ${each.toFixed(3)}`);
    return [terms.join(" ") || "nothing", " = ", el("b", {}, value.toFixed(3))];
  }

  sums() {
    const [coder, testers] = this.rewards, hasSuites = this.suites.length > 0;
    const rows = [el("dt", { class: "coder" }, "coder"), el("dd", {}, this.sum(coder))];
    testers.forEach((reward, n) => rows.push(el("dt", { class: "tester" }, testers.length > 1 ? `tester ${n + 1}` : "tester"), el("dd", {}, hasSuites ? this.sum(reward) : "no turn")));
    if (this.book) {
      const names = ["entered", "left", "pushed out", "counted up", "counted down"], changes = names.map((name, i) => (this.book[i] ? `${this.book[i]} ${name}` : "")).filter(Boolean);
      rows.push(el("dt", { class: "t2" }, "Mistake Book"), el("dd", {}, `${changes.join(", ") || "nothing changed"}; ${this.book[5]} for this problem now`));
    }
    return el("dl", { class: "sums" }, rows);
  }

  matrix() {
    const seen = new Set(), rows = [];
    const cells = (cases, key) => cases.map((one, n) => {
      const verdict = this.browser.index.verdicts[one[4]];
      seen.add(verdict);
      const title = `case ${n + 1}: ${words(verdict)}`;
      return el("td", {}, el("span", { class: "v-" + verdict, title, onclick: () => this.point(key, n) }, el("b", { "aria-label": words(verdict) }, SYMBOLS[verdict] || "?")));
    });
    this.members.forEach((member, number) => {
      const now = number === this.number, name = this.members.length > 1 ? this.t[member[0]] + ": " : "";
      if (member[4].length) rows.push([now, name + "replayed", cells(member[4], now ? "r" : "")]);
      const suites = member[5].map((suite, n) => cells(suite[0], now ? "s" + n : "")).filter((some) => some.length);
      suites.slice(1).forEach((some) => some[0].classList.add("next"));
      if (suites.length) rows.push([now, name + (member[5].length > 1 ? "suites" : "new"), suites.flat()]);
    });
    if (!rows.length) return null;
    const table = el("table", { class: "matrix" }, el("caption", {}, "Cases by verdict; one square is one case."),
      el("tbody", {}, rows.map(([now, name, tds]) => el("tr", { class: now && this.members.length > 1 ? "now" : null }, el("th", { scope: "row" }, name), tds))));
    const legend = el("div", { class: "legend", "aria-hidden": "true" }, [...seen].map((verdict) => el("span", { class: "v-" + verdict }, `${SYMBOLS[verdict]} ${words(verdict)}`)));
    return el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Cases by verdict" }, table), legend);
  }

  point(key, n) {
    const row = key && document.getElementById(`case-${key}-${n}`);
    if (!row) return;
    document.querySelectorAll(".cases .hit").forEach((hit) => hit.classList.remove("hit"));
    row.classList.add("hit");
    row.scrollIntoView({ block: "center" });
  }

  whyInvalid() {
    return this.verdict === "passed" ? null : el("p", {}, el("b", {}, words(this.verdict)), this.reason ? [": ", ...visible(this.reason)] : "");
  }

  cases() {
    const groups = [...this.suites.map((suite, n) => [this.suites.length > 1 ? `Suite ${n + 1}` : "New tests", suite[0], "s" + n]), ["Replayed from the Mistake Book", this.replayed, "r"]];
    return groups.filter(([, cases]) => cases.length).flatMap(([title, cases, key]) => [el("h4", {}, title), this.table(title, cases, key)]);
  }

  table(title, cases, key) {
    const cell = (label, content, cls) => el("td", { "data-label": label, class: cls }, content);
    const text = (value) => el("span", { class: "mono ltr" }, visible(value));
    const rows = cases.map(([expression, expected, right, prediction, verdict, actual], n) => {
      const word = this.browser.index.verdicts[verdict];
      const predicted = right === null ? "" : right ? "right" : [el("b", { class: "v-time_limit" }, "wrong "), prediction === null ? "" : text(this.t[prediction])];
      return el("tr", { id: `case-${key}-${n}` }, cell("case", String(n + 1)), cell("test", text(this.t[expression])), cell("solution", text(this.t[expected])),
        cell("predicted", predicted), cell("verdict", words(word), "word v-" + word), cell("gave", actual === null ? "" : text(this.t[actual])));
    });
    const heads = ["", "test", "solution", "predicted", "verdict", "program gave"];
    return el("div", { class: "scroll" }, el("table", { class: "cases", "aria-label": title }, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows)));
  }

  dropped() {
    const all = this.suites.flatMap((suite) => suite[1]);
    if (!all.length) return [];
    const rows = all.map(([reason, source, line, detail]) => el("tr", {}, el("td", { "data-label": "line" }, line || ""), el("td", { "data-label": "text" }, el("span", { class: "mono ltr" }, visible(this.t[source]))),
      el("td", { "data-label": "because" }, this.t[reason], this.t[detail] ? [": ", ...visible(this.t[detail])] : "")));
    return [el("h4", {}, "Dropped or corrected"), el("div", { class: "scroll" }, el("table", { class: "cases", "aria-label": "Dropped or corrected" },
      el("thead", {}, el("tr", {}, ["line", "text", "because"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows)))];
  }

  problem(run, name) {
    const found = this.problems[run]?.[name];
    if (!found) return el("p", { class: "quiet small" }, "The problem's text is missing: its source was not available when this report was written.");
    return el("div", {}, el("h4", {}, "Problem"), code(found[0], { numbered: false, label: "Problem" }),
      el("details", {}, el("summary", {}, "Trusted solution"), code(found[1], { label: "Trusted solution" })));
  }

  raw() {
    if (!this.replies) return null;
    const [coder, tester] = this.replies, reply = (text, label) => code(this.t[text], { numbered: false, label });
    return el("details", {}, el("summary", {}, "Raw replies"), el("h4", {}, "coder"), reply(coder, "Raw reply of the coder"),
      tester === null ? null : [el("h4", {}, "tester"), reply(tester, "Raw reply of the tester")]);
  }
}

async function start() {
  themes();
  charts();
  sortables();
  if (!$("index")) return;
  const browser = new Browser(await unpack("index"), await unpack("runs"));
  browser.follow();
  document.documentElement.dataset.ready = "yes";
}
start().catch((error) => { const place = $("count"); if (place) place.textContent = "This report is damaged: " + error.message; console.error(error); });
