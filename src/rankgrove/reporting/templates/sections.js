// The sections of charts.
function intervals() {
  // The means of every measure with their intervals, one row per model.
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
          const group = svg("g", {},
            svg("rect", { x: 0, y: y - row / 2, width, height: row, fill: "transparent" }),
            svg("text", { class: "strong", x: 0, y: y + 4 }, r.name.length > fits ? r.name.slice(0, fits - 1) + "…" : r.name),
            svg("line", { x1: x(r.low), x2: x(r.high), y1: y, y2: y, style: { stroke: colour(r.name), "stroke-width": 2.5, "stroke-linecap": "round" } }),
            mark(r.name, x(r.mean), y, 4.5));
          group.addEventListener("pointermove", (event) => showTip(event, r.name, [`${DATA.measures[m]} ${fixed(r.mean)}`, `${fixed(r.low)} to ${fixed(r.high)}`]));
          group.addEventListener("pointerleave", hideTip);
          picture.append(group);
        });
        return picture;
      },
    });
  });
}

const AXIS = { trees: "trees", rounds: "rounds", passes: "passes", epochs: "epochs", C: "C" };
function learning() {
  // Models with the same unit and measure share a chart; the members of a combination have their own.
  const groups = new Map();
  for (const curve of DATA.learning) {
    const key = JSON.stringify([curve.unit, curve.measure, curve.member === null ? null : curve.model]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(curve);
  }
  for (const inside of [false, true])
    for (const group of groups.values()) if ((group[0].member !== null) === inside) learningChart(group);
}
function learningChart(group) {
  const [{ model, member, unit, measure }] = group;
  const sets = [...new Set(group.map((curve) => curve.data))], members = [...new Set(group.map((curve) => curve.member))];
  const several = sets.length > 1, series = [], marks = [];
  for (const curve of group) {
    // A member that is also shown as a model keeps its colour; others get colours that no model has.
    const as = curve.member === null ? curve.model : curve.same;
    const paint = as === null ? `var(--c${(DATA.models.length + members.indexOf(curve.member)) % 8})` : colour(as);
    const name = (curve.member === null ? curve.model : curve.member) + (curve.of ? `, mean of ${curve.of.length}` : "") + (several ? `, ${curve.data}` : "");
    const dash = DASHES[sets.indexOf(curve.data) % 4];
    for (const y of curve.of || []) series.push({ name, paint, dash, x: curve.x.slice(0, y.length), y, thin: true, tip: false });
    for (const [x, y] of curve.kept || []) marks.push({ paint, x, y, hollow: true, small: true });
    series.push({ ...curve, model: as, paint, name, dash, markers: curve.unit === "C" });
    if (curve.best === null) continue;
    let k = 0;
    curve.x.forEach((v, i) => { if (Math.abs(v - curve.best) < Math.abs(curve.x[k] - curve.best)) k = i; });
    marks.push({ ...(as === null ? { paint } : { model: as }), x: curve.x[k], y: curve.y[k], hollow: true, tip: `${curve.member === null ? "" : `${curve.member}, `}kept: ${short(curve.best)}` });
  }
  const named = series.filter((curve) => !curve.thin), inside = member === null ? "" : `${model}: `, data = several ? null : `on ${sets[0]} data`;
  const thin = named.length < series.length ? "thin lines: the models of a bag" : null;
  lines(byId("learning-charts"), {
    title: `${inside}${measure} by ${unit}`, note: [data, thin].filter((text) => text).join("; ") || null, series, marks, items: named,
    xLabel: AXIS[unit], logX: unit === "C",
  });
}

function importance() {
  for (const model of DATA.importance) {
    bars(byId("importance-charts"), { title: model.model, note: model.used < model.of ? `${model.label}; ${grouped(model.used)} of ${grouped(model.of)} are used` : model.label, names: model.features, values: model.values, paint: colour(model.model), text: model.kind === "gain" || model.kind === "split" ? (v) => `${short(Number((100 * v).toPrecision(3)))} %` : short });
  }
}

function dependence() {
  const shown = new Set(DATA.dependence.flatMap((feature) => feature.lines.map((line) => line.model)));
  // Lines of models that agree cover each other: dashes show the ones below.
  const dash = (model) => DASHES[[...shown].indexOf(model) % 4];
  byId("dependence-charts").before(legend([...shown].map((model) => ({ model, marked: false, dash: dash(model) }))));
  const none = Object.keys(DATA.micros).filter((model) => !shown.has(model));
  if (none.length) byId("dependence-charts").before(el("p", { class: "lead" }, `Without a line: ${none.join(", ")}. These models scale features or scores by query, or have no partial dependence.`));
  const yRange = extent(DATA.dependence.flatMap((feature) => feature.lines.map((line) => line.y)), 0.05);
  for (const feature of DATA.dependence) {
    lines(byId("dependence-charts"), {
      title: feature.feature, height: 190, rug: feature.tenths, yRange, names: feature.names,
      series: feature.lines.map((line) => ({ ...line, name: line.model, dash: dash(line.model), line: !feature.names, markers: Boolean(feature.names) })),
      xLabel: feature.names ? "category" : "value",
    });
  }
}

const labelLevel = (group) => { const n = DATA.labels.length; return n < 2 ? 0 : Math.round((group * 5) / (n - 1)); };
function scores() {
  for (const model of DATA.scores) {
    const n = model.labels.length, edges = model.edges;
    figure(byId("score-charts"), {
      title: model.model, note: "score, by label",
      table: () => ({ head: ["score from", ...model.labels.map((l) => `label ${l}`)], rows: edges.slice(0, -1).map((v, b) => [v, ...model.shares.map((s) => s[b])]) }),
      draw(width) {
        const row = 34, height = n * row + 40, picture = canvas(width, height), left = 40, bottom = n * row + 14;
        const x = scale(edges[0], edges[edges.length - 1], left, width - 6);
        const top = Math.max(...model.shares.flat());
        xTicks(picture, x, bottom, (width - left) / 36, 4);
        for (let g = n - 1; g >= 0; g--) {
          const base = 14 + (n - g) * row - 4, level = labelLevel(g), high = (s) => base - (s / top) * (row + 8);
          let path = `M${x(edges[0])},${base}`;
          model.shares[g].forEach((s, b) => { path += `V${high(s).toFixed(1)}H${x(edges[b + 1]).toFixed(1)}`; });
          const shape = svg("path", { d: `${path}V${base}z`, style: { fill: `var(--g${level})`, stroke: `var(--e${level})`, "stroke-width": 1, opacity: 0.9 } });
          shape.addEventListener("pointermove", (event) => {
            const at = x.inverse(event.clientX - picture.getBoundingClientRect().left);
            const b = Math.max(0, Math.min(model.shares[g].length - 1, edges.findIndex((e) => e > at) - 1));
            showTip(event, `label ${model.labels[g]}: ${grouped(model.counts[g])} documents`, [`${(100 * model.shares[g][b]).toFixed(1)} % at scores from ${short(edges[b])} to ${short(edges[b + 1])}`]);
          });
          shape.addEventListener("pointerleave", hideTip);
          picture.append(shape, svg("text", { class: "strong", x: left - 8, y: base - 3, "text-anchor": "end" }, model.labels[g]));
        }
        return picture;
      },
    });
  }
}

function clicks() {
  const { facts, verdict, safe, impressions, clicks: clicked, rate, examination } = DATA.clicks, host = byId("click-charts");
  byId("click-facts").append(...facts.map(([name, text]) => el("li", {}, el("b", {}, text), ` ${name}`)));
  byId("click-verdict").append(...(safe.length ? [el("b", {}, `Safe: ${safe.join(", ")}.`), ` ${verdict}`] : [verdict]));
  const places = (values) => values.map((_, k) => k + 1);
  lines(host, {
    title: "Clicks per impression", note: "by position", xLabel: "position", zeroY: true,
    series: [{ name: "clicks per impression", paint: "var(--muted)", x: places(rate), y: rate, markers: true }],
    table: () => ({ head: ["position", "impressions", "clicks", "clicks per impression"], rows: rate.map((v, k) => [k + 1, grouped(impressions[k]), grouped(clicked[k]), v]) }),
  });
  if (!examination.length) return;
  // The check has no model's colour. Contexts of a model differ by dashes.
  const drawn = new Map();
  const series = examination.map(({ name, model, y }) => {
    const n = drawn.get(model) || 0;
    drawn.set(model, n + 1);
    return { name, y, x: places(y), markers: true, dash: DASHES[n % 4], ...(model === null ? { paint: "var(--muted)" } : { model }) };
  });
  const bands = examination.flatMap(({ low, high }, k) => {
    if (low === null) return [];
    const known = high.flatMap((v, i) => (v === null || low[i] === null ? [] : [i]));
    return [{ paint: series[k].paint, x: known.map((i) => i + 1), y: known.map((i) => high[i]), band: known.map((i) => low[i]), line: false, thin: true, tip: false }];
  });
  lines(host, {
    title: "Examination by position", note: bands.length ? "relative to the first position; area: 95 % interval" : "relative to the first position",
    series: [...bands, ...series], items: series, xLabel: "position", zeroY: true,
  });
}

function sizes() {
  const measure = DATA.measures[0], host = byId("size-charts");
  const sets = [...new Set(DATA.sizes.flatMap((curve) => Object.keys(curve.values)))];
  const several = sets.length > 1;
  const has = DATA.sizes.length > 0;
  byId("sizes-lead").textContent = (has ? `The cost of quality: tree models cut to their first trees, bags cut to their first models. ` : "") + "Times were measured on the machine that made this page; compare them only with each other.";
  for (const unit of ["trees", "rounds"]) {
    const curves = DATA.sizes.filter((curve) => curve.unit === unit);
    if (!curves.length) continue;
    const series = curves.flatMap((curve) => Object.entries(curve.values).map(([set, values]) => ({ model: curve.model, name: several ? `${curve.model}, ${set}` : curve.model, x: curve.sizes, y: values, dash: DASHES[sets.indexOf(set) % 4], markers: true })));
    lines(host, { title: `${measure} by number of ${unit}`, series, items: series, xLabel: AXIS[unit], logX: true });
  }
  const cut = DATA.sizes.map((curve) => ({ model: curve.model, name: curve.model, x: curve.micros, y: curve.values[sets[0]], markers: true, line: false, opacity: 0.55 }));
  const whole = Object.entries(DATA.micros).map(([model, micros]) => {
    const mean = DATA.means[0][DATA.models.indexOf(model)][0];
    return { model, x: micros, y: mean, tip: `${model}: ${fixed(mean)}` };
  });
  lines(host, {
    title: `${measure} against scoring time`, note: has ? "large marks: whole models; small marks: their first trees or models" : null, yRoom: 0.12,
    series: [...cut, { model: whole[0].model, name: "", x: whole.map((w) => w.x), y: whole.map((w) => w.y), line: false, tip: false }],
    marks: whole, items: whole.map(({ model }) => ({ model, line: false })), xLabel: "microseconds per document", logX: true,
  });
}

function alpha() {
  const measure = DATA.measures[0];
  for (const combination of DATA.alpha) {
    const paints = [colour(combination.model), "var(--muted)", "var(--c7)"];
    const series = combination.curves.map((curve, k) => ({ name: curve.data, paint: paints[k % 3], x: curve.alpha, y: curve.largest, band: curve.least, step: true, dash: DASHES[k % 4] }));
    const marks = [];
    for (const [c, curve] of combination.curves.entries()) {
      let k = curve.alpha.findIndex((v) => v > combination.alpha) - 1;
      if (k < 0) k = curve.alpha.length - 1;
      marks.push({ paint: paints[c % 3], x: curve.best[0], y: curve.best[1], tip: `best on ${curve.data}: ${fixed(curve.best[1])} at ${short(curve.best[0])}` });
      marks.push({ paint: paints[c % 3], x: combination.alpha, y: curve.largest[k], hollow: true, tip: `the model’s weight: ${short(combination.alpha)}` });
    }
    lines(byId("alpha-charts"), { title: combination.model, note: `${measure} of ${combination.formula}`, series, marks, items: series, xLabel: "alpha" });
  }
}

function adaptation() {
  for (const model of DATA.adaptation) {
    const host = byId("adaptation-charts"), share = (v) => Number((100 * v).toPrecision(3));
    const top = 1.4 * Math.max(0.1, ...model.change_median, ...model.unreached_median);
    const line = (name, values, points, paint, dash) => [
      { name, paint, dash, x: model.tree, y: values.map(share) },
      { name: `${name}, per tree`, paint, x: model.tree, y: points.map((v) => (v > top ? null : share(v))), line: false, markers: true, opacity: 0.25, tip: false },
    ];
    const series = [...line("change of responses", model.change_median, model.change, "var(--c0)"), ...line("branches without a row", model.unreached_median, model.unreached, "var(--c1)", DASHES[1])];
    lines(host, { title: `${model.model}: by tree`, note: "percent; lines are running medians", series, items: [series[0], series[2]], xLabel: "tree", zeroY: true, yRoom: 0.02 });
    bars(host, {
      title: `${model.model}: by feature`, note: "how much the effect of its splits changed", names: model.features.map((f) => f.feature), values: model.features.map((f) => f.effect_change), paint: colour(model.model),
      details: (k) => [`effect before ${short(model.features[k].effect)}`, `its change ${short(model.features[k].effect_change)}`, `${model.features[k].moved} of ${model.features[k].nodes} thresholds moved`],
    });
  }
}

function pruning() {
  for (const model of DATA.pruning) {
    const series = Object.entries(model.values).map(([name, values], k) => ({ name: `${name} (from ${fixed(values[0])})`, paint: `var(--c${k})`, dash: DASHES[k % 4], x: model.trees, y: values.map((v) => v - values[0]) }));
    lines(byId("pruning-charts"), { title: model.model, note: "change of the mean", series, items: series, xLabel: "trees left", zeroY: true, falling: true });
  }
}
