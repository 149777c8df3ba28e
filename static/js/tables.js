// A table wider than its place scrolls within it. The keyboard reaches such a table, and its edge
// fades where more of it lies.
const boxes = () => document.querySelectorAll(".wide-table");
const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target.closest(".wide-table"))));

function mark(box) {
  const wide = box.scrollWidth > box.clientWidth + 1;
  if (wide) {
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `${title(box)}, scrolls sideways`);
  } else {
    for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }
  box.toggleAttribute("data-more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
}

function title(box) {
  const name = box.querySelector("caption") ?? box.closest("section")?.querySelector("h2");
  return name?.textContent.trim() || "Table";
}

function watch() {
  sizes.disconnect();
  for (const box of boxes()) for (const part of [box, box.firstElementChild]) if (part) sizes.observe(part);
}

export function setUpTables() {
  watch();
  addEventListener("swapped", watch);
  document.addEventListener("scroll", ({ target }) => {
    if (target instanceof Element && target.matches(".wide-table")) mark(target);
  }, { capture: true, passive: true });
}
