// Every page: theme, keys, wide tables, copy buttons, filters that apply themselves.
import { setUpTheme } from "./theme.js";
import { setUpKeys } from "./keys.js";
import { setUpAges } from "./ages.js";
import { setUpTables } from "./tables.js";

setUpTheme();
setUpKeys();
setUpAges();
setUpTables();

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  const copied = await copy(text);
  const before = button.textContent;
  button.textContent = copied ? "Copied" : "Select and copy by hand";
  setTimeout(() => { button.textContent = before; }, 1600);
});

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no permission, or plain HTTP on another host
  }
}

// A chosen filter applies at once; its button stays for keyboards without JavaScript.
for (const form of document.querySelectorAll("form[data-auto]")) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("select, input[type=checkbox]")) form.requestSubmit();
  });
  form.addEventListener("submit", () => {
    for (const field of form.elements) if (field.value === "" && field.name) field.disabled = true;
  });
}
// The browser restores disabled fields on "back"; a filter must stay usable there.
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form[data-auto] [disabled]")) field.disabled = false;
});
