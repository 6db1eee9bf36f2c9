// Comparison of two sets. Counters are compared exactly; what times tell is for
// kvbench diff, which tests them.
const labelOf = (cell) => {
  const at = cells.findIndex((c) => c.name === cell.name);
  return at >= 0 ? data.labels[at] : cell.name;
};
// metricsOf gathers the rows of a cell by metric, without those of levels: of several repetitions it has the median.
const metricsOf = (cell) => {
  const all = new Map();
  for (const r of cell.rows.filter((r) => !r.cell.level)) {
    if (!all.has(r.metric)) all.set(r.metric, Object.assign({ values: [] }, r));
    all.get(r.metric).values.push(r.value);
  }
  for (const m of all.values()) {
    const sorted = m.values.sort((a, b) => a - b), n = sorted.length;
    [m.value, m.kind] = [(sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2, m.metric.split(" ")[0]];
  }
  return all;
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
    const others = metricsOf(other);
    for (const m of metricsOf(left).values()) {
      const n = others.get(m.metric);
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
      const wrong = s.find((cell) => !cell || cell.schema !== cells[0].schema || cell.experiment !== "cell" || !Array.isArray(cell.rows));
      if (wrong !== undefined || s.length === 0) throw new Error(files[i].name + " has no cells of the schema " + cells[0].schema);
    }
    if (sets.length === 0 || sets.length > 2) throw new Error("choose one file or two");
    const [a, b] = sets.length === 2 ? sets : [cells, sets[0]];
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
