// The sections of charts.
function intervals() {
  // Every measure's means with their intervals, one row a model.
  DATA.means.forEach((means, m) => {
    const rows = DATA.models.map((name, k) => ({ name, mean: means[k][0], low: means[k][1] ?? means[k][0], high: means[k][2] ?? means[k][0] }));
    figure(byId("intervals"), {
      title: DATA.measures[m], note: "mean, 95 % interval",
      table: () => ({ head: ["model", "mean", "from", "to"], rows: rows.map((r) => [r.name, fixed(r.mean), fixed(r.low), fixed(r.high)]) }),
      draw(width) {
        const row = 26, height = rows.length * row + 26, picture = canvas(width, height);
        const longest = Math.max(...rows.map((r) => r.name.length)), left = Math.min(width * 0.45, 12 + 7 * longest);
        const [low, high] = extent([rows.map((r) => r.low), rows.map((r) => r.high)], 0.08);
        const x = scale(low, high, left + 4, width - 8), bottom = rows.length * row;
        xTicks(picture, x, bottom, (width - left) / 50, 0);
        rows.forEach((r, k) => {
          const y = k * row + row / 2, fits = Math.floor(left / 7) - 1;
          const one = svg("g", {},
            svg("rect", { x: 0, y: y - row / 2, width, height: row, fill: "transparent" }),
            svg("text", { class: "strong", x: 0, y: y + 4 }, r.name.length > fits ? r.name.slice(0, fits - 1) + "…" : r.name),
            svg("line", { x1: x(r.low), x2: x(r.high), y1: y, y2: y, style: { stroke: colour(r.name), "stroke-width": 2.5, "stroke-linecap": "round" } }),
            mark(r.name, x(r.mean), y, 4.5));
          one.addEventListener("pointermove", (event) => showTip(event, r.name, [`${DATA.measures[m]} ${fixed(r.mean)}`, `${fixed(r.low)} to ${fixed(r.high)}`]));
          one.addEventListener("pointerleave", hideTip);
          picture.append(one);
        });
        return picture;
      },
    });
  });
}

const AXIS = { trees: "trees", rounds: "rounds", passes: "passes", epochs: "epochs", C: "C" };
function learning() {
  // Models share a chart where they are measured alike; what is inside of a combination has its own.
  const groups = new Map();
  for (const one of DATA.learning) {
    const key = JSON.stringify([one.unit, one.measure, one.member === null ? null : one.model]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(one);
  }
  for (const inside of [false, true])
    for (const group of groups.values()) if ((group[0].member !== null) === inside) learningChart(group);
}
function learningChart(group) {
  const [{ model, member, unit, measure }] = group;
  const sets = [...new Set(group.map((one) => one.data))], members = [...new Set(group.map((one) => one.member))];
  const several = sets.length > 1, series = [], marks = [];
  for (const one of group) {
    // A ranker that is shown by itself too keeps its colour; others have those that no model has.
    const as = one.member === null ? one.model : one.same;
    const paint = as === null ? `var(--c${(DATA.models.length + members.indexOf(one.member)) % 8})` : colour(as);
    const name = (one.member === null ? one.model : one.member) + (one.of ? `, mean of ${one.of.length}` : "") + (several ? `, ${one.data}` : "");
    const dash = DASHES[sets.indexOf(one.data) % 4];
    for (const y of one.of || []) series.push({ name, paint, dash, x: one.x.slice(0, y.length), y, thin: true, tip: false });
    for (const [x, y] of one.kept || []) marks.push({ paint, x, y, hollow: true, small: true });
    series.push({ ...one, model: as, paint, name, dash, markers: one.unit === "C" });
    if (one.best === null) continue;
    let k = 0;
    one.x.forEach((v, i) => { if (Math.abs(v - one.best) < Math.abs(one.x[k] - one.best)) k = i; });
    marks.push({ ...(as === null ? { paint } : { model: as }), x: one.x[k], y: one.y[k], hollow: true, tip: `${one.member === null ? "" : `${one.member}, `}kept: ${short(one.best)}` });
  }
  const named = series.filter((one) => !one.thin), inside = member === null ? "" : `${model}: `, data = several ? null : `on ${sets[0]} data`;
  const thin = named.length < series.length ? "thin lines: the models of a bag" : null;
  lines(byId("learning-charts"), {
    title: `${inside}${measure} by ${unit}`, note: [data, thin].filter((text) => text).join("; ") || null, series, marks, items: named,
    xLabel: AXIS[unit], logX: unit === "C",
  });
}

function importance() {
  for (const one of DATA.importance) {
    bars(byId("importance-charts"), { title: one.model, note: one.used < one.of ? `${one.label}; ${grouped(one.used)} of ${grouped(one.of)} matter` : one.label, names: one.features, values: one.values, paint: colour(one.model), text: one.kind === "gain" || one.kind === "split" ? (v) => `${short(Number((100 * v).toPrecision(3)))} %` : short });
  }
}

function dependence() {
  const shown = new Set(DATA.dependence.flatMap((one) => one.lines.map((line) => line.model)));
  // Lines of models that agree lie upon each other: those on top have gaps.
  const dash = (model) => DASHES[[...shown].indexOf(model) % 4];
  byId("dependence-charts").before(legend([...shown].map((model) => ({ model, marked: false, dash: dash(model) }))));
  const none = Object.keys(DATA.micros).filter((model) => !shown.has(model));
  if (none.length) byId("dependence-charts").before(el("p", { class: "lead" }, `Without a line: ${none.join(", ")}. Values or scores are brought to a scale of the query there, or the model cannot be asked.`));
  const yRange = extent(DATA.dependence.flatMap((one) => one.lines.map((line) => line.y)), 0.05);
  for (const one of DATA.dependence) {
    lines(byId("dependence-charts"), {
      title: one.feature, height: 190, rug: one.tenths, yRange,
      series: one.lines.map((line) => ({ ...line, name: line.model, dash: dash(line.model) })), xLabel: "value",
    });
  }
}

const labelLevel = (group) => { const n = DATA.labels.length; return n < 2 ? 0 : Math.round((group * 5) / (n - 1)); };
function scores() {
  for (const one of DATA.scores) {
    const n = one.labels.length, edges = one.edges;
    figure(byId("score-charts"), {
      title: one.model, note: "score, by label",
      table: () => ({ head: ["score from", ...one.labels.map((l) => `label ${l}`)], rows: edges.slice(0, -1).map((v, b) => [v, ...one.shares.map((s) => s[b])]) }),
      draw(width) {
        const row = 34, height = n * row + 40, picture = canvas(width, height), left = 40, bottom = n * row + 14;
        const x = scale(edges[0], edges[edges.length - 1], left, width - 6);
        const top = Math.max(...one.shares.flat());
        xTicks(picture, x, bottom, (width - left) / 36, 4);
        for (let g = n - 1; g >= 0; g--) {
          const base = 14 + (n - g) * row - 4, level = labelLevel(g), high = (s) => base - (s / top) * (row + 8);
          let path = `M${x(edges[0])},${base}`;
          one.shares[g].forEach((s, b) => { path += `V${high(s).toFixed(1)}H${x(edges[b + 1]).toFixed(1)}`; });
          const shape = svg("path", { d: `${path}V${base}z`, style: { fill: `var(--g${level})`, stroke: `var(--e${level})`, "stroke-width": 1, opacity: 0.9 } });
          shape.addEventListener("pointermove", (event) => {
            const at = x.inverse(event.clientX - picture.getBoundingClientRect().left);
            const b = Math.max(0, Math.min(one.shares[g].length - 1, edges.findIndex((e) => e > at) - 1));
            showTip(event, `label ${one.labels[g]}: ${grouped(one.counts[g])} documents`, [`${(100 * one.shares[g][b]).toFixed(1)} % at scores from ${short(edges[b])} to ${short(edges[b + 1])}`]);
          });
          shape.addEventListener("pointerleave", hideTip);
          picture.append(shape, svg("text", { class: "strong", x: left - 8, y: base - 3, "text-anchor": "end" }, one.labels[g]));
        }
        return picture;
      },
    });
  }
}

function sizes() {
  const measure = DATA.measures[0], host = byId("size-charts");
  const sets = [...new Set(DATA.sizes.flatMap((one) => Object.keys(one.values)))];
  const several = sets.length > 1;
  const has = DATA.sizes.length > 0;
  byId("sizes-lead").textContent = (has ? `Models of trees cut to their first trees, bags to their first models: what quality costs. ` : "") + "Times were measured where this page was made; compare them with each other.";
  for (const unit of ["trees", "rounds"]) {
    const own = DATA.sizes.filter((one) => one.unit === unit);
    if (!own.length) continue;
    const series = own.flatMap((one) => Object.entries(one.values).map(([set, values]) => ({ model: one.model, name: several ? `${one.model}, ${set}` : one.model, x: one.sizes, y: values, dash: DASHES[sets.indexOf(set) % 4], markers: true })));
    lines(host, { title: `${measure} by number of ${unit}`, series, items: series, xLabel: AXIS[unit], logX: true });
  }
  const cut = DATA.sizes.map((one) => ({ model: one.model, name: one.model, x: one.micros, y: one.values[sets[0]], markers: true, line: false, opacity: 0.55 }));
  const whole = Object.entries(DATA.micros).map(([model, micros]) => {
    const mean = DATA.means[0][DATA.models.indexOf(model)][0];
    return { model, x: micros, y: mean, tip: `${model}: ${fixed(mean)}` };
  });
  lines(host, {
    title: `${measure} against scoring time`, note: has ? "large marks: whole models; small marks: their first trees or models" : null, yRoom: 0.12,
    series: [...cut, { model: whole[0].model, name: "", x: whole.map((w) => w.x), y: whole.map((w) => w.y), line: false, tip: false }],
    marks: whole, items: whole.map(({ model }) => ({ model, line: false })), xLabel: "microseconds a document", logX: true,
  });
}

function alpha() {
  const measure = DATA.measures[0];
  for (const one of DATA.alpha) {
    const paints = [colour(one.model), "var(--muted)", "var(--c7)"];
    const series = one.curves.map((curve, k) => ({ name: curve.data, paint: paints[k % 3], x: curve.alpha, y: curve.largest, band: curve.least, step: true, dash: DASHES[k % 4] }));
    const marks = [];
    for (const [c, curve] of one.curves.entries()) {
      let k = curve.alpha.findIndex((v) => v > one.alpha) - 1;
      if (k < 0) k = curve.alpha.length - 1;
      marks.push({ paint: paints[c % 3], x: curve.best[0], y: curve.best[1], tip: `best on ${curve.data}: ${fixed(curve.best[1])} at ${short(curve.best[0])}` });
      marks.push({ paint: paints[c % 3], x: one.alpha, y: curve.largest[k], hollow: true, tip: `the model’s weight: ${short(one.alpha)}` });
    }
    lines(byId("alpha-charts"), { title: one.model, note: `${measure} of ${one.formula}`, series, marks, items: series, xLabel: "alpha" });
  }
}

function adaptation() {
  for (const one of DATA.adaptation) {
    const host = byId("adaptation-charts"), share = (v) => Number((100 * v).toPrecision(3));
    const top = 1.4 * Math.max(0.1, ...one.change_median, ...one.unreached_median);
    const line = (name, values, points, paint, dash) => [
      { name, paint, dash, x: one.tree, y: values.map(share) },
      { name: `${name}, a tree`, paint, x: one.tree, y: points.map((v) => (v > top ? null : share(v))), line: false, markers: true, opacity: 0.25, tip: false },
    ];
    const series = [...line("change of responses", one.change_median, one.change, "var(--c0)"), ...line("branches without a row", one.unreached_median, one.unreached, "var(--c1)", DASHES[1])];
    lines(host, { title: `${one.model}: by tree`, note: "percent; lines are running medians", series, items: [series[0], series[2]], xLabel: "tree", zeroY: true, yRoom: 0.02 });
    bars(host, {
      title: `${one.model}: by feature`, note: "how much the effect of its splits changed", names: one.features.map((f) => f.feature), values: one.features.map((f) => f.effect_change), paint: colour(one.model),
      details: (k) => [`effect before ${short(one.features[k].effect)}`, `its change ${short(one.features[k].effect_change)}`, `${one.features[k].moved} of ${one.features[k].nodes} thresholds moved`],
    });
  }
}

function pruning() {
  for (const one of DATA.pruning) {
    const series = Object.entries(one.values).map(([name, values], k) => ({ name: `${name} (from ${fixed(values[0])})`, paint: `var(--c${k})`, dash: DASHES[k % 4], x: one.trees, y: values.map((v) => v - values[0]) }));
    lines(byId("pruning-charts"), { title: one.model, note: "change of the mean", series, items: series, xLabel: "trees left", zeroY: true, falling: true });
  }
}
