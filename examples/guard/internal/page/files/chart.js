// A chart of the last minute: lines over time, the newest at the right. It has its size
// from the page, and never changes it.
import { brief } from "./format.js";

const NS = "http://www.w3.org/2000/svg";
const margin = { left: 44, right: 8, top: 8, bottom: 20 };

/** make returns an SVG element with attributes and children. */
function make(name, attributes = {}, ...children) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** nice returns the least of 1, 2, 5, 10, 20, 50 … that is not below x. */
function nice(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return power * ([1, 2, 5].find((step) => step * power >= x * (1 - 1e-9)) ?? 10);
}

/** linear maps 0 to some round top. */
function linear(values) {
  const most = Math.max(10, ...values);
  const step = nice(most / 4);
  const top = step * Math.ceil(most / step);
  const ticks = [];
  for (let y = 0; y <= top * (1 + 1e-9); y += step) ticks.push(y);
  return { ticks, part: (y) => y / top };
}

/** logarithmic maps powers of ten; what is below the least of them lies on it. */
function logarithmic(least, most) {
  return (values) => {
    // A value a little above a power of ten is drawn on it, rather than moving the scale.
    const [low, high] = [Math.log10(least), Math.ceil(Math.log10(Math.max(most, ...values)) - 0.1)];
    const ticks = [];
    for (let e = low; e <= high; e++) ticks.push(10 ** e);
    return { ticks, part: (y) => Math.min(1, (Math.log10(Math.max(y, least)) - low) / (high - low)) };
  };
}

export class Chart {
  /**
   * node: where the chart is. series: [{ name, of, style, show }], where of(sample) is a value
   * or null, style is the number of a stroke in the style sheet and show gives the text for a
   * value. options: log: [least, most], the range that is always seen on a logarithmic axis;
   * guides: [{ at, name }].
   */
  constructor(node, series, options = {}) {
    this.series = series;
    this.scale = options.log ? logarithmic(...options.log) : linear;
    this.guides = options.guides ?? [];
    this.high = Boolean(options.log); // lines are high when the filter is off
    this.svg = make("svg", { role: "img" });
    this.legend = document.createElement("ul");
    this.legend.className = "legend";
    this.values = series.map((s) => {
      const value = document.createElement("b");
      const item = document.createElement("li");
      const stroke = make("line", { x1: 2, x2: 24, y1: 4, y2: 4, class: "line s" + s.style });
      item.append(make("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" }, stroke), s.name + " ", value);
      this.legend.append(item);
      return value;
    });
    node.append(this.svg, this.legend);
    this.title = node.parentElement.querySelector("figcaption").firstChild.textContent.trim();
    new ResizeObserver(() => this.draw()).observe(node);
  }

  /** update shows samples: keep of them fill the width, every is the seconds between two. */
  update(samples, keep, every) {
    Object.assign(this, { samples, keep, every });
    const last = samples.at(-1);
    const words = this.series.map((s, i) => {
      const text = s.show(last ? s.of(last) : null);
      this.values[i].textContent = text;
      return `${s.name} ${text}`;
    });
    this.svg.setAttribute("aria-label", `${this.title}: ${words.join(", ")}`);
    this.draw();
  }

  draw() {
    if (!this.samples) return;
    const { width, height } = this.svg.getBoundingClientRect();
    const box = { x: margin.left, y: margin.top, width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
    if (box.width <= 0) return;
    const known = this.series.flatMap((s) => this.samples.map(s.of)).filter((y) => y != null);
    const scale = this.scale(known.concat(this.guides.map((g) => g.at)));
    const x = (i) => box.x + (box.width * (i + this.keep - this.samples.length)) / (this.keep - 1);
    const y = (value) => box.y + box.height * (1 - scale.part(value));
    const [shades, words] = this.shades(x, box);
    this.svg.replaceChildren(
      ...shades, ...this.axes(scale, y, box),
      ...this.series.map((s) => make("path", { d: this.path(s, x, y), class: "line s" + s.style })),
      ...this.guides.flatMap((g) => this.guide(g, y, box)), ...words,
    );
  }

  /** shades mark when the filter was off, with words where there is room, away from the lines. */
  shades(x, box) {
    const [nodes, words] = [[], []];
    const y = this.high ? box.y + box.height - 6 : box.y + 13;
    for (let i = 0; i < this.samples.length; i++) {
      if (this.samples[i].on) continue;
      let end = i;
      while (end + 1 < this.samples.length && !this.samples[end + 1].on) end++;
      const [from, to] = [Math.max(box.x, x(i - 1)), x(end)];
      nodes.push(make("rect", { x: from, y: box.y, width: to - from, height: box.height, class: "off" }));
      if (to - from > 60) words.push(make("text", { x: from + 4, y, class: "shade" }, "filter off"));
      i = end;
    }
    return [nodes, words];
  }

  axes(scale, y, box) {
    const right = box.x + box.width;
    const nodes = scale.ticks.flatMap((tick) => [
      make("line", { x1: box.x, x2: right, y1: y(tick), y2: y(tick), class: "grid" }),
      make("text", { x: box.x - 6, y: y(tick) + 4, "text-anchor": "end" }, brief(tick)),
    ]);
    const bottom = box.y + box.height;
    const ago = Math.round((this.keep - 1) * this.every);
    nodes.push(make("line", { x1: box.x, x2: right, y1: bottom, y2: bottom, class: "axis" }));
    nodes.push(make("text", { x: box.x, y: bottom + 15 }, `${ago} s ago`));
    nodes.push(make("text", { x: box.x + box.width / 2, y: bottom + 15, "text-anchor": "middle" }, `${Math.round(ago / 2)} s`));
    nodes.push(make("text", { x: right, y: bottom + 15, "text-anchor": "end" }, "now"));
    return nodes;
  }

  guide({ at, name }, y, box) {
    return [
      make("line", { x1: box.x, x2: box.x + box.width, y1: y(at), y2: y(at), class: "guide" }),
      make("text", { x: box.x + 4, y: y(at) + (y(at) < box.y + 16 ? 14 : -5) }, name),
    ];
  }

  /** path joins what is known; a value alone is a dot. */
  path(series, x, y) {
    let d = "";
    let joined = false;
    this.samples.forEach((sample, i) => {
      const value = series.of(sample);
      if (value != null) d += `${joined ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}${joined ? "" : "h0"}`;
      joined = value != null;
    });
    return d;
  }
}
