// Tables that sort by their headings.
const compareItems = (a, b) => {
  if (a.sort !== null && b.sort !== null) return a.sort - b.sort;
  return a.text.localeCompare(b.text, "en", { numeric: true });
};
const unknown = (item, column) => item.sort === null && !column.text;

const table = (grid, shaded) => {
  const body = element("tbody");
  const spans = grid.columns.map((_, i) => { // of words none
    const known = grid.columns[i].text ? [] : grid.rows.map((r) => r[i].sort).filter((x) => x !== null);
    return known.length > 1 ? [Math.min(...known), Math.max(...known)] : [0, 0];
  });
  const shade = (item, [least, most]) => {
    const at = shaded && item.sort !== null && most > least ? (item.sort - least) / (most - least) : 0;
    return at > 0 ? "background:rgba(var(--shade)," + (0.28 * at).toFixed(3) + ")" : undefined;
  };
  const fill = (rows) => body.replaceChildren(...rows.map((r) => element("tr", {}, ...r.map((item, i) => element("td", {
    class: [grid.columns[i].text ? "text" : "", item.verdict || ""].join(" ").trim() || undefined,
    style: item.style || shade(item, spans[i]),
  }, item.text)))));
  const heads = grid.columns.map((column, i) => element("th", { class: column.text ? "text" : undefined, scope: "col", title: column.help, "aria-sort": "none" },
    element("button", { type: "button", onclick: () => sort(i) }, column.name)));
  // What is not known stays at the end, whichever way the others are sorted.
  const sort = (i) => {
    const up = heads[i].getAttribute("aria-sort") !== "ascending", column = grid.columns[i];
    heads.forEach((h, j) => h.setAttribute("aria-sort", j === i ? (up ? "ascending" : "descending") : "none"));
    fill([...grid.rows].sort((a, b) => unknown(a[i], column) - unknown(b[i], column) || (up ? 1 : -1) * compareItems(a[i], b[i])));
  };
  fill(grid.rows);
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
};

// Ratios to a baseline, which the reader chooses.
const ratioItem = (value, base) => {
  if (value < 0 || base < 0) return { text: "-", sort: null };
  const ratio = value === base ? 1 : value / base;
  const strength = Math.min(1, Math.abs(Math.log2(ratio)) / 3);
  const text = !isFinite(ratio) ? "from 0" : ratio >= 10 ? short(Math.round(ratio)) : ratio >= 1 ? ratio.toFixed(2) : String(Number(ratio.toPrecision(2)));
  return { text, sort: isFinite(ratio) ? ratio : Number.MAX_VALUE, style: "background:rgba(var(" + (ratio < 1 ? "--less" : "--more") + ")," + (0.55 * strength).toFixed(3) + ")" };
};

const placeRatios = (chart) => {
  const holder = element("div");
  const fill = (at) => holder.replaceChildren(table({
    columns: [{ name: "cell", text: true, help: "" }, ...chart.series.map((s) => ({ name: s.name, help: "times as much as " + chart.categories[at] }))],
    rows: chart.categories.map((name, n) => [{ text: name, sort: null }, ...chart.series.map((s) => ratioItem(s.values[n], s.values[at]))]),
  }, false));
  const choice = element("select", { id: "baseline", onchange: () => fill(Number(choice.value)) },
    ...chart.categories.map((name, n) => element("option", { value: String(n) }, name)));
  choice.value = String(chart.baseline);
  fill(chart.baseline);
  byId("plots").append(element("figure", { class: "wide", id: "plot-" + chart.id }, caption(chart),
    element("p", {}, element("label", { for: "baseline" }, "Baseline: "), choice), holder, element("p", { class: "note" }, chart.note)));
};
