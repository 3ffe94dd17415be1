"use strict";
/* Themes, the menu, legends, sortable tables, and the numbers of a chart at the pointer, by the arrow keys, or as a table. */
function themes() {
  const button = document.getElementById("theme");
  const order = ["auto", "light", "dark"];
  let now = "auto";
  try { now = localStorage.getItem("codea1-theme") || "auto"; } catch { /* a page from disk may have no storage */ }
  const show = () => {
    if (now === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    button.textContent = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" }[now];
    button.setAttribute("aria-label", "Colours: " + now + ". Change");
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    now = order[(order.indexOf(now) + 1) % 3];
    try { localStorage.setItem("codea1-theme", now); } catch { /* the same */ }
    show();
  });
  show();
}

function menus() {
  const list = document.getElementById("sections");
  list.addEventListener("click", () => { if (list.matches(":popover-open")) list.hidePopover(); });
}

function legends(root) {
  for (const button of root.querySelectorAll("[data-toggles]")) {
    button.addEventListener("click", () => {
      const isOn = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isOn));
      for (const line of document.querySelectorAll(`#compared [data-run="${button.dataset.toggles}"]`)) line.toggleAttribute("hidden", !isOn);
    });
  }
}

function figureText(value) {
  if (value === null) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.abs(value) >= 100 ? value.toFixed(1) : value.toFixed(3);
}

const nearest = (points, x) => points.reduce((best, each) => (Math.abs(each[0] - x) < Math.abs(best[0] - x) ? each : best));

function charts(root) {
  for (const plot of root.querySelectorAll(".plot[data-chart]")) {
    const chart = JSON.parse(plot.dataset.chart), svg = plot.querySelector("svg"), xs = chart.xs;
    const tip = el("div", { class: "tip", role: "status", hidden: true });
    const cross = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cross.setAttribute("class", "cross");
    cross.setAttribute("y1", 12); cross.setAttribute("y2", 212);
    cross.setAttribute("visibility", "hidden");
    svg.append(cross);
    plot.append(tip);
    let at = -1;
    const first = xs[0] - chart.half, span = xs[xs.length - 1] + chart.half - first;
    const place = (x) => chart.left + (span ? (x - first) / span : 0.5) * (chart.right - chart.left);
    const numbers = plot.parentElement.querySelector("[data-numbers]");
    numbers.addEventListener("toggle", () => numbers.append(numbersOf(chart)), { once: true });
    const show = (index) => {
      at = Math.max(0, Math.min(xs.length - 1, index));
      const rows = chart.series.map(({ name, tone, run, points }) => {
        const isOff = run !== null && svg.querySelector(`[data-run="${run}"]`).hasAttribute("hidden");
        const p = points.find((each) => each[0] === xs[at]) ?? (run === null ? null : nearest(points, xs[at]));
        if (!p || isOff) return null;
        const range = p[2] === null ? "" : `  (${figureText(p[2])} to ${figureText(p[3])})`;
        return el("div", {}, el("span", { class: tone }, el("i", {})), visible(name), " ", el("b", {}, figureText(p[1])), range, p[0] === xs[at] ? "" : ` at ${figureText(p[0])}`);
      });
      tip.replaceChildren(el("div", {}, chart.x + " " + figureText(xs[at])), ...rows.filter(Boolean));
      tip.hidden = false;
      const share = place(xs[at]) / 400;
      tip.style.left = share < 0.5 ? share * 100 + 2 + "%" : "auto";
      tip.style.right = share < 0.5 ? "auto" : (1 - share) * 100 + 2 + "%";
      cross.setAttribute("x1", place(xs[at])); cross.setAttribute("x2", place(xs[at]));
      cross.setAttribute("visibility", "visible");
    };
    const hide = () => { tip.hidden = true; at = -1; cross.setAttribute("visibility", "hidden"); };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * 400;
      let best = 0;
      xs.forEach((each, i) => { if (Math.abs(place(each) - x) < Math.abs(place(xs[best]) - x)) best = i; });
      if (best !== at) show(best);
    });
    svg.addEventListener("pointerleave", () => { if (document.activeElement !== plot) hide(); });
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: at + 1, ArrowLeft: at < 0 ? xs.length - 1 : at - 1, Home: 0, End: xs.length - 1 };
      if (event.key === "Escape") hide();
      else if (event.key in moves) { show(moves[event.key]); event.preventDefault(); }
    });
  }
}

/* A table that scrolls sideways; the first cell of a row is its heading. */
function tableOf(label, heads, rows, cls = "") {
  const head = el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, visible(name)))));
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, el("table", { class: cls }, head, el("tbody", {}, rows)));
}

function numbersOf({ x, xs, series }) {
  const told = (p) => [figureText(p[1]), p[2] === null ? "" : el("span", { class: "quiet" }, ` (${figureText(p[2])} to ${figureText(p[3])})`)];
  const at = series.map(({ points }) => new Map(points.map((p) => [p[0], p])));
  return tableOf("Numbers", [x, ...series.map(({ name }) => name)], xs.map((each) => el("tr", {}, el("th", { scope: "row" }, figureText(each)),
    at.map((points) => el("td", {}, points.has(each) ? told(points.get(each)) : "–")))));
}

function sortables(root) {
  for (const table of root.querySelectorAll("table.sortable")) {
    table.querySelectorAll("thead th").forEach((heading, column) => {
      const button = el("button", { type: "button" }, heading.textContent);
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = heading.getAttribute("aria-sort") !== "ascending";
        table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
        const rows = [...table.tBodies[0].rows].sort((a, b) => {
          const [x, y] = [value(a), value(b)], numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
          return (up ? 1 : -1) * (numbers ? x - y : x.localeCompare(y));
        });
        table.tBodies[0].append(...rows);
      });
    });
  }
}
