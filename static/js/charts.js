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

// The tools show on hover, in the room that the figure's top margin keeps for them.
const CONFIG = { displaylogo: false, responsive: true, displayModeBar: "hover", modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]] };

function draw(chart) {
  const source = document.getElementById(chart.dataset.figure);
  const figure = themed(JSON.parse(source.textContent));
  chart.removeAttribute("role"); // the drawn figure has its own text
  Plotly.react(chart, figure.data, figure.layout, CONFIG).then(() => {
    if (!chart.dataset.drawn) chart.on("plotly_click", follow);
    chart.dataset.drawn = "yes";
  });
}

// A mark that stands for a list of runs leads there.
function follow({ points: [point] }) {
  const link = point.customdata;
  if (typeof link === "string" && /^\/(?!\/)/.test(link)) location.assign(link);
}

let loaded;

function plotly() {
  // Four megabytes: fetched when a page first has a chart, which a live run may not have at first.
  loaded ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = document.querySelector('meta[name="plotly"]').content;
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });
  return loaded;
}

async function drawAll(fresh) {
  const charts = [...document.querySelectorAll(fresh === true ? "[data-figure]:not([data-drawn])" : "[data-figure]")];
  if (!charts.length) return;
  await plotly();
  charts.forEach(draw);
}

addEventListener("theme", drawAll);
addEventListener("swapped", () => drawAll(true));
drawAll();
