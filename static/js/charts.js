// Draws the page's figures. Figures name their colours by token; the theme's values go in here.
const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);

function value(token) {
  probe.style.color = token;
  return getComputedStyle(probe).color;
}

function themed(node) {
  if (typeof node === "string") return node.startsWith("var(--") ? value(node) : node;
  if (Array.isArray(node)) return node.map(themed);
  if (node && typeof node === "object") return Object.fromEntries(Object.entries(node).map(([k, v]) => [k, themed(v)]));
  return node;
}

const CONFIG = { displaylogo: false, responsive: true, displayModeBar: "hover", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

function draw(chart) {
  const source = document.getElementById(chart.dataset.figure);
  const figure = themed(JSON.parse(source.textContent));
  chart.removeAttribute("role"); // the drawn figure has its own text
  Plotly.react(chart, figure.data, figure.layout, CONFIG).then(() => { chart.dataset.drawn = "yes"; });
}

function drawAll() {
  for (const chart of document.querySelectorAll("[data-figure]")) draw(chart);
}

addEventListener("theme", drawAll);
addEventListener("swapped", () => {
  for (const chart of document.querySelectorAll("[data-figure]:not([data-drawn])")) draw(chart);
});
drawAll();
