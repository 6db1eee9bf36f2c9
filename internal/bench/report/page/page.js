"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const palette = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#996633"];

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
    if (size >= 1e5) return x.toLocaleString("en", { maximumFractionDigits: 0 });
    if (size < 1e-3) return x.toExponential(2).replace(".00", "");
    return String(Number(x.toPrecision(4)));
  };

  // Charts.
  const drawn = [];
  const dark = () => document.documentElement.dataset.theme === "dark";
  const colours = () => dark()
    ? { text: "#e6edf3", soft: "#9aa4af", line: "#30363d", back: "#171c23" }
    : { text: "#1b1f24", soft: "#57606a", line: "#d0d7de", back: "#ffffff" };

  const axis = (c, about, extra) => Object.assign({
    nameTextStyle: { color: c.soft }, axisLabel: { color: c.soft, formatter: (x) => typeof x === "number" ? short(x) : x },
    axisLine: { lineStyle: { color: c.line } }, splitLine: { lineStyle: { color: c.line, opacity: 0.6 } },
    name: about.name, nameLocation: "middle", type: about.log ? "log" : "value",
  }, extra);

  const common = (c, chart) => ({
    animation: false, color: palette, textStyle: { color: c.text },
    aria: { enabled: true, label: { description: chart.title + ". " + chart.note } },
    legend: { type: "scroll", top: 0, textStyle: { color: c.text }, pageTextStyle: { color: c.soft }, pageIconColor: c.text },
    toolbox: { right: 0, top: 22, iconStyle: { borderColor: c.soft }, feature: Object.assign(chart.form === "lines" ? { dataZoom: {} } : {}, { restore: {}, saveAsImage: { name: chart.id, backgroundColor: c.back } }) },
  });

  // bars lie down, since the names of cells are long. The first stands on top.
  const bars = (chart, c) => Object.assign(common(c, chart), {
    grid: { left: 8, right: 24, top: 50, bottom: 34, containLabel: true },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, backgroundColor: c.back, textStyle: { color: c.text }, valueFormatter: short, confine: true },
    xAxis: axis(c, chart.y, { nameGap: 26 }),
    yAxis: { type: "category", data: chart.categories, inverse: true, axisLabel: { color: c.text, width: 220, overflow: "truncate" }, axisLine: { lineStyle: { color: c.line } } },
    dataZoom: chart.categories.length > 40 ? [{ type: "slider", yAxisIndex: 0, right: 0 }] : [],
    series: chart.series.map((s) => ({ name: s.name, type: "bar", stack: chart.stacked ? "all" : undefined, data: s.values, barMaxWidth: 26 })),
  });

  // whisker draws the interval of a point.
  const whisker = (params, api) => {
    const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
    const style = { stroke: api.visual("color"), fill: undefined, lineWidth: 1.2 };
    const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
    return { type: "group", children: [
      line(low[0], low[1], high[0], high[1]), line(low[0] - 4, low[1], low[0] + 4, low[1]), line(high[0] - 4, high[1], high[0] + 4, high[1]),
    ] };
  };

  const lines = (chart, c) => {
    const series = [];
    chart.series.forEach((s, i) => {
      const like = s.like ? chart.series.findIndex((t) => t.name === s.like) : -1;
      const color = palette[(like >= 0 ? like : i) % palette.length];
      const usable = (s.points || []).filter((p) => (!chart.x.log || p.x > 0) && (!chart.y.log || p.y > 0));
      series.push({
        name: s.name, type: s.line ? "line" : "scatter", showSymbol: !s.dashed, symbolSize: s.line ? 4 : 9, color,
        lineStyle: { width: 1.6, type: s.dashed ? "dashed" : "solid" }, data: usable.map((p) => ({ value: [p.x, p.y, p.low, p.high], name: p.label })),
      });
      const intervals = usable.filter((p) => p.low < p.high);
      if (intervals.length > 0) {
        series.push({ name: s.name, type: "custom", color, renderItem: whisker, silent: true, encode: { x: 0, y: [1, 2] }, data: intervals.map((p) => [p.x, p.low, p.high]) });
      }
    });
    return Object.assign(common(c, chart), {
      grid: { left: 34, right: 24, top: 50, bottom: 40, containLabel: true },
      tooltip: {
        trigger: "item", backgroundColor: c.back, textStyle: { color: c.text }, confine: true,
        formatter: (p) => {
          const v = p.value, box = element("div");
          const rows = [p.seriesName, p.name && p.name !== p.seriesName ? p.name : "", chart.x.name + ": " + short(v[0]), chart.y.name + ": " + short(v[1])];
          if (v[2] < v[3]) rows.push("95 %: " + short(v[2]) + " to " + short(v[3]));
          rows.filter((row) => row).forEach((row) => box.append(element("div", {}, row)));
          return box;
        },
      },
      xAxis: axis(c, chart.x, { nameGap: 28, scale: true }), yAxis: axis(c, chart.y, { nameGap: 58, scale: chart.y.log }),
      dataZoom: [{ type: "inside", xAxisIndex: 0 }, { type: "inside", yAxisIndex: 0 }],
      series,
    });
  };

  const drawAll = () => {
    const c = colours();
    for (const d of drawn) {
      if (d.plot) d.plot.dispose();
      d.plot = echarts.init(d.node, null, { renderer: "svg" });
      d.plot.setOption(d.chart.form === "bars" ? bars(d.chart, c) : lines(d.chart, c));
    }
  };

  for (const chart of data.charts || []) {
    const rows = chart.form === "bars" ? chart.categories.length * (chart.stacked ? 1 : Math.max(1, chart.series.length / 2)) : 0;
    const height = Math.min(1400, Math.max(340, 110 + 30 * rows));
    const node = element("div", { class: "plot", id: "plot-" + chart.id, style: "height:" + height + "px" });
    byId("plots").append(element("figure", {}, element("figcaption", {}, chart.title), node, element("p", { class: "note" }, chart.note)));
    drawn.push({ chart, node });
  }

  // Tables.
  const compareItems = (a, b) => {
    if (a.sort !== null && b.sort !== null) return a.sort - b.sort;
    if (a.sort !== null || b.sort !== null) return a.sort !== null ? -1 : 1;
    return a.text.localeCompare(b.text, "en", { numeric: true });
  };

  const table = (grid, shaded) => {
    const body = element("tbody");
    const spans = grid.columns.map((_, i) => {
      const known = grid.rows.map((r) => r[i].sort).filter((x) => x !== null);
      return known.length > 1 ? [Math.min(...known), Math.max(...known)] : [0, 0];
    });
    const fill = (rows) => body.replaceChildren(...rows.map((r) => element("tr", {}, ...r.map((item, i) => {
      const [least, most] = spans[i];
      const at = shaded && item.sort !== null && most > least ? (item.sort - least) / (most - least) : 0;
      return element("td", {
        class: [grid.columns[i].text ? "text" : "", item.verdict || ""].join(" ").trim() || undefined,
        style: at > 0 ? "background:rgba(var(--shade)," + (0.28 * at).toFixed(3) + ")" : undefined,
      }, item.text);
    }))));
    const heads = grid.columns.map((column, i) => element("th", { class: column.text ? "text" : undefined, scope: "col", title: column.help, "aria-sort": "none" },
      element("button", { type: "button", onclick: () => sort(i) }, column.name)));
    const sort = (i) => {
      const up = heads[i].getAttribute("aria-sort") !== "ascending";
      heads.forEach((h, j) => h.setAttribute("aria-sort", j === i ? (up ? "ascending" : "descending") : "none"));
      fill([...grid.rows].sort((a, b) => (up ? 1 : -1) * compareItems(a[i], b[i])));
    };
    fill(grid.rows);
    return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
  };

  for (const grid of data.grids || []) byId("grids").append(element("h3", {}, grid.title), table(grid, true));

  // What was measured.
  const fact = (name, text) => text && byId("facts").append(element("dt", {}, name), element("dd", {}, text));
  fact("cells", String(data.cells.length));
  fact("all have", (data.common || []).join(" · "));
  (data.machines || []).forEach((m) => fact("machine", m));
  (data.warnings || []).forEach((w) => byId("warnings").append(element("p", {}, w)));
  (data.notes || []).forEach((n) => byId("notes").append(element("li", {}, n)));
  byId("identities").textContent = data.identities;
  for (const section of document.querySelectorAll("main section")) {
    byId("nav").append(element("a", { href: "#" + section.id }, section.querySelector("h2").textContent));
  }

  // Downloads.
  const download = (name, type, text) => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    element("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };
  byId("json").addEventListener("click", () => download("kvbench.json", "application/json", JSON.stringify(data.cells, null, 2) + "\n"));
  byId("csv").addEventListener("click", () => download("kvbench.csv", "text/csv", data.csv));

  // Theme.
  const setTheme = (name) => {
    document.documentElement.dataset.theme = name;
    byId("theme").setAttribute("aria-pressed", String(name === "dark"));
    byId("theme").textContent = name === "dark" ? "Light" : "Dark";
    drawAll();
  };
  byId("theme").addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  preferred.addEventListener("change", () => setTheme(preferred.matches ? "dark" : "light"));
  let before = "";
  addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(before));
  addEventListener("resize", () => drawn.forEach((d) => d.plot && d.plot.resize()));

  // Comparison of two sets. Counters are compared exactly; what times tell is for
  // kvbench diff, which tests them.
  const labelOf = (cell) => {
    const at = data.cells.findIndex((c) => c.name === cell.name);
    return at >= 0 ? data.labels[at] : cell.name;
  };
  const differences = (a, b) => {
    const key = (cell) => JSON.stringify(cell.settings);
    const right = new Map(b.map((cell) => [key(cell), cell]));
    const pairs = [];
    for (const cell of a) {
      const other = right.get(key(cell)) || (a.length === 1 && b.length === 1 ? b[0] : undefined);
      if (other) pairs.push([cell, other]);
    }
    const rows = [];
    let equal = 0, changed = 0;
    for (const [left, other] of pairs) {
      for (const m of left.metrics) {
        const n = other.metrics.find((x) => x.kind === m.kind && x.unit === m.unit);
        if (!n) continue;
        if (m.value === n.value) { if (m.exact) equal++; continue; }
        if (m.exact) changed++;
        const change = m.value === 0 ? (n.value === 0 ? 0 : Infinity) : n.value / m.value - 1;
        const item = (text, sort) => ({ text, sort: sort === undefined || !isFinite(sort) ? null : sort });
        const verdict = m.better === "lower" && m.exact ? (change < 0 ? "better" : "worse") : "";
        rows.push([
          item(labelOf(left)), item(m.kind), item(m.unit), item(m.exact ? "counter" : "time"), item(short(m.value), m.value), item(short(n.value), n.value),
          Object.assign(item(isFinite(change) ? (change > 0 ? "+" : "") + (100 * change).toFixed(2) + " %" : "from 0", change), { verdict }),
        ]);
      }
    }
    const column = (name, text, help) => ({ name, text, help: help || "" });
    return {
      pairs: pairs.length, equal, changed,
      grid: { columns: [column("cell", true), column("keys", true), column("metric", true), column("sort", true), column("first"), column("second"), column("change", false, "second / first - 1")], rows },
    };
  };

  const compareFiles = async (files) => {
    const say = (text) => { byId("verdict").textContent = text; };
    byId("differences").replaceChildren();
    try {
      const sets = await Promise.all([...files].map(async (f) => [].concat(JSON.parse(await f.text()))));
      for (const [i, s] of sets.entries()) {
        const wrong = s.find((cell) => !cell || cell.schema !== data.cells[0].schema || !Array.isArray(cell.metrics));
        if (wrong !== undefined || s.length === 0) throw new Error(files[i].name + " has no results of the schema " + data.cells[0].schema);
      }
      if (sets.length === 0 || sets.length > 2) throw new Error("choose one file or two");
      const [a, b] = sets.length === 2 ? sets : [data.cells, sets[0]];
      const d = differences(a, b);
      if (d.pairs === 0) throw new Error("the two sets have no cell of equal settings");
      say(d.pairs + " cells in both; counters: " + d.equal + " equal, " + d.changed + " changed. Times are shown, not tested: kvbench diff tests them.");
      byId("differences").append(table(d.grid, false));
    } catch (err) {
      say("Cannot compare: " + err.message);
    }
  };
  const drop = byId("drop");
  byId("files").addEventListener("change", (e) => compareFiles(e.target.files));
  byId("files").addEventListener("click", (e) => e.stopPropagation());
  drop.addEventListener("click", () => byId("files").click());
  drop.addEventListener("keydown", (e) => { if (e.target === drop && (e.key === "Enter" || e.key === " ")) { e.preventDefault(); byId("files").click(); } });
  for (const name of ["dragover", "dragenter"]) addEventListener(name, (e) => { e.preventDefault(); drop.classList.add("over"); });
  addEventListener("dragleave", () => drop.classList.remove("over"));
  addEventListener("drop", (e) => { e.preventDefault(); drop.classList.remove("over"); if (e.dataTransfer.files.length) compareFiles(e.dataTransfer.files); });

  setTheme(preferred.matches ? "dark" : "light");
})();
