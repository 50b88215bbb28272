"use strict";
// Tables that sort, filter and open; charts that draw when they come into view. Text from records
// only ever becomes text: nodes are made with textContent, never from markup.
const data = JSON.parse(document.getElementById("data").textContent);
const { all, byId } = {
  all: (selector, root = document) => [...root.querySelectorAll(selector)],
  byId: (id) => document.getElementById(id),
};

function node(tag, content = "", attributes = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...(Array.isArray(content) ? content : [String(content)]));
  return made;
}

// --- sorting and filtering ---

// "1.3K (1201, 1262]" -> 1300; "> 3" -> 3; "-": not learned, after every number; "": last.
function sortKey(text) {
  const found = /^[<>]?\s*(-?\d[\d.]*(?:e[+-]?\d+)?)([KM]?)(?![\w])/.exec(text);
  if (found) return [0, found[1] * { K: 1e3, M: 1e6, "": 1 }[found[2]], text];
  if (!text) return [3, 0, ""];
  return text.startsWith("-") || text === "?" ? [1, 0, text] : [2, 0, text];
}

function compare(one, other) {
  if (one[0] !== other[0]) return one[0] - other[0];
  if (one[1] !== other[1]) return one[1] - other[1];
  return one[2].localeCompare(other[2], undefined, { numeric: true });
}

function sortBy(table, head) {
  const column = [...head.parentNode.children].indexOf(head);
  const descending = head.getAttribute("aria-sort") === "ascending";
  all("th", head.parentNode).forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  closeAll(table);
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [sortKey(row.cells[column].textContent.trim()), row]);
  rows.sort((one, other) => compare(one[0], other[0]) * (descending ? -1 : 1));
  body.append(...rows.map(([, row]) => row));
}

function filter(table, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  closeAll(table);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    row.words ??= row.textContent.toLowerCase();
    row.hidden = !wanted.every((word) => row.words.includes(word));
    shown += !row.hidden;
  }
  count(table, shown);
}

function count(table, shown) {
  const output = table.closest("section").querySelector("output");
  output.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
}

for (const table of all("table.sheet")) {
  for (const head of all("thead th", table)) {
    head.classList.add("sorts");
    head.tabIndex = 0;
    head.onclick = () => sortBy(table, head);
    head.onkeydown = (event) => event.key === "Enter" && sortBy(table, head);
  }
}
for (const input of all("input[type=search]")) {
  const table = byId(input.dataset.table);
  input.oninput = () => filter(table, input.value);
  count(table, table.tBodies[0].rows.length);
}

// --- rows that open ---

function closeAll(table) {
  all("tr.detail", table).forEach((row) => row.remove());
  all("tr.shown", table).forEach((row) => row.classList.remove("shown"));
}

function open(row) {
  if (row.classList.contains("shown")) return;
  const [kind, index] = row.dataset.open.split("-");
  const content = kind === "cell" ? cellDetail(data.cells[index]) : claimDetail(data.claims[index]);
  const cell = node("td", content, { colspan: row.cells.length });
  row.classList.add("shown");
  row.after(node("tr", [cell], { class: "detail" }));
}

function toggle(row) {
  if (!row.classList.contains("shown")) return open(row);
  row.classList.remove("shown");
  row.nextElementSibling.remove();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-cell]");
  if (link) {
    event.preventDefault();
    return showCell(link.dataset.cell);
  }
  const row = event.target.closest("tr[data-open]");
  if (row && !getSelection().toString()) toggle(row);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("tr[data-open]")) toggle(event.target);
});

function table(header, rows) {
  const head = node("thead", [node("tr", header.map((text) => node("th", text)))]);
  const body = rows.map((row) => node("tr", row.map((value) => node("td", value))));
  return node("table", [head, node("tbody", body)]);
}

function cellDetail(cell) {
  const facts = cell.facts.flatMap(([name, value]) => [node("dt", name), node("dd", value)]);
  const losses = ["lowest loss", "median", "highest"]; // each run's best validation loss
  const probes = table(["N", "verdict", "solved", "runs", "fewest steps", ...losses], cell.probes);
  return [node("dl", facts), probes];
}

function claimDetail(claim) {
  if (!claim.length) return ["No cells of this study are what the claim is about."];
  const rows = claim.map(([verdict, text, cells]) => {
    const tag = node("span", "", { class: `tag ${verdict}` });
    const links = cells.flatMap((number) => [cellLink(number), " "]);
    return [[tag, verdict], text, links];
  });
  return [table(["verdict", "comparison", "cells"], rows)];
}

function cellLink(number) {
  return node("a", `#${number + 1}`, { href: `#cell-${number}`, "data-cell": number });
}

function showCell(number) {
  const row = byId(`cell-${number}`);
  const input = all("input[data-table=cells]")[0];
  if (row.hidden) {
    input.value = "";
    filter(byId("cells"), "");
  }
  all("tr.found").forEach((other) => other.classList.remove("found"));
  row.classList.add("found");
  open(row);
  history.replaceState(null, "", `#cell-${number}`);
  row.scrollIntoView({ block: "start" }); // below what sticks: see scroll-margin-top
}

const target = /^#cell-(\d+)$/.exec(location.hash);
if (target && byId(`cell-${target[1]}`)) showCell(target[1]);

// --- charts ---

const dark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  const style = getComputedStyle(document.documentElement);
  const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
  const text = { labelColor: soft, titleColor: ink };
  return {
    background: "transparent",
    font: "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif",
    view: { stroke: line },
    axis: { ...text, gridColor: line, domainColor: soft, tickColor: soft },
    legend: text,
    header: { labelColor: ink, titleColor: ink },
    title: { color: ink },
    rule: { color: soft },
  };
}

function draw(place) {
  const spec = data.figures[place.dataset.figure];
  const options = {
    actions: { export: true, source: false, compiled: false, editor: false },
    config: theme(),
    renderer: "svg",
  };
  return vegaEmbed(place, structuredClone(spec), options).catch((error) => {
    place.textContent = `This chart cannot be drawn: ${error.message}`;
    console.error(error);
  });
}

const seen = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      draw(entry.target).then(() => (entry.target.drawn = true));
    }
  },
  { rootMargin: "300px" },
);
for (const place of all(".chart")) seen.observe(place);
dark.addEventListener("change", () => all(".chart").filter((place) => place.drawn).forEach(draw));

for (const select of all("#figures select")) {
  const show = () => {
    for (const figure of all("figure")) {
      const { task } = figure.dataset;
      figure.hidden = task !== "" && task !== select.value;
    }
  };
  select.onchange = show;
  show();
}

// Milliseconds from the start of loading until everything stands where it belongs.
document.body.getBoundingClientRect();
document.documentElement.dataset.ready = Math.round(performance.now());
