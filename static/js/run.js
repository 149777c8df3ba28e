// A run going live: its events say that something happened, and the page is fetched anew. Strip,
// banner and tables come from the same answer, so that none of them is ahead of another.
import { connect } from "./socket.js";
import { refreshSoon } from "./refresh.js";

const page = document.getElementById("run");
let seq = Number(page.dataset.seq);

const cells = () => [...document.querySelectorAll("#strip [data-gate]")];
const states = () => cells().map((cell) => cell.className.replace(" changed", ""));
let shown = states();

// A gate that changed lights up; the others were only drawn again.
function mark() {
  const now = states();
  cells().forEach((cell, place) => cell.classList.toggle("changed", now[place] !== shown[place]));
  shown = now;
}

function onMessage(message) {
  if (message.type !== "events") return;
  const fresh = message.events.filter((event) => event.seq > seq); // some come twice after a reconnect
  if (!fresh.length) return;
  seq = fresh.at(-1).seq;
  page.dataset.seq = seq;
  refreshSoon();
}

if (page.dataset.live === "yes") {
  addEventListener("swapped", mark);
  connect(page.dataset.socket, { onMessage, query: () => `?after=${seq}` });
}
