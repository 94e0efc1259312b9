// The page: sections without data are removed, the others are drawn.
function start() {
  const there = (key) => { const v = DATA[key]; return v && (Array.isArray(v) ? v.length : Object.keys(v).length) > 0; };
  for (const part of document.querySelectorAll("[data-needs]")) if (!there(part.dataset.needs)) part.remove();
  contents();
  intervals();
  queries();
  const drawn = { learning, importance, dependence, scores, micros: sizes, alpha, adaptation, pruning, clicks };
  for (const [key, draw] of Object.entries(drawn)) if (there(key)) draw();
  document.querySelectorAll(".panels").forEach(arrange);
  document.querySelectorAll("main > section > .scroll, .tests .scroll").forEach(tellScroll);
  addEventListener("beforeprint", () => { for (const more of document.querySelectorAll(".tests")) more.open = true; });
}
start();
