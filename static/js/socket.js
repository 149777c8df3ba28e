// One socket a page. It reconnects by itself, says so, and asks for what it missed.
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
const FINAL = new Set([1000, 4403, 4404]); // done, not allowed, no such thing: no use in trying again

function say(state, words) {
  const label = document.getElementById("live");
  if (!label) return;
  label.hidden = false;
  label.dataset.state = state;
  label.textContent = words;
}

export function connect(path, { onMessage, onOpen = () => {}, query = () => "" }) {
  let wait = FIRST_WAIT_MS;
  let leaving = false;
  let socket;
  let timer;

  function open() {
    clearTimeout(timer);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}${path}${query()}`);
    socket.onopen = () => { wait = FIRST_WAIT_MS; say("on", "live"); onOpen(); };
    socket.onmessage = (event) => onMessage(JSON.parse(event.data));
    socket.onclose = (event) => {
      if (leaving) return;
      if (FINAL.has(event.code)) { say("off", event.code === 1000 ? "complete" : "not live"); return; }
      say("lost", "connection lost, retrying");
      timer = setTimeout(open, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    };
  }

  addEventListener("pagehide", () => { leaving = true; clearTimeout(timer); socket.close(); });
  // Back out of the browser's page cache: the socket is gone and must come again.
  addEventListener("pageshow", (event) => { if (event.persisted) { leaving = false; open(); } });
  addEventListener("online", () => { if (socket.readyState === WebSocket.CLOSED && !leaving) open(); });
  open();
}
