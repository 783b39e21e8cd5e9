"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// Tables: a touch on a heading sorts by that column, a second one the other way round.
const NUMBER = /^[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?(?![\w.])/; // page.py has the same
const keyOf = (row, column) => {
  const cell = row.cells[column];
  if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
  const text = cell.textContent.trim();
  const number = column > 0 && text.match(NUMBER);
  return number ? Number(number[0].replaceAll(",", "")) : text;
};

const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a.localeCompare(b, "en", { numeric: true });
};

const sortBy = (table, column) => {
  const headings = [...table.tHead.rows[0].cells];
  const up = headings[column].getAttribute("aria-sort") !== "ascending";
  for (const other of headings) other.removeAttribute("aria-sort");
  headings[column].setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, column), row]);
  const empty = ([key]) => typeof key === "string" && key.startsWith("–"); // stays at the end
  rows.sort((a, b) => empty(a) - empty(b) || (up ? 1 : -1) * compare(a[0], b[0]));
  table.tBodies[0].append(...rows.map(([, row]) => row));
};

// Columns: boxes below a table show and hide them; the first one stays.
const showColumn = (table, column, shown) => {
  for (const row of table.rows) row.cells[column].hidden = !shown;
};

const columnChoice = (table) => {
  const choice = make("details", { className: "choice" }, make("summary", { textContent: "Columns" }));
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (column === 0) return;
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => showColumn(table, column, box.checked));
    choice.append(make("label", {}, box, ` ${heading.textContent}`));
  });
  return choice;
};

for (const table of all(".table table")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    heading.firstElementChild.addEventListener("click", () => sortBy(table, column));
  });
  if (table.tHead.rows[0].cells.length > 3) table.closest(".frame").after(columnChoice(table));
}

// Frames: a shadow at an edge says that there is more beyond it.
const shade = (box) => {
  const { classList } = box.parentElement;
  classList.toggle("left", box.scrollLeft > 2);
  classList.toggle("right", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  classList.toggle("below", box.scrollTop + box.clientHeight < box.scrollHeight - 2);
};
const resized = new ResizeObserver((entries) => entries.forEach((entry) => shade(entry.target)));
for (const box of all(".frame > .scroll")) {
  resized.observe(box);
  box.addEventListener("scroll", () => shade(box), { passive: true });
  box.addEventListener("load", () => shade(box), { capture: true });
}

// Sheets: the seeds of a row, or the numbers behind a picture, with a file to save.
const sheet = document.getElementById("sheet");
const csvOf = (lines) => {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return lines.map((line) => `${line.map(quoted).join(",")}\n`).join("");
};

const showSheet = ({ header, rows, note }, title, name) => {
  const line = ([first, ...others], tag) => make(
    "tr", {}, make("th", { textContent: first }), ...others.map((text) => make(tag, { textContent: text })),
  );
  const head = make("thead", {}, line(header, "th"));
  const body = make("tbody", {}, ...rows.map((cells) => line(cells, "td")));
  sheet.querySelector("strong").textContent = title;
  sheet.querySelector("div").replaceChildren(make("table", {}, head, body), make("p", { textContent: note ?? "" }));
  const link = sheet.querySelector("a");
  URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([csvOf([header, ...rows])], { type: "text/csv" }));
  link.download = `${name}.csv`;
  sheet.showModal();
};

const read = (script) => JSON.parse(script.textContent);
let origins = null;
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.origin");
  if (!button) return;
  origins ??= read(document.getElementById("origins"));
  const name = button.textContent;
  showSheet(origins[button.dataset.sheet], name, name.replace(/[^\w+.-]+/g, "-"));
});
for (const button of all("button.origin")) button.title = "Show the seeds and where they come from";
for (const button of all("button.numbers")) {
  const figure = button.closest("figure");
  const title = figure.querySelector("h3").textContent;
  button.setAttribute("aria-label", `Numbers: ${title}`);
  button.addEventListener("click", () => showSheet(read(button.nextElementSibling), title, figure.id));
}

// Figures: a touch enlarges, arrows step through those that are in view or can be opened.
const viewer = document.getElementById("viewer");
const pictures = all(".enlarge");
let shown = 0;

const show = (index) => {
  shown = (index + pictures.length) % pictures.length;
  const figure = pictures[shown].closest("figure");
  const image = figure.querySelector("img");
  const source = image.currentSrc || image.src;
  const large = viewer.querySelector(".canvas img");
  large.src = source;
  large.alt = image.alt;
  viewer.querySelector("strong").textContent = figure.querySelector("h3").textContent;
  viewer.querySelector("p").textContent = figure.querySelector("figcaption").textContent;
  const link = viewer.querySelector("a");
  link.href = source;
  link.download = `${image.dataset.name}.${source.match(/^data:image\/(\w+)/)[1]}`;
  if (!viewer.open) viewer.showModal();
};

pictures.forEach((button, index) => button.addEventListener("click", () => show(index)));
for (const button of all("[data-step]", viewer)) {
  button.addEventListener("click", () => show(shown + Number(button.dataset.step)));
}
for (const dialog of [viewer, sheet]) {
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}
viewer.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step) show(shown + step);
});

// Folds: opened by a touch, by an address, by the search and for printing; kept while the tab lives.
const folds = all("details.fold");
const unfold = document.getElementById("unfold");
const store = {
  key: `open ${location.pathname}`,
  read() { try { return JSON.parse(sessionStorage.getItem(this.key)) ?? []; } catch { return []; } },
  write(ids) { try { sessionStorage.setItem(this.key, JSON.stringify(ids)); } catch { /* not allowed */ } },
};
const idOf = (fold) => fold.closest("section").id;
let query = ""; // while it is not empty, the search opens and closes the folds

const folded = () => {
  if (unfold) unfold.textContent = folds.every((fold) => fold.open) ? "Fold all" : "Open all";
};
const remember = () => {
  folded();
  if (!query) store.write(folds.filter((fold) => fold.open).map(idOf));
};
const restore = () => {
  const open = store.read();
  for (const fold of folds) fold.open = open.includes(idOf(fold));
  folded();
};
restore();
for (const fold of folds) fold.addEventListener("toggle", remember);
unfold?.addEventListener("click", () => {
  const open = !folds.every((fold) => fold.open);
  for (const fold of folds) fold.open = open;
});

const goTo = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (const one of [target.querySelector(":scope > details"), target.closest("details.fold")]) {
    if (one) one.open = true;
  }
  target.scrollIntoView();
};
window.addEventListener("hashchange", goTo);
if (location.hash) goTo();

let before = null;
window.addEventListener("beforeprint", () => {
  before = folds.map((fold) => fold.open);
  for (const fold of folds) fold.open = true;
  for (const image of all("img")) image.loading = "eager";
});
window.addEventListener("afterprint", () => {
  folds.forEach((fold, index) => { fold.open = before?.[index] ?? fold.open; });
});

// Search: a row or picture stays if every word is in it, or in the titles above it.
const search = document.getElementById("search");
const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
let index = null;

const textOf = (element) => (element?.textContent ?? "").toLowerCase();
const makeIndex = () => all("main > section").map((section) => ({
  section,
  heading: textOf(section.querySelector("h2")) + " " + textOf(section.querySelector(".lead")),
  tables: all(".table", section).map((block) => ({
    block,
    title: textOf(block.querySelector("caption")),
    rows: [...block.querySelector("tbody").rows].map((row) => ({ row, text: [...row.cells].map(textOf).join(" ") })),
  })),
  figures: all("figure", section).map((figure) => ({
    figure, text: ["h3", "figcaption", "script"].map((part) => textOf(figure.querySelector(part))).join(" "),
  })),
}));

const filterSection = ({ section, heading, tables, figures }, words) => {
  const has = (...texts) => words.every((word) => texts.some((text) => text.includes(word)));
  const whole = has(heading);
  const found = { rows: 0, pictures: 0 };
  for (const { block, title, rows } of tables) {
    let left = 0;
    for (const { row, text } of rows) {
      row.hidden = !(whole || has(heading, title, text));
      left += !row.hidden;
    }
    block.hidden = !left;
    const fold = block.closest("details.folded");
    if (fold) { fold.hidden = !left; fold.open = words.length > 0 && !whole && left > 0; }
    found.rows += left;
  }
  for (const { figure, text } of figures) {
    figure.hidden = !(whole || has(heading, text));
    found.pictures += !figure.hidden;
  }
  section.hidden = !(whole || found.rows || found.pictures);
  return found;
};

const runSearch = () => {
  index ??= makeIndex();
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  query = words.join(" ");
  document.body.classList.toggle("searching", words.length > 0);
  const results = index.map((entry) => filterSection(entry, words));
  const sum = (name) => results.reduce((total, one) => total + one[name], 0);
  const sections = index.filter(({ section }) => !section.hidden).length;
  document.getElementById("found").textContent = words.length
    ? `${counted(sum("rows"), "row")} and ${counted(sum("pictures"), "picture")} in ${counted(sections, "section")}`
    : "";
  if (!words.length) return restore();
  for (const fold of folds) fold.open = !fold.closest("section").hidden;
  folded();
};

let waiting = 0;
search?.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(runSearch, 120);
});
search?.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { search.value = ""; runSearch(); }
});

// Contents: folded on small screens; the part in view is marked.
const contents = document.querySelector("nav details");
if (contents) {
  const large = window.matchMedia("(min-width: 72rem)").matches;
  contents.open = large;
  const links = new Map(all("a", contents).map((link) => [link.getAttribute("href").slice(1), link]));
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && !large) contents.open = false;
    if (event.target.closest("a") && event.target.closest("a").hash === location.hash) goTo();
  });
  const mark = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id || "top")?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  for (const part of all("main > header, main > section")) mark.observe(part);
}
