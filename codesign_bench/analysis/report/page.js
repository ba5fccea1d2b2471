// What all parts of the page share: the data, making elements (text never becomes markup), the theme, tables, videos.

const DATA = JSON.parse(document.getElementById("data").textContent);
const METHODS = new Map(DATA.methods.map((method, i) => [method.name, { ...method, css: `m${i}` }]));
const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (functions) and children; strings become text nodes. */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null));
  return node;
}

function swatch(method) {
  return shape("svg", { class: `line ${METHODS.get(method).css}`, viewBox: "0 0 34 10", "aria-hidden": "true" },
    shape("path", { d: "M1 5H33", "stroke-dasharray": METHODS.get(method).dashes }));
}

function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** 12345 as 12.3 k, and returns with as many digits as their size needs. */
function short(value) {
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) if (size >= unit) return trimmed(value / unit, 3) + name;
  return trimmed(value, 3);
}

function trimmed(value, digits) {
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

function plain(value) {
  const size = Math.abs(value);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 0 : size >= 1 ? 1 : 3 }).replace("-", "−");
}

/** A labelled choice of one among a few, as radio buttons. */
function choice(legend, name, options, selected, changed) {
  const inputs = options.map(([value, text]) => element("label", {},
    element("input", { type: "radio", name, value, checked: value === selected, change: () => changed(value) }), text));
  return element("fieldset", {}, element("legend", {}, legend), ...inputs);
}

// ---- which methods are shown, everywhere on the page

const shownMethods = new Set(METHODS.keys());
const onMethods = [];

function methodToggles() {
  const boxes = [...METHODS.keys()].map((name) => {
    const box = element("input", { type: "checkbox", value: name, checked: true, change: () => {
      box.checked ? shownMethods.add(name) : shownMethods.delete(name);
      onMethods.forEach((act) => act());
    } });
    return element("label", { class: "method" }, box, swatch(name), METHODS.get(name).label);
  });
  return element("fieldset", { class: "methods" }, element("legend", {}, "Methods"), ...boxes);
}

// ---- theme

function setUpTheme() {
  const button = document.getElementById("theme"), root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
    document.dispatchEvent(new Event("themechange"));
  };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  system.addEventListener("change", label);
  label();
}

// ---- tables

function setUpSorting() {
  for (const button of document.querySelectorAll("button.sort")) button.addEventListener("click", () => sortBy(button.parentElement));
}

function sortBy(header) {
  const ascending = header.getAttribute("aria-sort") === "descending";
  const place = [...header.parentElement.children].indexOf(header);
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const body = header.closest("table").tBodies[0];
  const key = (row) => sortKey(row.children[place].textContent.trim());
  const compared = (a, b) => typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b;
  const rows = [...body.rows].sort((a, b) => (ascending ? 1 : -1) * compared(key(a), key(b)));
  body.append(...rows);
}

/** The number that a text begins with, "≤ 12.3 k (2 of 3)" as 12300; what never came is beyond all numbers, a dash below them. */
function sortKey(text) {
  if (text === "−") return -Infinity;
  if (/^(never|>)/.test(text)) return Infinity;
  const found = text.match(/^(?:≤ )?(−?[\d,]+(?:\.\d+)?)( [kMG](?= |$)| |$)/);
  if (!found) return text;
  return Number(found[1].replace("−", "-").replaceAll(",", "")) * ({ " k": 1e3, " M": 1e6, " G": 1e9 }[found[2]] ?? 1);
}

// ---- copying and videos

function setUpCopying() {
  if (!navigator.clipboard) return;
  for (const code of document.querySelectorAll("code")) {
    const button = element("button", { type: "button", class: "copy", click: async () => {
      await navigator.clipboard.writeText(code.textContent);
      announce("copied");
      button.textContent = "copied";
    } }, "copy");
    code.after(button);
  }
}

/** Videos are decoded when they are asked for. */
function setUpVideos() {
  const list = document.getElementById("videos-list");
  for (const video of DATA.videos) {
    const box = element("details", { toggle: () => {
      if (!box.open || box.querySelector("video")) return;
      const bytes = Uint8Array.from(atob(video.data), (letter) => letter.charCodeAt(0));
      const url = URL.createObjectURL(new Blob([bytes], { type: "video/mp4" }));
      box.append(element("video", { src: url, controls: true, loop: true, "aria-label": `Video ${video.name}` }));
    } }, element("summary", {}, video.name));
    list.append(box);
  }
}
