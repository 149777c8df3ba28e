// Pages that follow everything: a hint makes them fetch their marked parts again.
import { connect } from "./socket.js";
import { refreshSoon } from "./refresh.js";

const page = document.querySelector("[data-socket]");
let opened = false;

connect(page.dataset.socket, {
  onMessage: refreshSoon,
  // What happened while the line was down sent no hint that reached us.
  onOpen: () => { if (opened) refreshSoon(); opened = true; },
});
