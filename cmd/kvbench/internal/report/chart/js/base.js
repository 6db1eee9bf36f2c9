// What all parts of the program use: the data, elements, and numbers as text.
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const cells = JSON.parse(byId("cells").textContent);

// element makes a node; text is never read as HTML.
const element = (name, attributes, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};

// short formats a number for an axis or a tooltip.
const short = (x) => {
  if (!isFinite(x)) return "-";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e4) return x.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size < 1e-3) return x.toExponential(2).replace(/\.?0+e/, "e");
  return String(Number(x.toPrecision(4)));
};

// inUnit formats a number of a unit. A percentile is told by its distance from all: of
// so many one is above it.
const inUnit = (unit) => (x) => {
  if (unit === "percentile") return Number((100 - 100 / x).toPrecision(8)) + " %";
  if (x === 0) return "0";
  if (unit === "ns") {
    for (const [size, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) if (x >= size) return short(x / size) + " " + name;
  }
  return short(x) + (unit ? " " + unit : "");
};

// caption makes the title of a chart, with what it tells first.
const caption = (chart) => element("figcaption", {}, chart.title, element("span", { class: "headline" }, chart.headline));

const dark = () => document.documentElement.dataset.theme === "dark";
const colours = () => dark()
  ? { text: "#e6edf3", soft: "#9aa4af", line: "#30363d", back: "#171c23" }
  : { text: "#1b1f24", soft: "#57606a", line: "#d0d7de", back: "#ffffff" };
