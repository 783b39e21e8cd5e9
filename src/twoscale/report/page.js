"use strict";

// Tables: a touch on a heading sorts by that column, a second one the other way round.
const keyOf = (body, column) => {
  const cell = body.rows[0].cells[column];
  const number = cell.dataset.sort;
  return number === undefined ? cell.textContent.trim() : Number(number);
};

const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a.localeCompare(b, "en", { numeric: true });
};

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const bodies = [...table.tBodies].map((body) => [keyOf(body, column), body]);
      // What has no number stays at the end either way.
      const empty = ([key]) => typeof key === "string" && key.startsWith("–");
      bodies.sort((a, b) => empty(a) - empty(b) || (up ? 1 : -1) * compare(a[0], b[0]));
      table.append(...bodies.map(([, body]) => body));
    });
  });
}

// Rows: a touch on the name shows where the numbers come from.
const origins = document.getElementById("origins");
for (const button of document.querySelectorAll("button.origin")) {
  button.addEventListener("click", () => {
    origins.querySelector("strong").textContent = button.textContent;
    origins.querySelector("div").replaceChildren(
      button.parentElement.querySelector("template").content.cloneNode(true)
    );
    origins.showModal();
  });
}

// Figures: a touch enlarges, arrows step through them.
const viewer = document.getElementById("viewer");
const pictures = [...document.querySelectorAll(".enlarge")];
let shown = 0;

const show = (index) => {
  shown = (index + pictures.length) % pictures.length;
  const figure = pictures[shown].closest("figure");
  const image = figure.querySelector("img");
  const large = viewer.querySelector(".canvas img");
  large.src = image.src;
  large.alt = image.alt;
  viewer.querySelector("strong").textContent = figure.querySelector("h3").textContent;
  viewer.querySelector("p").textContent = figure.querySelector("figcaption").textContent;
  const link = viewer.querySelector("a");
  link.href = image.src;
  link.download = `${image.dataset.name}.${image.src.match(/^data:image\/(\w+)/)[1]}`;
  if (!viewer.open) viewer.showModal();
};

pictures.forEach((button, index) => button.addEventListener("click", () => show(index)));
for (const button of viewer.querySelectorAll("[data-step]")) {
  button.addEventListener("click", () => show(shown + Number(button.dataset.step)));
}
for (const dialog of [viewer, origins]) {
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}
viewer.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step) show(shown + step);
});

// Contents: folded on small screens; the part in view is marked.
const contents = document.querySelector("nav details");
if (contents) {
  contents.open = window.matchMedia("(min-width: 72rem)").matches;
  const links = new Map(
    [...contents.querySelectorAll("a")].map((link) => [link.getAttribute("href").slice(1), link])
  );
  const mark = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id || "top")?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  document.querySelectorAll("main > header, main > section").forEach((part) => mark.observe(part));
}
