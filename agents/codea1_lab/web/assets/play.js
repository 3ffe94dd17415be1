"use strict";
/* Play: the lobby, where a game is chosen, and the game: problem, program, editor, tries, story. */
const table = document.getElementById("play"), NO_COLON = /:\s*$/, MARK_OF = { good: "✓", bad: "✗" };
const ABOUT = { __proto__: null, mutant: "mutant knows the solution, and may change it in one place.", fuzz: "fuzz tests programs with random inputs." };
const GAME = "#play/game"; // the address of a game; the lobby is at #play
let choices = null, played = null, won = []; // the game, its tries and the draft; the duels

const option = (name, value) => el("option", { value: String(value) }, visible(name, ""));
const action = (label, onclick, kind = "plain") => el("button", { type: "button", class: kind, onclick }, label);

/* Do what a button says, and say why not. */
async function attempt(button, work) {
  notice("");
  announce("One moment …");
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  try { await work(); } catch (error) { announce(""); notice(error.message); } finally { button.disabled = false; button.removeAttribute("aria-busy"); }
}

const begin = (button, body) => attempt(button, async () => enter((await ask("play/game", body)).game));

/* Show a game at its address. A reload keeps its tries and what is typed, in this tab only. */
function enter(game, kept) {
  played = kept ?? { game, tries: [], draft: game.draft };
  if (location.hash !== GAME) history.pushState(null, "", GAME);
  showGame();
}

const keyOf = ({ title, points, program, statement }) => [title, points, program, statement].join("\n");
const keep = () => { try { sessionStorage.setItem("play", JSON.stringify(played)); } catch { /* the browser keeps nothing */ } };

function kept(game) {
  try {
    const found = JSON.parse(sessionStorage.getItem("play"));
    return keyOf(found.game) === keyOf(game) ? { ...found, game } : undefined;
  } catch { return undefined; }
}
const duel = (label, number, kind) => action(label, (event) => begin(event.currentTarget, { role: "tester", duel: number }), kind);

function choice(role, opponents, other) {
  const known = [...new Set(opponents)].map((name) => ABOUT[name]).filter(Boolean).join(" "), id = `about-${role}`;
  const opponent = el("select", { "aria-describedby": known ? id : null }, opponents.map((name, n) => option(opponents.length > 1 ? `${n + 1}. ${name}` : name, n))), problem = el("select", {}, option("any problem", ""), choices.problems.map((id) => option(id, id)));
  const button = el("button", { type: "submit", class: "plain" }, `Play as ${role}`);
  const send = (event) => { event.preventDefault(); begin(button, { role, opponent: Number(opponent.value), problem: problem.value }); };
  return el("form", { class: "filters", onsubmit: send }, el("label", {}, other, opponent), el("label", {}, "Problem", problem), button, known ? el("p", { class: "quiet small", id }, known) : null);
}

function showLobby() {
  const next = choices.duels.findIndex((_, n) => !won.includes(n + 1));
  const duels = choices.duels.map((topic, n) => duel(`Duel ${n + 1}: ${topic}${won.includes(n + 1) ? ", won ✓" : ""}`, n + 1, n === next ? "plain main" : "plain"));
  table.replaceChildren(
    el("h2", { tabindex: "-1" }, "Play"),
    el("p", { class: "conclusion" }, "A coder writes a program, and a tester writes tests to break it. You are one of them, and have three points: a try that finds nothing costs one."),
    played && !played.game.is_over ? el("p", {}, action(["Go on with ", visible(played.game.title, "")], () => enter(played.game, played))) : "",
    el("div", { class: "card" }, el("h3", {}, "Be the tester: begin here"), el("p", {}, "Each of these programs is wrong in one place. Find an input for which it gives a wrong answer. You need to read a little Python."), el("div", { class: "members" }, duels)),
    el("div", { class: "card" }, el("h3", {}, "Be the tester of an agent's program"), choice("tester", choices.coders, "Coder")),
    el("div", { class: "card" }, el("h3", {}, "Be the coder against a tester"), choice("coder", choices.testers, "Tester")),
  );
}

/* A field for Python. Keyboards get out of it with Escape, then Tab. */
function editor(text, rows, send) {
  const area = el("textarea", { id: "reply", rows: String(rows), spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-describedby": "keys" });
  area.value = text;
  let leaves = false;
  area.addEventListener("keydown", (event) => {
    const put = (typed) => { // as typing does, so that it can be undone
      event.preventDefault();
      if (!document.execCommand("insertText", false, typed)) area.setRangeText(typed, area.selectionStart, area.selectionEnd, "end");
    };
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); }
    else if (event.key === "Enter" && !event.isComposing) {
      const line = area.value.slice(0, area.selectionStart).split("\n").pop();
      put("\n" + /^[ \t]*/.exec(line)[0] + (NO_COLON.test(line) ? "    " : ""));
    } else if (event.key === "Tab" && !event.shiftKey && !leaves) put("    ");
    leaves = event.key === "Escape";
  });
  return area;
}

const results = (tests, isAlone) => tests.map(({ number, test, told, tone }) => el("li", { class: tone }, el("code", { class: "ltr" }, MARK_OF[tone] ?? "·", " ", isAlone ? "" : `${number}. `, visible(test)), el("div", {}, visible(told, ""))));

/* What a try has cost, as its card says. */
const costs = (before, { points, is_over: isOver, most }, hasWon) => (hasWon ? `won with ${points} of ${most} points` : before === points ? "cost no point" : `cost a point, ${isOver ? "none" : points} left`);

function tried({ summary, lines, tests, hint, solution, cost }, n, isLast) {
  return el("div", { class: "card", id: isLast ? "last" : null }, el("h3", {}, `Try ${n}: ${cost}`), solution ? null : el("p", {}, spans(summary)),
    el("ul", { class: "remarks" }, results(tests, tests.length < 2), lines.map((line) => el("li", {}, spans(line)))), hint ? el("p", {}, el("b", {}, "Hint: "), spans(hint)) : null);
}

/* The imports that the problem gives every program. */
const above = ({ imports }, whose) => (imports ? [el("p", { class: "quiet small" }, `Above ${whose} program stand these lines of the problem:`), code(imports, { numbered: false, label: "Above the program" })] : null);

function ended(game, last, draft) {
  const isTester = game.role === "tester", isRight = last.has_won && !isTester, next = game.duel % choices.duels.length + 1;
  const title = isRight ? "The solution, which may go another way" : `From ${isTester ? "the" : "your"} program to the solution`;
  return [el("div", { class: "card", id: "story" }, el("h3", { tabindex: "-1" }, last.has_won ? "You have won" : "You have lost"), el("p", { class: "conclusion" }, spans(last.summary))),
    el("div", { class: "members" }, game.duel ? duel(`Go on to duel ${next}`, next, "plain main") : null, action("Play another game", leave)),
    last.missed.length ? el("div", { class: "card" }, el("h3", {}, "A test that would have found it"), el("ul", { class: "remarks" }, results(last.missed, true))) : null,
    ...(isRight ? [el("h3", {}, "Your program"), above(game, "your"), code(draft, { label: "Your program" }), el("h3", {}, title), code(last.solution, { label: title })] : [el("h3", {}, title), changed(last.program, last.solution, title)])].flat(9);
}

function leave() {
  notice("");
  history.pushState(null, "", "#play");
  showLobby();
  table.querySelector("h2").focus();
}

function showGame() {
  const { game, tries, draft } = played, isTester = game.role === "tester", last = tries.at(-1), chip = (...texts) => el("span", { class: "chip" }, texts);
  const button = el("button", { type: "submit", class: "plain main" }, isTester ? "Send the tests" : "Send the program");
  const send = () => attempt(button, async () => {
    const found = await ask("play/try", { text: area.value });
    const cost = costs(game.points, found.game, found.try.has_won);
    played = { game: found.game, tries: [...tries, { ...found.try, cost }], draft: area.value };
    showGame();
  });
  const area = editor(draft, isTester ? 6 : 14, send), form = el("form", { onsubmit: (event) => { event.preventDefault(); send(); } },
    el("label", { for: "reply" }, isTester ? "Your tests: one assert in a line, a call and its right answer" : "Your program"), area,
    el("p", { class: "quiet small", id: "keys" }, "Ctrl+Enter sends. Tab indents; Escape, then Tab leaves the field."), button);
  area.addEventListener("input", () => { played.draft = area.value; keep(); });
  keep();
  won = game.won;
  table.replaceChildren(
    el("h2", { tabindex: "-1" }, visible(game.title, "")), el("p", { class: "conclusion" }, game.task),
    el("div", { class: "chips" }, chip(`You are the ${game.role}`), chip(el("b", {}, `${game.points} of ${game.most}`), " points"), game.total ? chip(el("b", {}, String(game.total)), ` ${game.total === 1 ? "point" : "points"} in all games`) : null, game.is_over ? null : action("Another game", leave)),
    ...(game.is_over ? ended(game, last, draft).filter(Boolean) : []),
    el("div", { class: "sides" },
      el("div", {}, el("h3", {}, "Problem"), code(unfilled(game.statement), { numbered: false, label: "Problem" }),
        game.examples.length ? [el("h3", {}, "Tests that are known"), code(game.examples.join("\n"), { numbered: false, label: "Tests that are known" })] : null,
        game.notes ? el("p", {}, spans(game.notes)) : null),
      el("div", {}, isTester ? [el("h3", {}, "The program"), above(game, "the"), code(game.program)] : null, game.is_over ? null : [isTester ? null : above(game, "your"), form], tries.map((one, n) => tried(one, n + 1, one === last)).reverse())),
  );
  const place = table.querySelector("#story h3") ?? (last ? area : table.querySelector("h2"));
  place.focus({ preventScroll: true });
  if (last) table.querySelector(game.is_over ? "h2" : "#last").scrollIntoView({ block: "nearest" }); else scrollTo(0, 0);
  announce(last ? `${last.summary} ${last.hint}`.replaceAll("`", "") : `${game.title}. ${game.task}`);
}

ask("play/game").then((found) => {
  choices = found.choices;
  const { game } = found, isShown = !table.hidden;
  won = game?.won ?? [];
  if (!game || (game.is_over && !(location.hash === GAME && kept(game)?.tries.length))) {
    if (location.hash === GAME) history.replaceState(null, "", "#play");
    showLobby();
  } else if (isShown) enter(game, kept(game));
  else { played = kept(game) ?? { game, tries: [], draft: game.draft }; showGame(); }
  document.documentElement.dataset.ready = "yes";
}).catch((error) => notice(error.message));

addEventListener("hashchange", ({ oldURL }) => { // back and forward
  if (location.hash === GAME && played) showGame();
  else if (new URL(oldURL).hash === GAME && !table.hidden) showLobby();
});
