// The page: its parts in their order, downloads, light and dark.
for (const chart of data.charts || []) (chart.form === "ratios" ? placeRatios : place)(chart);
for (const grid of data.grids || []) byId("grids").append(element("h3", {}, grid.title), table(grid, true));

// What was measured.
const fact = (name, text) => text && byId("facts").append(element("dt", {}, name), element("dd", {}, text));
fact("cells", cells.length && String(cells.length));
(data.about || []).forEach((a) => fact("measured", a));
fact("all have", (data.common || []).join(" · "));
(data.machines || []).forEach((m) => fact("machine", m));
(data.warnings || []).forEach((w) => byId("warnings").append(element("p", {}, w)));
(data.notes || []).forEach((n) => byId("notes").append(element("li", {}, n)));
byId("identities").textContent = data.identities;
for (const id of ["json", "compare"]) byId(id).hidden = cells.length === 0;
byId("csv").hidden = !data.csv;
byId("read").hidden = !(data.notes || []).length;
for (const section of document.querySelectorAll("main section:not([hidden])")) {
  byId("nav").append(element("a", { href: "#" + section.id }, section.querySelector("h2").textContent));
}

// Downloads.
const download = (name, type, text) => {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};
byId("json").addEventListener("click", () => download("kvbench.json", "application/json", byId("cells").textContent));
byId("csv").addEventListener("click", () => download("kvbench.csv", "text/csv", data.csv));

// Theme.
const setTheme = (name, sizes) => {
  document.documentElement.dataset.theme = name;
  byId("theme").setAttribute("aria-pressed", String(name === "dark"));
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  drawAll(sizes);
};
byId("theme").addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
const preferred = matchMedia("(prefers-color-scheme: dark)");
preferred.addEventListener("change", () => setTheme(preferred.matches ? "dark" : "light"));
let before = "";
addEventListener("beforeprint", () => {
  before = document.documentElement.dataset.theme;
  // Two columns on a sheet that lies; the page is not laid out for it yet.
  setTheme("light", (d) => crowded(d.chart) ? { width: 940, height: 270 } : { width: 450, height: Math.min(440, parseInt(d.node.style.minHeight, 10)) });
});
addEventListener("afterprint", () => setTheme(before));

// Labels have a share of the width, so that charts are drawn anew when it changes.
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) drawAll();
  width = innerWidth;
});

setTheme(preferred.matches ? "dark" : "light");
