// Ctrl+K or ⌘K: jump to a page of this site, or search runs for what was typed.
const dialog = document.getElementById("jump");
const field = dialog.querySelector("input");
const list = dialog.querySelector("ul");

// The links of this very page: navigation, footer, and the trail that leads up from here.
function places() {
  const links = [...document.querySelectorAll(".nav a, .crumb a, .foot a")];
  const named = links.map((link) => [link.getAttribute("href"), link.textContent.trim()]);
  return [...new Map(named)].map(([href, name]) => ({ name, href })); // a trail repeats the navigation
}

function matching() {
  const words = field.value.trim().toLowerCase();
  const found = places().filter(({ name }) => name.toLowerCase().includes(words));
  if (words) found.push({ name: `Search runs for "${field.value.trim()}"`, href: `/runs/?q=${encodeURIComponent(field.value.trim())}` });
  return found;
}

function show() {
  list.replaceChildren(...matching().map(({ name, href }) => {
    const link = Object.assign(document.createElement("a"), { href, textContent: name });
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
}

function move(step) {
  const stops = [field, ...list.querySelectorAll("a")];
  const here = Math.max(0, stops.indexOf(document.activeElement));
  stops[(here + step + stops.length) % stops.length].focus();
}

export function jump() {
  if (dialog.open) { dialog.close(); return; }
  if (document.querySelector("dialog[open]")) return;
  field.value = "";
  show();
  dialog.showModal();
}

export function setUpJump() {
  field.addEventListener("input", show);
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); move(step); }
    if (event.key === "Enter" && event.target === field) {
      event.preventDefault();
      list.querySelector("a")?.click();
    }
  });
}
