// The page of a search: best value so far, by fits and by time.
function overTime(unit, label) {
  const steps = DATA.steps.filter((step) => step[unit] !== null);
  if (steps.length < 2) return;
  const x = steps.map((step) => step[unit]);
  const candidate = { name: "candidate", paint: "var(--c7)", x, y: steps.map((step) => step.value), line: false, markers: true, opacity: 0.8 };
  const best = { name: "best so far", paint: "var(--c0)", x, y: steps.map((step) => step.best), step: true };
  lines(byId("search-charts"), {
    title: `${DATA.measure} by ${label}`, note: "dots: candidates, by out-of-fold scores", series: [candidate, best],
    items: [{ name: "best so far", paint: "var(--c0)" }], xLabel: label,
    marks: steps.map((step) => ({ x: step[unit], y: step.value, paint: "var(--c7)", small: true, tip: step.name })),
  });
}
overTime("fits", "fits");
overTime("seconds", "seconds");
if (!byId("search-charts").childElementCount) byId("search").remove();
contents();
document.querySelectorAll(".panels").forEach(arrange);
document.querySelectorAll("main > section > .scroll").forEach(tellScroll);
addEventListener("beforeprint", () => { for (const more of document.querySelectorAll("details")) more.open = true; });
