// Small charts in SVG. A chart is drawn for the width it has, and again when that changes.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);

function node(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  // Texts become text nodes: nothing that comes from data is ever read as markup.
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
const el = (tag, attributes, ...children) => node(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  node(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
// A long name may break between its parts.
const breakable = (text) => text.split(/(?<=[_./-])|(?<=[a-z])(?=[A-Z])/).flatMap((part, k) => (k ? [el("wbr", {}), part] : [part]));
const byId = (id) => document.getElementById(id);

// -- numbers --------------------------------------------------------------------------------------

const MINUS = "\u2212";
const grouped = (n) => n.toLocaleString("en-US");
function short(v) {
  if (v === null || v === undefined) return "–";
  const size = Math.abs(v);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) return v.toExponential(1).replace("-", MINUS);
  return String(Number(v.toPrecision(4))).replace("-", MINUS);
}
const fixed = (v, digits = 4) => (v === null || v === undefined ? "–" : v.toFixed(digits).replace("-", MINUS));
const signed = (v, digits = 4) => (v > 0 ? "+" : "") + fixed(v, digits);

function ticks(low, high, about) {
  const raw = (high - low) / Math.max(about, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((k) => k * power >= raw * 0.999) * power;
  const first = Math.ceil(low / step - 1e-9), values = [];
  for (let k = first; k * step <= high + step * 1e-9; k++) values.push(Number((k * step).toPrecision(12)));
  return values;
}
function logTicks(low, high, about) {
  let values = [];
  for (const steps of [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    values = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
      for (const k of steps) {
        const value = Number((k * 10 ** p).toPrecision(12));
        if (value >= low * 0.999 && value <= high * 1.001) values.push(value);
      }
    if (values.length <= about + 1) return values;
  }
  const every = Math.ceil(values.length / Math.max(about, 2));
  return values.filter((_, k) => k % every === 0);
}
// Labels of ticks, with as many decimals as are needed to tell them apart.
function tickTexts(values) {
  let step = Infinity;
  for (let k = 1; k < values.length; k++) step = Math.min(step, Math.abs(values[k] - values[k - 1]));
  const size = Math.max(...values.map(Math.abs));
  if (!Number.isFinite(step) || size >= 1e6 || size < 1e-3) return values.map(short);
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return values.map((v) => (v === 0 ? "0" : fixed(v, places)));
}
function scale(low, high, from, to, log) {
  const f = log ? Math.log : (v) => v;
  if (!(high > low)) [low, high] = log ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
  const s = (v) => from + ((f(v) - f(low)) / (f(high) - f(low))) * (to - from);
  s.inverse = (at) => {
    const v = f(low) + ((at - from) / (to - from)) * (f(high) - f(low));
    return log ? Math.exp(v) : v;
  };
  s.log = log;
  s.ticks = (about) => {
    if (log) return logTicks(low, high, about);
    const values = ticks(low, high, about);
    return values.length > 1 ? values : ticks(low, high, 2 * about + 1);
  };
  return s;
}
function extent(lists, room = 0) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (const v of list) if (v !== null && v !== undefined) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  const more = (high - low) * room || (room && 0.01);
  return [low - more, high + more];
}

// -- the tooltip ----------------------------------------------------------------------------------

const tip = byId("tip");
function showTip(event, title, lines) {
  tip.replaceChildren(el("b", {}, title), ...lines.map((line) => el("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), room = 14;
  let left = event.clientX + room, top = event.clientY + room;
  if (left + box.width > innerWidth - 4) left = Math.max(4, event.clientX - box.width - room);
  if (top + box.height > innerHeight - 4) top = Math.max(4, event.clientY - box.height - room);
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}
const hideTip = () => { tip.hidden = true; };
addEventListener("scroll", hideTip, { passive: true });

// -- models: one colour and one mark each, everywhere ----------------------------------------------

const colour = (model) => `var(--c${DATA.models.indexOf(model) % 8})`;
const MARKS = ["circle", "square", "triangle", "diamond", "cross", "down", "bar", "ring"];
function mark(model, x, y, size = 4, hollow = false) {
  const k = DATA.models.indexOf(model) % MARKS.length, paint = colour(model), r = size;
  const path = {
    circle: `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
    square: `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    triangle: `M${x},${y - 1.2 * r}L${x + 1.2 * r},${y + r}H${x - 1.2 * r}z`,
    diamond: `M${x},${y - 1.4 * r}L${x + 1.4 * r},${y}L${x},${y + 1.4 * r}L${x - 1.4 * r},${y}z`,
    cross: `M${x - r},${y - r}L${x + r},${y + r}M${x - r},${y + r}L${x + r},${y - r}`,
    down: `M${x},${y + 1.2 * r}L${x + 1.2 * r},${y - r}H${x - 1.2 * r}z`,
    bar: `M${x - 1.3 * r},${y - 0.5 * r}h${2.6 * r}v${r}h${-2.6 * r}z`,
    ring: `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
  }[MARKS[k]];
  const open = hollow || MARKS[k] === "cross" || MARKS[k] === "ring";
  return svg("path", { d: path, style: { fill: open && MARKS[k] !== "cross" ? "var(--surface)" : paint, stroke: paint, "stroke-width": open ? 2 : 1 } });
}
const DASHES = ["none", "5 4", "1.5 3.5", "8 3 2 3"];
function legend(items) {
  return el("ul", { class: "legend" }, items.map((item) => el("li", {},
    svg("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" },
      item.line === false ? null : svg("line", { x1: 0, x2: 22, y1: 6, y2: 6, style: { stroke: item.paint || colour(item.model), "stroke-width": 2, "stroke-dasharray": item.dash || "none" } }),
      item.model && item.marked !== false ? mark(item.model, 11, 6, 3.5) : null),
    item.name || item.model)));
}

// Panels side by side; their number per row keeps the last row as full as possible.
function arrange(host) {
  const n = host.childElementCount, [least, most] = host.classList.contains("wide") ? [2, 3] : [3, 5];
  const empty = (c) => (c - (n % c)) % c;
  let best = Math.min(n, least);
  for (let c = best; c <= Math.min(n, most); c++) if (empty(c) <= empty(best)) best = c;
  host.style.setProperty("--columns", Math.max(1, best));
}

// -- a figure: caption, drawing, numbers -----------------------------------------------------------

function figure(host, { title, note, items, draw, table }) {
  const place = el("div", {});
  const chart = el("figure", { class: "chart" },
    el("figcaption", {}, title, note ? el("small", {}, note) : null),
    items && items.length ? legend(items) : null, place);
  if (table) {
    const numbers = el("details", {}, el("summary", {}, "Numbers"));
    numbers.addEventListener("toggle", () => {
      if (numbers.open && numbers.children.length === 1) numbers.append(numberTable(table()));
    });
    chart.append(numbers);
  }
  host.append(chart);
  let drawn = 0;
  const redraw = () => {
    const width = Math.max(200, Math.floor(place.clientWidth));
    if (width === drawn) return;
    drawn = width;
    const picture = draw(width);
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `${title}${note ? ", " + note : ""}`);
    place.replaceChildren(picture);
  };
  new ResizeObserver(redraw).observe(place);
  redraw();
  return chart;
}
function numberTable({ head, rows }) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" }, el("table", {},
    el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) =>
      el("td", {}, typeof cell === "number" || cell === null ? short(cell) : cell)))))));
}
const canvas = (width, height) => svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height });

function axes(picture, box, x, y, xLabel, names) {
  const { left, right, top, bottom } = box;
  const levels = y.ticks((bottom - top) / 42), texts = tickTexts(levels);
  levels.forEach((v, k) => picture.append(
    svg("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }),
    svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, texts[k])));
  picture.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  xTicks(picture, x, bottom, (right - left) / 70, undefined, names);
  if (xLabel) picture.append(svg("text", { x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle" }, xLabel));
}
const cut = (name) => (name.length > 14 ? `${name.slice(0, 13)}…` : name);
function xTicks(picture, x, bottom, about, top, names) {
  const places = names ? names.map((_, k) => k) : x.ticks(about);
  const texts = names ? names.map(cut) : x.log ? places.map(short) : tickTexts(places);
  if (places.length > 1 && x(places[1]) < x(places[0])) { places.reverse(); texts.reverse(); }
  let end = -Infinity; // of the last label: one that would touch it is left out
  places.forEach((v, k) => {
    picture.append(svg("line", { class: top === undefined ? "axis" : "grid", x1: x(v), x2: x(v), y1: top ?? bottom, y2: bottom + (top === undefined ? 4 : 0) }));
    const half = 3.6 * texts[k].length;
    if (x(v) - half < end + 4) return;
    end = x(v) + half;
    picture.append(svg("text", { x: x(v), y: bottom + 17, "text-anchor": "middle" }, texts[k]));
  });
}

// Lines over a common x. A series has model or paint, name, x, y; optionally dash, step, band, best, markers. A thin
// line is one of many, without a name. With names, of categories, x counts these from 0.
function lines(host, { title, note, series, xLabel, logX, height = 240, items, rug, marks = [], yRoom = 0.06, yRange, zeroY, falling, names, table }) {
  const all = series.flatMap((line) => line.x), named = series.filter((line) => !line.thin);
  figure(host, {
    title, note, items,
    table: table || (() => ({ head: [xLabel, ...named.map((line) => line.name)], rows: tableOf(named).map(([v, ...row]) => [names ? names[v] : v, ...row]) })),
    draw(width) {
      const picture = canvas(width, height);
      const [xLow, xHigh] = extent([all]);
      const [yLow, yHigh] = yRange || extent([...series.flatMap((line) => (line.band ? [line.y, line.band] : [line.y])), marks.map((m) => m.y), zeroY ? [0] : []], yRoom);
      const widest = Math.max(...tickTexts(ticks(yLow, yHigh, (height - 48) / 42)).map((t) => t.length), 2);
      const box = { left: 12 + 7 * widest, right: width - 12, top: 8, bottom: height - (xLabel ? 40 : 24) };
      const ends = falling ? [box.right - 7, box.left + 7] : [box.left + 7, box.right - 7];
      const x = scale(xLow, xHigh, ...ends, logX), y = scale(yLow, yHigh, box.bottom, box.top);
      axes(picture, box, x, y, xLabel, names);
      for (const v of rug || []) picture.append(svg("line", { class: "axis", x1: x(v), x2: x(v), y1: box.bottom, y2: box.bottom - 6, style: { stroke: "var(--muted)" } }));
      for (const line of series) drawSeries(picture, line, x, y);
      for (const m of marks) picture.append(m.paint ? ring(m.paint, x(m.x), y(m.y), m.hollow, m.small) : mark(m.model, x(m.x), y(m.y), m.hollow ? 6 : 5, m.hollow));
      followPointer(picture, box, x, y, series, marks, xLabel, names);
      return picture;
    },
  });
}
const ring = (paint, x, y, hollow, small) => svg("circle", { cx: x, cy: y, r: small ? 2.5 : hollow ? 6 : 4, style: { fill: hollow ? "none" : paint, stroke: paint, "stroke-width": small ? 1 : 2 } });
function drawSeries(picture, line, x, y) {
  const paint = line.paint || colour(line.model);
  const points = line.x.map((v, k) => [x(v), line.y[k] === null ? null : y(line.y[k])]).filter((p) => p[1] !== null);
  if (line.band) {
    const lower = line.x.map((v, k) => [x(v), y(line.band[k])]).reverse();
    picture.append(svg("path", { d: `M${points.concat(lower).map((p) => p.map((v) => v.toFixed(1))).join("L")}z`, style: { fill: paint, opacity: 0.18 } }));
  }
  let path = "";
  points.forEach((p, k) => {
    path += k === 0 ? "M" : line.step ? `H${p[0].toFixed(1)}V` : "L";
    path += k && line.step ? p[1].toFixed(1) : `${p[0].toFixed(1)},${p[1].toFixed(1)}`;
  });
  if (line.line !== false) picture.append(svg("path", { d: path, style: { fill: "none", stroke: paint, "stroke-width": line.thin ? 1 : 2, "stroke-dasharray": line.dash || "none", "stroke-linejoin": "round", opacity: line.opacity || (line.thin ? 0.3 : 1) } }));
  if (line.markers) for (const p of points) picture.append(line.model ? mark(line.model, p[0], p[1], 3) : svg("circle", { cx: p[0], cy: p[1], r: 2, style: { fill: paint, opacity: line.opacity || 1 } }));
}
function tableOf(series) {
  const xs = [...new Set(series.flatMap((line) => line.x))].sort((a, b) => a - b);
  const columns = series.map((line) => new Map(line.x.map((v, k) => [v, line.y[k]])));
  return xs.map((v) => [v, ...columns.map((of) => (of.has(v) ? of.get(v) : ""))]);
}
function followPointer(picture, box, x, y, series, marks, xLabel, names) {
  const cursor = svg("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const area = svg("rect", { x: box.left, y: box.top, width: Math.max(0, box.right - box.left), height: Math.max(0, box.bottom - box.top), fill: "transparent" });
  const move = (event) => {
    const at = event.clientX - picture.getBoundingClientRect().left;
    const named = series.filter((line) => line.tip !== false);
    let nearest = null;
    const candidates = named.flatMap((line) => line.x).concat(marks.filter((m) => m.tip).map((m) => m.x));
    for (const v of candidates) if (nearest === null || Math.abs(x(v) - at) < Math.abs(x(nearest) - at)) nearest = v;
    if (nearest === null) return;
    cursor.setAttribute("x1", x(nearest));
    cursor.setAttribute("x2", x(nearest));
    cursor.setAttribute("visibility", "visible");
    const rows = [];
    for (const line of named) {
      let k = -1;
      line.x.forEach((v, i) => { if (k < 0 || Math.abs(x(v) - x(nearest)) < Math.abs(x(line.x[k]) - x(nearest))) k = i; });
      if (k >= 0 && Math.abs(x(line.x[k]) - x(nearest)) < 12) rows.push(`${line.name}: ${short(line.y[k])}`);
    }
    for (const m of marks) if (m.tip && Math.abs(x(m.x) - x(nearest)) < 12) rows.push(m.tip);
    showTip(event, `${xLabel || "x"} ${names ? names[nearest] : short(nearest)}`, rows);
  };
  area.addEventListener("pointermove", move);
  area.addEventListener("pointerdown", move);
  area.addEventListener("pointerleave", () => { hideTip(); cursor.setAttribute("visibility", "hidden"); });
  picture.append(cursor, area);
}

// Bars to the right of names. Values of both signs grow from a middle line.
function bars(host, { title, note, names, values, paint, details, items, text }) {
  figure(host, {
    title, note, items,
    table: () => ({ head: ["feature", "value"], rows: names.map((name, k) => [name, values[k]]) }),
    draw: (width) => barPicture(width, names, values, paint, details, text),
  });
}
function barPicture(width, names, values, paint, details, text) {
  const row = 22, height = Math.max(1, names.length) * row + 4, longest = Math.max(...names.map((n) => n.length), 2);
  const left = Math.min(width * 0.42, 8 + 7.4 * (longest + 1)), numbers = 56;
  const picture = canvas(width, height);
  const [low, high] = extent([values, [0]]);
  const both = low < 0 && high > 0;
  const x = scale(low, high, left + (low < 0 ? numbers : 0), width - (high > 0 ? numbers : 4));
  if (both) picture.append(svg("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: height }));
  names.forEach((name, k) => {
    const top = k * row + 3, a = x(Math.min(0, values[k])), b = x(Math.max(0, values[k]));
    const fits = Math.floor(left / 7.4) - 1, shown = name.length > fits ? name.slice(0, Math.max(1, fits - 1)) + "…" : name;
    const group = svg("g", {},
      svg("rect", { x: 0, y: top - 3, width, height: row, fill: "transparent" }),
      svg("text", { class: "strong", x: left - 8, y: top + 12, "text-anchor": "end" }, shown),
      svg("rect", { x: a, y: top, width: Math.max(1, b - a), height: row - 7, rx: 2, style: { fill: typeof paint === "function" ? paint(k) : paint } }),
      svg("text", { x: values[k] < 0 ? a - 5 : b + 5, y: top + 12, "text-anchor": values[k] < 0 ? "end" : "start" }, both || low < 0 ? signed(values[k], 3) : (text || short)(Number(values[k].toPrecision(3)))));
    group.addEventListener("pointermove", (event) => showTip(event, name, details ? details(k) : [(text || short)(values[k])]));
    group.addEventListener("pointerleave", hideTip);
    picture.append(group);
  });
  return picture;
}
