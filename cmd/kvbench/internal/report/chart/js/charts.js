// Charts. What they show is in the data; this says how it is drawn.
const palettes = { // of the same hues
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#996633"],
  dark: ["#3b9ddd", "#ec7a3c", "#23bf92", "#e09cc4", "#f0b429", "#8ccdf5", "#a3a3a3", "#c0915f"],
};
const hues = palettes.light.length;
const dashes = ["solid", "dashed", "dotted"]; // of series that share a colour
const grey = "#808080";
const drawn = []; // {chart, node, plot, width, printed, selected}

// crowded says that the series of a chart are too many to be shown at first, or to be
// named in a line over it.
const crowded = (chart) => chart.series.length > hues;

// first returns which series of a chart are shown at first, by name.
const first = (chart) => Object.fromEntries(chart.series.map((s, i) => [s.name, i < hues || s.neutral]));

const hue = (chart, i) => {
  const s = chart.series[i];
  if (s.neutral) return grey;
  const like = s.like ? chart.series.findIndex((t) => t.name === s.like) : -1;
  return palettes[dark() ? "dark" : "light"][(like >= 0 ? like : i) % hues];
};

const axis = (c, about, extra) => Object.assign({
  nameTextStyle: { color: c.soft }, axisLabel: { color: c.soft, formatter: about.unit === "ns" || about.unit === "percentile" ? inUnit(about.unit) : (x) => typeof x === "number" ? short(x) : x },
  axisLine: { lineStyle: { color: c.line } }, splitLine: { lineStyle: { color: c.line, opacity: 0.6 } },
  name: about.name, nameLocation: "middle", nameGap: 10, type: about.log ? "log" : "value",
}, extra);

// A legend has the names of all series, or on paper of those that are shown. It stands beside a wide chart of many.
const named = (d) => d.printed ? d.chart.series.filter((s) => d.selected[s.name]) : d.chart.series;
const isBeside = (d) => crowded(d.chart) && d.width > 700;
const isPhone = (d) => d.width < 430; // the tools stand over the legend
const legendWidth = (d) => d.width - (isPhone(d) ? 10 : 116);

// linesOf returns how many lines the names take in a legend over the chart.
const linesOf = (d) => {
  const width = legendWidth(d);
  let lines = 1, at = 0;
  if (isBeside(d)) return lines;
  for (const s of named(d)) {
    const wide = 42 + 6.6 * s.name.length;
    if (at > 0 && at + wide > width) [lines, at] = [lines + 1, 0];
    at += wide;
  }
  return lines;
};

// sideOf returns how wide a legend beside a chart is.
const sideOf = (d) => Math.min(0.45 * d.width, 50 + 6.2 * Math.max(...named(d).map((s) => s.name.length)));

// heightOf returns how high a chart is with its whole legend.
const heightOf = (d) => Math.max(d.height + 19 * (linesOf(d) - 1), isBeside(d) ? 80 + 20 * named(d).length : 0);

// common is what all charts have.
const common = (d, c) => {
  const { chart } = d, beside = isBeside(d), phone = isPhone(d), lower = 19 * (linesOf(d) - 1);
  const side = sideOf(d);
  return {
    beside,
    animation: false, textStyle: { color: c.text },
    aria: { enabled: true, label: { description: chart.title + ". " + chart.note } },
    grid: { left: 8, right: beside ? side + 16 : 16, top: lower + (phone ? 60 : beside ? 30 : 38), bottom: 8, outerBoundsMode: "same", outerBoundsContain: "all" },
    legend: Object.assign({
      type: "plain", textStyle: { color: c.text, width: (beside ? side : legendWidth(d)) - 44, overflow: "truncate" }, data: named(d).map((s) => s.name),
      inactiveColor: dark() ? "#5b6570" : "#a3abb4", selected: d.selected,
      selector: crowded(chart) && !d.printed ? [{ type: "all", title: "all" }, { type: "inverse", title: "invert" }] : false, selectorLabel: { color: c.soft, borderColor: c.line },
    }, beside ? { orient: "vertical", right: 0, top: 30, bottom: 8, width: side, selectorPosition: "start" } : { left: 0, width: legendWidth(d), top: phone ? 22 : 0 }),
    toolbox: { show: !d.printed, right: -12, top: -10, itemSize: 14, showTitle: false, tooltip: tooltip(c, { show: true, trigger: "item", formatter: (p) => p.title }), iconStyle: { borderColor: c.soft }, emphasis: { iconStyle: { borderColor: c.text, textFill: c.text, textBackgroundColor: c.back } },
      feature: Object.assign(chart.form === "bars" ? {} : { dataZoom: {} }, { restore: {}, saveAsImage: { type: "svg", name: chart.id, backgroundColor: c.back } }) },
  };
};

const box = (rows) => {
  const node = element("div");
  rows.filter((row) => row).forEach((row) => node.append(element("div", {}, row)));
  return node;
};
const tooltip = (c, extra) => Object.assign({ backgroundColor: c.back, borderColor: c.line, textStyle: { color: c.text, fontSize: 12 }, confine: true }, extra);

// bars lie down, since the names of cells are long. The first stands on top. A logarithmic axis has no zero, and dots.
const bars = (d, c) => {
  const { chart, width } = d;
  const shape = (s) => chart.y.log
    ? { type: "scatter", symbolSize: 11, data: s.values.map((x, i) => [x, i]).filter(([x]) => x > 0) }
    : { type: "bar", stack: chart.stacked ? "all" : undefined, data: s.values, barMaxWidth: 20 };
  const value = (p) => chart.y.log ? p.value[0] : p.value;
  return Object.assign(common(d, c), {
    tooltip: tooltip(c, { trigger: "axis", axisPointer: { type: "shadow", axis: "y" }, formatter: (all) => box([all[0].axisValueLabel,
      ...all.filter((p) => value(p) > 0 || !chart.stacked).map((p) => p.seriesName + ": " + inUnit(chart.y.unit)(value(p))),
      chart.stacked ? "sum: " + short(all.reduce((sum, p) => sum + p.value, 0)) : ""]) }),
    xAxis: axis(c, chart.y, { nameGap: 26 }),
    yAxis: { type: "category", data: chart.categories, inverse: true, axisTick: { show: false }, axisLabel: { color: c.text, interval: 0, width: Math.min(300, 0.42 * width), overflow: "truncate" }, axisLine: { lineStyle: { color: c.line } } },
    series: chart.series.map((s, i) => Object.assign({ name: s.name, color: hue(chart, i), cursor: "default" }, shape(s))),
  });
};

// whisker draws the interval of a point.
const whisker = (params, api) => {
  const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
  const style = { stroke: api.visual("color"), fill: undefined, lineWidth: 1.2 };
  const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
  return { type: "group", children: [
    line(low[0], low[1], high[0], high[1]), line(low[0] - 4, low[1], low[0] + 4, low[1]), line(high[0] - 4, high[1], high[0] + 4, high[1]),
  ] };
};

const lines = (d, c) => {
  const { chart } = d, series = [];
  chart.series.forEach((s, i) => {
    const color = hue(chart, i);
    const usable = (s.points || []).filter((p) => (!chart.x.log || p.x > 0) && (!chart.y.log || p.y > 0));
    series.push({
      name: s.name, type: s.line ? "line" : "scatter", showSymbol: !s.dashed, symbol: "circle", symbolSize: s.line ? 4 : 9, color, clip: true,
      lineStyle: { width: 1.6, type: s.dashed ? "dashed" : dashes[Math.floor(i / hues) % dashes.length] }, data: usable.map((p) => ({ value: [p.x, p.y, p.low, p.high], name: p.label })),
    });
    const intervals = usable.filter((p) => p.low < p.high);
    if (intervals.length > 0) {
      series.push({ name: s.name, type: "custom", color, renderItem: whisker, silent: true, clip: true, encode: { x: 0, y: [1, 2] }, data: intervals.map((p) => [p.x, p.low, p.high]) });
    }
  });
  const [x, y] = [inUnit(chart.x.unit), inUnit(chart.y.unit)];
  return Object.assign(common(d, c), {
    tooltip: tooltip(c, { trigger: "item", formatter: (p) => box([p.seriesName, p.name && p.name !== p.seriesName ? p.name : "",
      chart.x.name + ": " + x(p.value[0]), chart.y.name + ": " + y(p.value[1]), p.value[2] < p.value[3] ? "95 %: " + y(p.value[2]) + " to " + y(p.value[3]) : ""]) }),
    xAxis: axis(c, chart.x, { scale: true, nameGap: 26 }), yAxis: axis(c, chart.y, { scale: chart.y.log }),
    dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl" }, { type: "inside", yAxisIndex: 0, zoomOnMouseWheel: "ctrl" }],
    series,
  });
};

const forms = { bars, lines };

// drawAll draws the charts anew. Those that were drawn go first, so that they hold no
// room in which the others are laid out.
const drawAll = (sizes) => {
  for (const d of drawn) if (d.plot) d.plot.dispose();
  for (const d of drawn) draw(d, sizes && sizes(d));
};

// draw draws a chart in the colours of the theme: as large as there is room, or for
// paper as large as is said, where nothing can be clicked.
const draw = (d, size) => {
  d.printed = size !== undefined;
  d.width = d.printed ? size.width : d.node.clientWidth;
  if (!d.printed) d.node.style.minHeight = heightOf(d) + "px";
  d.plot = echarts.init(d.node, null, Object.assign({ renderer: "svg" }, size));
  d.plot.setOption(forms[d.chart.form](d, colours()));
  d.plot.on("legendselectchanged", choose(d));
  d.plot.on("legendselectall", choose(d));
  d.plot.on("legendinverseselect", choose(d));
  d.plot.on("restore", () => setTimeout(() => { d.selected = first(d.chart); d.plot.dispose(); draw(d); }));
  // Dragging zooms, where there is a mouse: with a finger it scrolls the page.
  if (d.chart.form !== "bars" && !matchMedia("(pointer: coarse)").matches) {
    d.plot.dispatchAction({ type: "takeGlobalCursor", key: "dataZoomSelect", dataZoomSelectActive: true });
  }
};

// choose notes what is shown.
const choose = (d) => (e) => { d.selected = Object.assign({}, e.selected); };

// place makes the figure of a chart.
const place = (chart) => {
  const rows = chart.form === "bars" ? chart.categories.length * (chart.stacked ? 1 : Math.max(1, Math.min(chart.series.length, hues) / 2)) : 0;
  const height = Math.max(340, 90 + 24 * rows);
  const node = element("div", { class: "plot", id: "plot-" + chart.id, style: "min-height:" + height + "px" });
  byId("plots").append(element("figure", { class: crowded(chart) ? "wide" : undefined }, caption(chart), node, element("p", { class: "note" }, chart.note)));
  drawn.push({ chart, node, height, selected: first(chart) });
};
