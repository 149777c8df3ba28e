// Fetches the page again and puts its marked parts in place of ours: the server stays the only
// renderer. Calls within a second become one; a failed fetch is tried again by the next hint.
const SHORTEST_GAP_MS = 700;
let last = 0;
let timer = 0;
let running = false;
let again = false;

// What the server last said of each part; ours may differ, for charts are drawn into it.
const said = new WeakMap();
for (const part of document.querySelectorAll("[data-swap]")) said.set(part, part.innerHTML);

export function refreshSoon() {
  if (running) { again = true; return; }
  if (timer) return;
  timer = setTimeout(refresh, Math.max(60, last + SHORTEST_GAP_MS - Date.now()));
}

async function refresh() {
  timer = 0;
  running = true;
  try {
    const response = await fetch(location.href, { headers: { "X-Refresh": "1" } });
    if (response.ok) swap(new DOMParser().parseFromString(await response.text(), "text/html"));
    else again = response.status >= 500;
  } catch {
    again = true;
  }
  last = Date.now();
  running = false;
  if (again) { again = false; refreshSoon(); }
}

function swap(fresh) {
  for (const part of document.querySelectorAll("[data-swap]")) {
    const other = fresh.getElementById(part.id);
    if (!other || other.innerHTML === said.get(part)) continue;
    if (part.matches("[data-steady]:hover, [data-steady]:focus-within")) continue; // rows stay put
    said.set(part, other.innerHTML);
    replace(part, other);
  }
  document.title = fresh.title;
  dispatchEvent(new CustomEvent("swapped"));
}

function replace(part, other) {
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const scrolls = [...part.querySelectorAll("[data-scroll]")].map((box) => [box.id, box.scrollTop]);
  const sideways = [...part.querySelectorAll(".wide-table")].map((box) => box.scrollLeft);
  const open = [...part.querySelectorAll("details[open][id]")].map((details) => details.id);
  part.className = other.className;
  part.innerHTML = other.innerHTML;
  for (const [id, top] of scrolls) document.getElementById(id)?.scrollTo(0, top);
  part.querySelectorAll(".wide-table").forEach((box, place) => { box.scrollLeft = sideways[place] ?? 0; });
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) find(part, focused)?.focus({ preventScroll: true });
}

function find(part, focused) {
  if (focused.id) return document.getElementById(focused.id);
  const href = focused.getAttribute("href");
  return href ? part.querySelector(`a[href="${CSS.escape(href)}"]`) : null;
}
