// The API's page in the colours of the site: Swagger turns dark by a class, not by colour-scheme.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

const show = () => {
  const theme = root.dataset.theme ?? (system.matches ? "dark" : "light");
  root.classList.toggle("dark-mode", theme === "dark");
};

show();
system.addEventListener("change", show);
