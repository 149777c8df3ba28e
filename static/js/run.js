// A run going live: gates light up as their events arrive; the rest of the page is fetched anew.
import { connect } from "./socket.js";
import { refreshSoon } from "./refresh.js";

const page = document.getElementById("run");
let seq = Number(page.dataset.seq);
let attempt = Number(page.dataset.attempt);

// Class, glyph and word of each state: the server's own, so that no word is spelled twice.
const LOOKS = JSON.parse(document.getElementById("looks").textContent);

function fact({ status, passed = 0, failed = 0, reason, summary }) {
  const cases = (n) => `${n} case${n === 1 ? "" : "s"}`;
  if (status === "FAIL" && passed + failed) return `${failed} of ${cases(passed + failed)}`;
  if (status === "PASS") return cases(passed);
  return reason || summary || "";
}

function show(gate, look, words = "", why = "") {
  const cell = document.querySelector(`#strip [data-gate="${CSS.escape(gate)}"]`);
  if (!cell) return;
  const [css, glyph, word] = LOOKS[look] ?? LOOKS.ERROR;
  for (const [other] of Object.values(LOOKS)) cell.classList.remove(other);
  cell.classList.remove("changed");
  void cell.offsetWidth; // restarts the fade where the same cell changes twice
  cell.classList.add(css, "changed");
  cell.querySelector(".glyph").textContent = glyph;
  cell.querySelector(".fact").textContent = words;
  if (why) cell.nextElementSibling.textContent = why;
  cell.setAttribute("aria-label", `Gate ${gate.slice(1)}, ${cell.dataset.name}, ${word}${why ? `: ${why}` : ""}`);
}

const firstLine = (text) => text.split("\n", 1)[0].slice(0, 300);

function clear() {
  for (const cell of document.querySelectorAll("#strip [data-gate]")) show(cell.dataset.gate, "wait");
}

const HANDLERS = {
  // What a lost or returned attempt found is history; the next one starts afresh.
  attempt_lost: clear,
  requeued: clear,
  gate_started: ({ gate }) => show(gate, "run"),
  gate: (result) => show(result.gate, result.status, fact(result), firstLine(result.reason || result.summary || "")),
};

function apply(event) {
  if (event.seq <= seq) return; // sent twice around a reconnect
  seq = event.seq;
  if (event.attempt > attempt) { attempt = event.attempt; clear(); }
  if (event.attempt === attempt) HANDLERS[event.kind]?.(event.payload);
}

function onMessage(message) {
  if (message.type === "events") {
    message.events.forEach(apply);
    page.dataset.seq = seq;
    refreshSoon();
  }
}

if (page.dataset.live === "yes") {
  connect(page.dataset.socket, { onMessage, query: () => `?after=${seq}` });
}
