// Light or dark follows the system until the reader says otherwise; a cookie lets the server
// render the choice into the first byte, so that no page flashes.
const NEXT = { system: "light", light: "dark", dark: "system" };
const root = document.documentElement;

const chosen = () => root.dataset.theme ?? "system";

function choose(theme) {
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  const age = theme === "system" ? 0 : 31536000;
  document.cookie = `theme=${theme}; path=/; max-age=${age}; samesite=lax`;
  dispatchEvent(new CustomEvent("theme"));
}

export function setUpTheme() {
  const button = document.getElementById("theme");
  if (!button) return;
  const show = () => {
    button.textContent = `Theme: ${chosen()}`;
    button.setAttribute("aria-label", `Theme: ${chosen()}. Switch to ${NEXT[chosen()]}`);
  };
  button.hidden = false;
  button.addEventListener("click", () => { choose(NEXT[chosen()]); show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new CustomEvent("theme")));
  show();
}
