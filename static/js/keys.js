// Keyboard: / search, j k rows, g + letter pages, ? help, Ctrl+K or ⌘K jump.
import { jump, setUpJump } from "./jump.js";

const PAGES = { o: "/", r: "/runs/", s: "/suites/", v: "/verifier/", f: "/fleet/" };
let afterG = 0;

const typing = (target) => target.closest?.("input, select, textarea, [contenteditable]");
const rows = () => [...document.querySelectorAll("tbody a[data-row]")];

function move(step) {
  const links = rows();
  if (!links.length) return;
  const here = links.indexOf(document.activeElement);
  const next = here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step;
  const link = links[Math.max(0, Math.min(links.length - 1, next))];
  link.focus();
  link.closest("tr").scrollIntoView({ block: "nearest" });
}

function help() {
  const dialog = document.getElementById("help");
  if (!dialog.open) dialog.showModal();
}

function search() {
  const field = document.querySelector("[data-search]") ?? document.getElementById("find");
  field.focus();
  field.select();
}

const ACTIONS = { "/": search, "?": help, j: () => move(1), k: () => move(-1) };

export function setUpKeys() {
  const open = document.getElementById("help-open");
  open.hidden = false;
  open.addEventListener("click", help);
  setUpJump();
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      jump();
      return;
    }
    if (event.key === "Escape" && typing(event.target)) event.target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "g") { afterG = Date.now(); return; }
    const page = Date.now() - afterG < 1200 ? PAGES[event.key] : undefined;
    afterG = 0;
    if (page) { location.assign(page); return; }
    const action = ACTIONS[event.key];
    if (action) { event.preventDefault(); action(); }
  });
}
