// "5 min ago" stays true while a page stays open. The words are those of the server's `ago`.
const STEPS = [[60, 1, "s"], [3600, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "d"]];

function ago(seconds) {
  if (seconds < 2) return "just now";
  const [, unit, name] = STEPS.find(([limit]) => seconds < limit);
  return `${Math.floor(seconds / unit)} ${name} ago`;
}

function tick() {
  if (document.hidden) return;
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const words = ago(Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000));
    if (time.textContent !== words) time.textContent = words;
  }
}

export function setUpAges() {
  setInterval(tick, 10_000);
}
