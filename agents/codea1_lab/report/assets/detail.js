"use strict";
/* One candidate with its group: rewards, verdicts, the change since the round before, program, cases, problem, replies. */
const SYMBOLS = { passed: "·", wrong_answer: "W", runtime_error: "E", time_limit: "T", memory_limit: "M", output_limit: "O", not_run: "–", denied: "x", undecided: "~", internal_error: "?" };
const MARKS = ["✓", "✗", "R", "!", "–", "?", "w"];
const HARMLESS = ["passed", "not_run", "denied", "undecided", "internal_error"];
const words = (text) => text.replaceAll("_", " ");
const $ = (id) => document.getElementById(id);

/* A cell that a phone shows beside its label; one element holds the content, or its parts would slip into the labels' column. */
const cell = (label, content, cls) => el("td", { "data-label": label, class: cls }, content === "" ? null : el("div", {}, content));

class Detail {
  constructor(browser, row, t, group, problems) {
    this.browser = browser; this.row = row; this.t = t; this.problems = problems;
    this.members = group[1];
    this.groupId = t[group[0]];
    this.number = browser.columns.member[row];
    const [label, program, verdict, reason, replayed, suites, rewards, book, replies, golden] = this.members[this.number];
    Object.assign(this, { label, program: t[program], verdict: browser.index.verdicts[verdict], reason: t[reason], replayed, suites, rewards, book, replies, golden });
    this.place = `${browser.axis(row)} ${browser.columns.step[row]}${t[label] ? " · " + t[label] : ""}`;
  }

  nodes() {
    const c = this.browser.columns, row = this.row, [run, name] = this.browser.index.problems[c.problem[row]];
    const title = [...visible(name), ` · ${this.place}`];
    return [
      el("button", { type: "button", class: "plain back", onclick: () => this.browser.close() }, "← back to the list"),
      el("h3", { tabindex: "-1" }, title),
      this.chips(), this.otherMembers(), this.sums(), this.matrix(), ...this.change(),
      el("h4", {}, "Program"), ...this.above(run, name), this.whyInvalid(), this.program.trim() ? code(this.program) : el("p", { class: "quiet" }, "The reply holds no program."),
      ...this.cases(), ...this.dropped(), this.problem(run, name), this.raw(),
    ].filter(Boolean);
  }

  chips() {
    const row = this.row, outcome = this.browser.columns.outcome[row], run = this.browser.runs[this.browser.columns.run[row]];
    const chips = [el("span", { class: "chip" }, el("span", { class: "mark o" + outcome, "aria-hidden": "true" }, el("b", {}, MARKS[outcome])), this.browser.index.outcomes[outcome])];
    if (this.golden !== null) chips.push(el("span", { class: "chip" }, "golden tests passed ", el("b", {}, this.golden.toFixed(3))));
    if (this.browser.runs.length > 1) chips.push(el("span", { class: "chip" }, "run ", visible(run.name)));
    chips.push(el("span", { class: "chip quiet mono" }, visible(this.groupId)));
    chips.push(el("button", { type: "button", class: "plain", id: "copy", onclick: () => this.browser.copy(row) }, "Copy link"));
    return el("div", { class: "chips" }, chips);
  }

  otherMembers() {
    if (this.members.length < 2) return null;
    const first = this.row - this.number;
    return el("div", { class: "members", role: "group", "aria-label": "Members of this group" }, this.members.map((member, number) =>
      el("button", { type: "button", class: "plain", "aria-current": String(number === this.number), onclick: () => this.browser.open(first + number) }, this.t[member[0]])));
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
      const names = ["entered", "left", "pushed out", "counted up", "counted down", "", "denied by the solution"], changes = names.map((name, i) => (name && this.book[i] ? `${this.book[i]} ${name}` : "")).filter(Boolean);
      rows.push(el("dt", { class: "t2" }, "Mistake Book"), el("dd", {}, `${changes.join(", ") || "nothing changed"}; ${this.book[5]} for this problem now`));
    }
    return el("dl", { class: "sums" }, rows);
  }

  /* One row per member and one block of columns per suite, as wide as its largest suite, so that the squares of a block are aligned. */
  matrix() {
    const members = this.members, seen = new Set(), several = members.length > 1, suites = Math.max(...members.map((member) => member[5].length));
    const blocks = [{ title: "replayed", key: "r", of: (member) => member[4] }];
    for (let n = 0; n < suites; n++) blocks.push({ title: suites > 1 ? `suite ${n + 1}` : "new tests", key: "s" + n, of: (member) => member[5][n]?.[0] ?? [] });
    for (const block of blocks) block.width = Math.max(...members.map((member) => block.of(member).length));
    const shown = blocks.filter(({ width }) => width > 0);
    if (!shown.length) return null;
    const square = (verdict, title, now, key, n) => {
      seen.add(verdict);
      const mark = el("b", { "aria-hidden": "true" }, SYMBOLS[verdict] || "?");
      return el("span", { class: "v-" + verdict, title, onclick: now ? () => this.point(key, n) : null }, mark, el("span", { class: "visually-hidden" }, words(verdict)));
    };
    const rows = members.map((member, number) => {
      const now = number === this.number, verdicts = shown.flatMap(({ of }) => of(member).map((one) => this.browser.index.verdicts[one[4]]));
      const failed = verdicts.filter((verdict) => !HARMLESS.includes(verdict)).length;
      const cells = shown.flatMap(({ title, key, of, width }) => Array.from({ length: width }, (_, n) => {
        const one = of(member)[n], verdict = one && this.browser.index.verdicts[one[4]];
        return el("td", { class: n ? null : "next" }, one ? square(verdict, `${title}, case ${n + 1}: ${words(verdict)}`, now, key, n) : null);
      }));
      const name = el("th", { scope: "row" }, this.t[member[0]] || "program", el("span", { class: "visually-hidden" }, `: ${failed} of ${verdicts.length} cases failed`));
      return el("tr", { class: now && several ? "now" : null, "aria-current": now && several ? "true" : null }, name, cells);
    });
    const head = el("thead", {}, el("tr", {}, el("td"), shown.map(({ title, width }) => el("th", { scope: "colgroup", colspan: width, class: "next" }, title))));
    const title = `Cases by verdict: one square is one case, one row one ${several ? (this.isRounds() ? "round" : "candidate") : "program"}`;
    const table = el("table", { class: "matrix", "aria-label": title }, el("colgroup"), shown.map(({ width }) => el("colgroup", { span: width })), head, el("tbody", {}, rows));
    const legend = el("div", { class: "legend", "aria-hidden": "true" }, [...seen].map((verdict) => el("span", { class: "v-" + verdict }, `${SYMBOLS[verdict]} ${words(verdict)}`)));
    return el("div", {}, el("p", { class: "quiet small" }, title, "."), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Cases by verdict" }, table), legend);
  }

  isRounds() { return this.browser.axis(this.row) === "episode"; }

  change() {
    if (!this.isRounds() || this.number === 0) return [];
    const before = this.members[this.number - 1], title = "Change since " + this.t[before[0]], [, program] = before;
    const heading = el("h4", {}, title);
    if (this.t[program] === this.program) return [heading, el("p", { class: "quiet" }, "The program has not changed.")];
    return [heading, changed(this.t[program], this.program, title)];
  }

  /* The imports that the problem gives every program. */
  above(run, name) {
    const [, , imports] = this.problems[run]?.[name] ?? [];
    return imports ? [el("p", { class: "quiet small" }, "Above the program stand these lines of the problem:"), code(imports, { numbered: false, label: "Above the program" })] : [];
  }

  point(key, n) {
    const row = key && document.getElementById(`case-${key}-${n}`);
    if (!row) return;
    document.querySelectorAll(".cases .hit").forEach((hit) => hit.classList.remove("hit"));
    row.classList.add("hit");
    row.scrollIntoView({ block: "center" });
  }

  /* The duel in short: one sentence, the tests that the program fails, and `texts`: the solution and the program, as they are compared. What is wrong is red, as on the page to play. */
  short(title, texts) {
    const counts = ([, , right]) => right !== 0 && right !== 2, why = ([, , right]) => (right ? "fails the program, but copies an example" : "fails the program, but its answer is wrong");
    const tests = this.suites.flatMap(([cases]) => cases), verdicts = this.browser.index.verdicts, c = this.browser.columns, row = this.row;
    const failing = tests.map((one, n) => [one, n]).filter(([[, , , , verdict]]) => !HARMLESS.includes(verdicts[verdict])).sort(([a], [b]) => counts(b) - counts(a));
    const told = failing.slice(0, 3).map(([one, n]) => [one, n, ...one]).map(([one, n, expression, expected, , , verdict, actual]) => el("p", {}, el("b", {}, `Test ${n + 1} ${counts(one) ? "finds it" : why(one)}: `), el("span", { class: "mono ltr" }, visible(this.t[expression])),
      actual === null ? `, ${words(verdicts[verdict])}` : [" gives ", el("span", { class: "mono ltr" }, visible(this.t[actual]))], ", the solution ", el("span", { class: "mono ltr" }, visible(this.t[expected])), "."));
    const name = this.browser.index.problems[c.problem[row]][1], label = "The program (-) and the solution (+), without comments and docstrings", region = `${title}: ${name}, ${this.place}, run ${c.run[row] + 1}`, passed = tests.length - failing.length;
    return [
      el("p", { class: "kicker" }, title), el("h3", {}, visible(name), ` · ${this.place}`), failing.length ? told : el("p", {}, tests.length ? `The program passes all ${passed} new tests.` : "No new test was run."), el("p", { class: "quiet" }, this.browser.rewards(row)), this.whyInvalid(),
      texts.length ? [el("p", { class: "quiet small" }, label), changed(texts[1], texts[0], region)] : code(this.program, { label: region }),
      el("button", { type: "button", class: "plain", onclick: () => this.browser.open(row) }, "All about this duel"),
    ];
  }

  whyInvalid() {
    return this.verdict === "passed" ? null : el("p", {}, el("b", {}, words(this.verdict)), this.reason ? [": ", ...visible(this.reason)] : "");
  }

  cases() {
    const groups = [...this.suites.map((suite, n) => [this.suites.length > 1 ? `Suite ${n + 1}` : "New tests", suite[0], "s" + n]), ["Replayed from the Mistake Book", this.replayed, "r"]];
    return groups.filter(([, cases]) => cases.length).flatMap(([title, cases, key]) => [el("h4", {}, title), this.table(title, cases, key)]);
  }

  table(title, cases, key) {
    const text = (value) => el("span", { class: "mono ltr" }, visible(value));
    const rows = cases.map(([expression, expected, right, prediction, verdict, actual], n) => {
      const word = this.browser.index.verdicts[verdict];
      const predicted = right === null ? "" : right ? ["right", "right, an example"][right - 1] : [el("b", { class: "tester" }, "wrong "), prediction === null ? "" : text(this.t[prediction])];
      return el("tr", { id: `case-${key}-${n}` }, cell("case", String(n + 1)), cell("test", text(this.t[expression])), cell("right answer", text(this.t[expected])),
        cell("tester’s answer", predicted), cell("program", words(word), "word v-" + word), cell("program gave", actual === null ? "" : text(this.t[actual])));
    });
    const heads = ["", "test", "right answer", "tester’s answer", "program", "program gave"];
    return el("div", { class: "scroll" }, el("table", { class: "cases", "aria-label": title }, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows)));
  }

  dropped() {
    const all = this.suites.flatMap((suite) => suite[1]);
    if (!all.length) return [];
    const rows = all.map(([why, , source, line]) => el("tr", {}, cell("line", String(line || "")), cell("text", el("span", { class: "mono ltr" }, visible(this.t[source]))),
      cell("because", spans(this.t[why]))));
    return [el("h4", {}, "Dropped or corrected"), el("div", { class: "scroll" }, el("table", { class: "cases", "aria-label": "Dropped or corrected" },
      el("thead", {}, el("tr", {}, ["line", "text", "because"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows)))];
  }

  problem(run, name) {
    const found = this.problems[run]?.[name];
    if (!found) return el("p", { class: "quiet small" }, "The problem's text is missing: its source was not available when this report was written.");
    return el("div", {}, el("h4", {}, "Problem"), code(unfilled(found[0]), { numbered: false, label: "Problem" }),
      el("details", {}, el("summary", {}, "Trusted solution"), code(found[1], { label: "Trusted solution" })));
  }

  raw() {
    if (!this.replies) return null;
    const [coder, tester] = this.replies, reply = (text, label) => code(this.t[text], { numbered: false, label });
    return el("details", {}, el("summary", {}, "Raw replies"), el("h4", {}, "coder"), reply(coder, "Raw reply of the coder"),
      tester === null ? null : [el("h4", {}, "tester"), reply(tester, "Raw reply of the tester")]);
  }
}
