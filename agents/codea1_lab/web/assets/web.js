"use strict";
/* The shell: its menu, the tab that the address names, and requests. */
const parts = [...document.querySelectorAll("main section")];

function showPart() {
  const name = location.hash.slice(1).split("/")[0];
  const shown = parts.find((part) => part.id === name) ?? parts[0];
  for (const part of parts) part.hidden = part !== shown;
  for (const link of document.querySelectorAll("#sections a")) link.toggleAttribute("aria-current", link.hash.slice(1) === shown.id);
}

/* Return the JSON of a route; `body` makes it a POST. Errors are the server's sentences. */
async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try { response = await fetch(path, options); } catch { throw new Error("The server does not answer: it may have ended."); }
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(found.detail || `The server answers with status ${response.status}.`);
  return found;
}

themes();
menus();
showPart();
addEventListener("hashchange", showPart);
