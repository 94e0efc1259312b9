// What all pages have: links to their sections, and tables that say that they continue.
function contents() {
  const links = new Map();
  for (const section of document.querySelectorAll("main > section")) {
    const link = el("a", { href: `#${section.id}` }, section.dataset.title);
    links.set(section, link);
    byId("toc").append(el("li", {}, link));
  }
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? seen.add(entry.target) : seen.delete(entry.target);
    const here = [...links.keys()].find((section) => seen.has(section));
    for (const [section, link] of links) link.classList.toggle("here", section === here);
  }, { rootMargin: "-15% 0px -70% 0px" });
  for (const section of links.keys()) watcher.observe(section);
}
// A table wider than its box: a shadow where it continues, and a hint.
function tellScroll(box) {
  const words = el("p", { class: "scroll-hint", "aria-hidden": "true", hidden: true }, "The table continues to the right: swipe or scroll. →");
  box.before(words);
  const tell = () => {
    const rest = box.scrollWidth - box.clientWidth;
    words.hidden = rest <= 1;
    box.classList.toggle("more-right", rest > 1 && box.scrollLeft < rest - 1);
    box.classList.toggle("more-left", rest > 1 && box.scrollLeft > 1);
  };
  box.addEventListener("scroll", tell, { passive: true });
  new ResizeObserver(tell).observe(box);
  tell();
}
