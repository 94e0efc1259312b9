// The queries: a table to sort and search, and the rankings of the chosen one.
const PAGE = 15; // queries at once
const counted = (n) => `${grouped(n)} ${n === 1 ? "query" : "queries"}`;
const FIRST = 15; // documents at once
const IDEAL = -1; // the ranking by label, where there is no other model
const several = DATA.models.length > 1;
// The first model against the best of the others.
const rival = several ? DATA.means[0].reduce((best, mean, k) => (k && (best < 1 || mean[0] > DATA.means[0][best][0]) ? k : best), 0) : IDEAL;
const view = { measure: 0, a: 0, b: rival, text: "", key: several ? "difference" : "a", down: several, page: 0, query: null, doc: null, all: false };

const value = (model, q) => {
  if (model === IDEAL) return null;
  const v = DATA.queries.values[view.measure][model][q];
  return v === null ? null : v / DATA.queries.scale;
};
const difference = (q) => {
  const a = value(view.a, q), b = value(view.b, q);
  return a === null || b === null ? null : Number((b - a).toFixed(6));
};
const nameOf = (model) => (model === IDEAL ? "Ideal order" : DATA.models[model]);

// -- controls --------------------------------------------------------------------------------------

function choice(label, id, options, chosen, change) {
  return el("label", {}, label, el("select", { id, onchange: (event) => change(Number(event.target.value)) },
    options.map(([v, text]) => el("option", { value: v, selected: v === chosen }, text))));
}
function controls() {
  const models = DATA.models.map((name, k) => [k, name]);
  const change = (key) => (v) => {
    view[key] = v;
    view.page = 0;
    if (key !== "measure") view.doc = null; // another document may have moved most
    update();
  };
  byId("query-controls").replaceChildren(
    choice("Measure", "pick-measure", DATA.measures.map((name, k) => [k, name]), view.measure, change("measure")),
    choice(several ? "Compare" : "Model", "pick-a", models, view.a, change("a")),
    choice("with", "pick-b", [...models, [IDEAL, "Ideal order"]], view.b, change("b")),
    el("label", {}, "Search by query id", el("input", { type: "search", id: "search", autocomplete: "off", oninput: (event) => { view.text = event.target.value; view.page = 0; updateList(); } })));
  byId("query-controls").addEventListener("submit", (event) => event.preventDefault());
}

// -- which queries ---------------------------------------------------------------------------------

const collator = new Intl.Collator("en", { numeric: true });
function chosenQueries() {
  const { ids, sizes } = DATA.queries, text = view.text.trim().toLowerCase();
  const chosen = [];
  for (let q = 0; q < ids.length; q++) if (!text || ids[q].toLowerCase().includes(text)) chosen.push(q);
  if (view.key === "id") chosen.sort((p, q) => collator.compare(ids[p], ids[q]) || p - q);
  else {
    const key = { docs: (q) => sizes[q], a: (q) => value(view.a, q), b: (q) => value(view.b, q), difference }[view.key];
    const keys = new Map(chosen.map((q) => [q, key(q)]));
    const sign = view.down ? -1 : 1;
    // Queries without a value come last in either direction.
    return chosen.sort((p, q) => {
      const a = keys.get(p), b = keys.get(q);
      if (a === null || b === null) return (a === null) - (b === null) || p - q;
      return sign * (a - b) || p - q;
    });
  }
  return view.down ? chosen.reverse() : chosen;
}

function columns() {
  const both = view.b !== IDEAL;
  return [["id", "Query"], ["docs", "Docs"], ["a", nameOf(view.a)], ...(both ? [["b", nameOf(view.b)], ["difference", "Difference"]] : [])];
}
function sortBy(key) {
  view.down = view.key === key ? !view.down : key !== "id";
  view.key = key;
  view.page = 0;
  updateList();
  byId(`sort-${key}`).focus();
}

// -- the table -------------------------------------------------------------------------------------

let listed = [], reach = 1;
function update() {
  const both = view.b !== IDEAL;
  if (!both && (view.key === "b" || view.key === "difference")) [view.key, view.down] = ["a", false];
  const all = both ? DATA.queries.ids.map((_, q) => difference(q)) : [];
  reach = Math.max(...extent([all.length ? all : [0]]).map(Math.abs)) || 1;
  drawWins(all);
  updateList(true);
}
function updateList(pick) {
  listed = chosenQueries();
  const pages = Math.max(1, Math.ceil(listed.length / PAGE));
  view.page = Math.max(0, Math.min(view.page, pages - 1));
  const from = view.page * PAGE, part = listed.slice(from, from + PAGE);
  if (pick && (view.query === null || !listed.includes(view.query))) view.query = part.find((q) => DATA.rankings.of[q]) ?? part[0] ?? null;
  const head = columns().map(([key, text]) => {
    const here = view.key === key;
    return el("th", { scope: "col", "aria-sort": here ? (view.down ? "descending" : "ascending") : "none" },
      el("button", { type: "button", id: `sort-${key}`, onclick: () => sortBy(key), title: `Sort by ${text}` },
        el("span", { class: "two" }, breakable(text)), el("span", { class: "arrow", "aria-hidden": "true" }, here ? (view.down ? "▼" : "▲") : "")));
  });
  if (view.b !== IDEAL) head.push(el("td", { class: "bar", "aria-hidden": "true" }));
  const move = (by) => el("button", { type: "button", class: "plain", disabled: by < 0 ? view.page === 0 : view.page >= pages - 1, id: by < 0 ? "earlier" : "later", onclick: () => turn(by) }, by < 0 ? "Previous" : "Next");
  byId("query-list").replaceChildren(
    el("table", { class: `q ${view.b === IDEAL ? "single" : ""}`, role: "grid", "aria-label": "Queries", "aria-rowcount": listed.length + 1 },
      el("thead", {}, el("tr", {}, head)), el("tbody", { onkeydown: keys }, part.map((q, k) => rowOf(q, from + k)))),
    part.length ? "" : el("p", { class: "note" }, "No query id contains this text."),
    el("div", { class: "pager" }, el("div", { role: "status" }, listed.length ? `${grouped(from + 1)}–${grouped(from + part.length)} of ${grouped(listed.length)}` : "none"), el("span", {}, move(-1), move(1))));
  if (pick) drawDetail();
}
function turn(by) {
  view.page += by;
  updateList();
  const button = byId(by < 0 ? "earlier" : "later");
  (button.disabled ? byId(by < 0 ? "later" : "earlier") : button).focus();
}
function rowOf(q, place) {
  const chosen = q === view.query, diff = difference(q);
  const cells = [el("td", { title: DATA.queries.ids[q] }, el("span", { class: "two" }, DATA.queries.ids[q])), el("td", {}, grouped(DATA.queries.sizes[q])), el("td", {}, fixed(value(view.a, q)))];
  if (view.b !== IDEAL) cells.push(el("td", {}, fixed(value(view.b, q))), el("td", { class: diff > 0 ? "better" : diff < 0 ? "worse" : "" }, diff === null ? "–" : signed(diff)), el("td", { class: "bar", "aria-hidden": "true" }, diffBar(diff)));
  return el("tr", { tabindex: chosen || (view.query === null && !place) ? 0 : -1, "data-q": q, "aria-selected": chosen ? "true" : "false", "aria-rowindex": place + 2, onclick: () => choose(q) }, cells);
}
function diffBar(diff) {
  const end = 32 + (32 * (diff || 0)) / reach;
  return svg("svg", { viewBox: "0 0 64 10" },
    svg("rect", { x: Math.min(32, end), y: 1, width: Math.abs(end - 32), height: 8, rx: 1.5, style: { fill: diff > 0 ? "var(--good)" : "var(--bad)" } }),
    svg("line", { x1: 32, x2: 32, y1: 0, y2: 10, class: "axis" }));
}
function choose(q, focus = true) {
  view.query = q;
  view.doc = null;
  view.all = false;
  for (const row of document.querySelectorAll("#query-list tbody tr")) {
    const selected = Number(row.dataset.q) === q;
    row.setAttribute("aria-selected", selected ? "true" : "false");
    row.tabIndex = selected ? 0 : -1;
    if (selected && focus) row.focus({ preventScroll: true });
  }
  drawDetail();
}
function keys(event) {
  const row = event.target.closest("tr");
  if (!row) return;
  const step = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, Home: row.parentNode.firstElementChild, End: row.parentNode.lastElementChild }[event.key];
  if (step) { choose(Number(step.dataset.q)); event.preventDefault(); }
  else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    choose(Number(row.dataset.q));
    byId("query-detail").scrollIntoView({ block: "nearest" });
  } else if (event.key === "PageDown" || event.key === "PageUp") {
    event.preventDefault();
    const before = view.page;
    view.page += event.key === "PageDown" ? 1 : -1;
    updateList();
    if (view.page !== before) choose(listed[view.page * PAGE]);
    else row.isConnected || document.querySelector("#query-list tbody tr[tabindex='0'], #query-list tbody tr")?.focus();
  }
}

// -- wins and losses -------------------------------------------------------------------------------

function drawWins(all) {
  const host = byId("wins");
  host.replaceChildren();
  if (view.b === IDEAL) return;
  const order = all.map((d, q) => [d, q]).filter(([d]) => d !== null).sort((p, q) => q[0] - p[0]);
  const won = order.filter(([d]) => d > 0).length, lost = order.filter(([d]) => d < 0).length, alike = order.length - won - lost;
  const a = nameOf(view.a), b = nameOf(view.b);
  if (!won && !lost) {
    host.append(el("p", { class: "note" }, view.a === view.b ? `${a} is compared with itself: choose another model.` : `${a} and ${b} have the same ${DATA.measures[view.measure]} in all ${counted(alike)}.`));
    return;
  }
  const chart = figure(host, {
    title: `${b} against ${a}: ${counted(won)} won, ${grouped(alike)} tied, ${grouped(lost)} lost`, note: `difference of ${DATA.measures[view.measure]} by query, largest gain first; click to open a query`,
    draw(width) {
      const height = 130, picture = canvas(width, height), left = 46, right = width - 4, columns = Math.max(1, Math.floor(right - left));
      const y = scale(-reach, reach, height - 6, 6), n = order.length;
      for (const v of y.ticks(5)) picture.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }), svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, short(v)));
      const wide = Math.max(1, columns / Math.max(1, n)), bars = Math.min(n, columns);
      const paths = { good: "", bad: "" };
      for (let c = 0; c < bars; c++) {
        // Of queries that share a column, the largest difference: no gain and no loss is hidden.
        let d = 0;
        for (let k = Math.floor((c * n) / bars); k < Math.floor(((c + 1) * n) / bars); k++) if (Math.abs(order[k][0]) > Math.abs(d)) d = order[k][0];
        const x = left + (c * (right - left)) / bars;
        if (d) paths[d > 0 ? "good" : "bad"] += `M${x.toFixed(2)},${y(0)}V${y(d).toFixed(2)}h${(wide > 3 ? wide - 1 : wide).toFixed(2)}V${y(0)}z`;
      }
      picture.append(svg("path", { d: paths.good, style: { fill: "var(--good)" } }), svg("path", { d: paths.bad, style: { fill: "var(--bad)" } }), svg("line", { class: "axis", x1: left, x2: right, y1: y(0), y2: y(0) }));
      const at = (event) => order[Math.max(0, Math.min(n - 1, Math.floor(((event.clientX - picture.getBoundingClientRect().left - left) / (right - left)) * n)))];
      const area = svg("rect", { x: left, y: 0, width: Math.max(0, right - left), height, fill: "transparent", style: { cursor: "pointer" } });
      if (n) {
        area.addEventListener("pointermove", (event) => showTip(event, `query ${DATA.queries.ids[at(event)[1]]}`, [signed(at(event)[0])]));
        area.addEventListener("click", (event) => { const q = at(event)[1]; showQuery(q); });
        area.addEventListener("pointerleave", hideTip);
      }
      picture.append(area);
      return picture;
    },
  });
  const part = (n, paint) => (n ? el("div", { style: { flex: `${n} 1 0`, ...(paint ? { background: paint } : {}) } }) : null);
  chart.querySelector("figcaption").after(el("div", { class: "tally", "aria-hidden": "true" }, part(won, "var(--good)"), part(alike), part(lost, "var(--bad)")));
}
function showQuery(q) {
  let place = listed.indexOf(q);
  if (place < 0) {
    view.text = byId("search").value = "";
    place = chosenQueries().indexOf(q);
  }
  view.page = Math.floor(place / PAGE);
  view.query = q;
  updateList();
  choose(q);
}

// -- the rankings of a query -----------------------------------------------------------------------

function idealRanks(ranking) {
  const order = ranking.docs.map((_, d) => d).sort((p, q) => Number(ranking.labels[q]) - Number(ranking.labels[p]) || p - q);
  const ranks = [];
  order.forEach((d, k) => { ranks[d] = k + 1; });
  return ranks;
}
const ranksOf = (ranking, model) => (model === IDEAL ? idealRanks(ranking) : ranking.ranks[model]);
const chip = (ranking, d) => {
  const level = labelLevel(ranking.groups[d]);
  return el("span", { class: "label", title: `label ${ranking.labels[d]}`, style: { background: `var(--g${level})`, color: `var(--h${level})` } }, ranking.labels[d]);
};
const docName = (ranking, d) => (DATA.rankings.row_numbers ? `row ${grouped(ranking.docs[d])}` : String(ranking.docs[d]));

function drawDetail() {
  const host = byId("query-detail"), q = view.query;
  if (q === null) { host.replaceChildren(el("p", {}, "Choose a query to see its rankings.")); return; }
  const id = DATA.queries.ids[q], ranking = DATA.rankings.of[q], a = value(view.a, q), b = value(view.b, q), diff = difference(q);
  const measure = DATA.measures[view.measure];
  const line = view.b === IDEAL ? `${measure} ${fixed(a)}` : `${measure} ${fixed(a)} → ${fixed(b)}${diff === null ? "" : ` (${signed(diff)})`}`;
  host.replaceChildren(el("h3", {}, `Query ${id}`), el("p", {}, a === null && value(view.b, q) === null ? "This measure leaves the query out." : line));
  if (!ranking) {
    host.append(el("div", { class: "note" }, `This page contains the documents of ${counted(Object.keys(DATA.rankings.of).length)}, and this query is not one of them. Make the page with `, el("code", {}, `--queries ${/^[\w.-]+$/.test(id) ? id : "ID"}`), " to include it, or with a larger ", el("code", {}, "--documents"), "."));
    return;
  }
  const left = ranksOf(ranking, view.a), right = ranksOf(ranking, view.b), n = ranking.docs.length;
  if (view.doc === null) view.doc = mostMoved(left, right);
  const shown = view.all ? n : Math.min(n, FIRST);
  const orders = [left, right].map((ranks) => ranking.docs.map((_, d) => d).sort((p, r) => ranks[p] - ranks[r]).slice(0, shown));
  host.append(el("div", { class: "pair" },
    el("h4", {}, modelKey(view.a)), el("h4", {}, modelKey(view.b)),
    rankList(ranking, orders[0], view.a, left, null), slopes(ranking, orders, shown), rankList(ranking, orders[1], view.b, right, left)));
  if (n > FIRST) host.append(el("button", { type: "button", class: "plain more", onclick: () => { view.all = !view.all; drawDetail(); document.querySelector("#query-detail .more").focus(); } }, view.all ? `Show the first ${FIRST} only` : `Show all ${grouped(n)} documents`));
  if (DATA.rankings.row_numbers) host.append(el("p", { class: "small" }, "Documents are named by their row in the data."));
  if (ranking.total > n) host.append(el("p", { class: "left-out" }, `Of ${grouped(ranking.total)} documents, the ${grouped(n)} that some model ranks highest are shown.`));
  host.append(el("div", { class: "why", id: "why" }));
  drawWhy(ranking, left, right);
}
const modelKey = (model) => [model === IDEAL ? "" : el("span", { class: "key", style: { background: colour(DATA.models[model]) } }), nameOf(model)];
function mostMoved(left, right) {
  // Among the documents that are near the top of either ranking.
  let best = 0, most = -1;
  left.forEach((rank, d) => {
    const far = Math.abs(rank - right[d]);
    if (Math.min(rank, right[d]) <= 10 && far > most) [best, most] = [d, far];
  });
  return best;
}
function rankList(ranking, order, model, ranks, before) {
  const pick = (d) => { view.doc = d; markDoc(); drawWhy(ranking, ranksOf(ranking, view.a), ranksOf(ranking, view.b)); };
  return el("ol", { class: "ranks", "aria-label": `Ranking by ${nameOf(model)}`, onkeydown: (event) => {
    const item = event.target.closest("li"), step = { ArrowDown: item?.nextElementSibling, ArrowUp: item?.previousElementSibling }[event.key];
    if (step) { event.preventDefault(); step.firstChild.focus(); step.firstChild.click(); }
  } }, order.map((d) => el("li", {}, el("button", { type: "button", "data-d": d, "aria-pressed": d === view.doc ? "true" : "false", title: docName(ranking, d), onclick: () => pick(d) },
    el("span", { class: "rank" }, String(ranks[d])), chip(ranking, d), el("span", { class: "doc" }, el("bdi", { dir: "ltr" }, DATA.rankings.row_numbers ? grouped(ranking.docs[d]) : String(ranking.docs[d]))),
    el("span", { class: "score" }, model === IDEAL ? "" : short(ranking.scores[model][d] === null ? null : Number(ranking.scores[model][d].toPrecision(4)))),
    before ? moved(before[d] - ranks[d]) : null))));
}
const moved = (by) => (by === 0 ? el("span", { class: "move", "aria-label": "same rank" }, "·")
  : el("span", { class: `move ${by > 0 ? "better" : "worse"}`, "aria-label": `${by > 0 ? "up" : "down"} by ${Math.abs(by)}` }, `${by > 0 ? "▲" : "▼"} ${Math.abs(by)}`));
function slopes(ranking, [left, right], shown) {
  const row = 28, height = shown * row, picture = svg("svg", { class: "slopes", viewBox: `0 0 56 ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const d of new Set([...left, ...right])) {
    const i = left.indexOf(d), j = right.indexOf(d), y = (k) => (k < 0 ? height + 10 : k * row + row / 2);
    picture.append(svg("path", { d: `M2,${y(i)}C28,${y(i)} 28,${y(j)} 54,${y(j)}`, "data-d": d, "vector-effect": "non-scaling-stroke", class: d === view.doc ? "on" : i < 0 || j < 0 ? "off" : "", style: { stroke: `var(--e${labelLevel(ranking.groups[d])})` } }));
  }
  return picture;
}
function markDoc() {
  for (const button of document.querySelectorAll(".ranks button")) button.setAttribute("aria-pressed", Number(button.dataset.d) === view.doc ? "true" : "false");
  for (const path of document.querySelectorAll(".slopes path")) path.classList.toggle("on", Number(path.dataset.d) === view.doc);
}

// -- the features that moved a document --------------------------------------------------------------

const HOW = DATA.rankings.exact ? "SHAP values; they add up exactly." : "A feature’s contribution is how much the score falls when the feature is set to its mean in the query. Not all of these models are sums over features: the last bar holds interactions and the features that were not examined.";
const REST = DATA.rankings.exact ? "all others" : "together";
function drawWhy(ranking, left, right) {
  const host = byId("why"), d = view.doc, share = ranking.why;
  const ranks = view.b === IDEAL ? `rank ${left[d]}, ideally ${right[d]}` : left[d] === right[d] ? `rank ${left[d]} in both` : `rank ${left[d]} → ${right[d]}`;
  host.replaceChildren(el("h4", {}, `${docName(ranking, d)}, label ${ranking.labels[d]}: ${ranks}`));
  if (!share) {
    const id = DATA.queries.ids[view.query];
    host.append(el("p", {}, "The page contains only the first documents of this query, without feature contributions. Make it with ", el("code", {}, `--queries ${/^[\w.-]+$/.test(id) ? id : "ID"}`), " to include all of it."));
    return;
  }
  const both = view.b !== IDEAL && share.of[view.a] && share.of[view.b];
  // Compared with a feature or with scores: the contributions of the model alone.
  const single = both ? null : share.of[view.a] ? view.a : view.b !== IDEAL && share.of[view.b] ? view.b : null;
  if (!both && single === null) { host.append(el("p", {}, "The feature contributions to these scores are not known.")); return; }
  const a = share.of[both ? view.a : single], b = both ? share.of[view.b] : null;
  const names = share.features.map((j) => (j < 0 ? REST : DATA.rankings.features[j]));
  const of = (model) => model[d].map((v) => v / 1000);
  const values = b ? of(b).map((v, k) => v - of(a)[k]) : of(a);
  const order = values.map((_, k) => k).filter((k) => Math.abs(values[k]) >= 0.0005).sort((p, r) => (share.features[p] < 0) - (share.features[r] < 0) || Math.abs(values[r]) - Math.abs(values[p]));
  const total = values.reduce((sum, v) => sum + v, 0);
  host.append(el("p", {}, b
    ? `What moved it: how much more every feature contributes with ${nameOf(view.b)} than with ${nameOf(view.a)}, in total ${signed(total, 2)}, in standard deviations of each model’s scores in this query. ${HOW}`
    : `What puts it above or below the query’s mean score${several ? ` with ${nameOf(single)}` : ""}, in total ${signed(total, 2)} standard deviations. ${HOW}`));
  host.append(barPicture(Math.max(220, host.clientWidth), order.map((k) => names[k]), order.map((k) => values[k]), (k) => (values[order[k]] > 0 ? "var(--good)" : "var(--bad)"),
    (k) => (b ? [`${nameOf(view.a)} ${signed(of(a)[order[k]], 3)}`, `${nameOf(view.b)} ${signed(of(b)[order[k]], 3)}`] : [signed(values[order[k]], 3)])));
}

function queries() {
  const n = DATA.queries.ids.length, here = Object.values(DATA.rankings.of), kept = here.length, whole = here.filter((ranking) => ranking.why).length;
  const largest = several ? "those with the largest differences" : "those with the lowest values";
  const open = kept === n ? "every query can be opened" : `${grouped(kept)} queries, ${largest}, can be opened`;
  const more = whole === kept ? "" : `; ${grouped(whole)} of them, ${largest}, with all feature contributions, the others with their first documents only`;
  byId("queries-lead").textContent = `${counted(n)}. ${several ? "Choose two models and a measure" : "Choose a query"}; ${open}${more}.`;
  controls();
  update();
}
