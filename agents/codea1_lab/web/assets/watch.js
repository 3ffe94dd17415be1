"use strict";
/* The list of runs: what each is doing, and links to its page. Names and sentences are text nodes. */
{
  const place = document.getElementById("watch"), chosen = new Set(), rows = new Map(), POLL_MS = 2000;
  const HEADS = ["run", "kind", "state", "step", "coder reward", "tester reward", "suites that beat", "valid", "last written"];
  const list = tableOf("Runs", HEADS, [], "runs-list cases"), none = el("p", { hidden: true }, "There is no run in this folder yet. codea1 play and codea1 train write one.");
  const compare = el("a", { class: "plain", hidden: true }), address = (names) => "watch/report?" + new URLSearchParams(names.map((name) => ["run", name]));
  const told = (value) => (typeof value === "number" && Number.isFinite(value) ? value.toFixed(3) : "–");
  const ago = (s) => (s < 90 ? `${Math.round(s)} s ago` : s < 5400 ? `${Math.round(s / 60)} min ago` : s < 129600 ? `${Math.round(s / 3600)} h ago` : `${Math.round(s / 86400)} days ago`);

  function showChosen() {
    compare.hidden = chosen.size < 2;
    compare.textContent = `Compare ${chosen.size} runs`;
    compare.href = address([...chosen]);
  }

  function pick(event) {
    if (event.target.checked) chosen.add(event.target.value);
    else chosen.delete(event.target.value);
    showChosen();
  }

  /* Return the row of a key, with the cells of a new one: the row itself stays, and with it what is focused. */
  function renewed(key, fresh) {
    const row = rows.get(key) ?? fresh;
    if (row !== fresh) [...fresh.cells].forEach((cell, n) => { if (cell.tagName === "TD" && !cell.isEqualNode(row.cells[n])) row.cells[n].replaceWith(cell); });
    rows.set(key, row);
    return row;
  }

  function rowsOf({ name, kind, state, step, of, figures, age_s: age, alarms }) {
    const box = el("input", { type: "checkbox", value: name, "aria-label": plain(`Compare ${name}`), onchange: pick });
    const numbers = ["coder_reward", "tester_reward", "right_kill_rate", "suite_validity"].map((key) => told(figures?.[key]));
    const link = el("a", { href: address([name]) }, visible(name)), at = step === undefined ? "–" : `${step} of ${of}`;
    return [
      renewed(name, el("tr", {}, el("th", { scope: "row" }, box, " ", link), [kind, state, at, ...numbers, ago(age)].map((text, n) => cell(HEADS[n + 1], text)))),
      ...alarms.map((sentence, n) => renewed(JSON.stringify([name, n]), el("tr", {}, el("td", { colspan: 9, class: "alarm" }, visible(String(sentence)))))),
    ];
  }

  async function show() {
    const { runs } = await ask("watch/runs"), wanted = runs.flatMap(rowsOf), focused = document.activeElement, body = list.querySelector("tbody");
    list.hidden = !runs.length;
    none.hidden = Boolean(runs.length);
    if (wanted.length === body.rows.length && wanted.every((row, n) => row === body.rows[n])) return;
    body.replaceChildren(...wanted);
    if (body.contains(focused)) focused.focus();
  }

  async function watch() {
    for (;;) {
      if (!place.hidden && !document.hidden) await show().then(() => notice(""), (error) => notice(error.message));
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
  }

  place.append(el("h2", {}, "Runs"), el("p", { class: "quiet" }, "Each name opens the run's page, which follows the run while it goes on. Choose several to see them in one set of charts."), compare, none, list);
  list.hidden = true;
  watch();
}
