// The page asks for what is new twice a second and shows it.
import { Chart } from "./chart.js";
import { count, ratio, share, wait } from "./format.js";

const byId = (id) => document.getElementById(id);
const names = { attack: "Attack", cold: "Cold cache", normal: "Normal day" };
const perSecond = (field) => (sample) => sample.per_second[field];
const milliseconds = (field) => (sample) => (sample[field] ? sample[field] / 1000 : null);
const showMilliseconds = (ms) => wait(ms && ms * 1000);

let samples = [];
let last = 0;
let charts;

/** makeCharts makes the charts; the first picture says what the filter promises. */
function makeCharts(promise) {
  const guides = [{ at: 10000, name: "without a filter: 10,000" }];
  if (promise) guides.push({ at: promise * 10000, name: `promised: ${count(promise * 10000)}` });
  return [
    new Chart(byId("chart-asked"), [
      { name: "filter", of: perSecond("filter"), style: 0, show: count },
      { name: "cache", of: perSecond("cache"), style: 1, show: count },
      { name: "database", of: perSecond("queries"), style: 2, show: count },
    ]),
    new Chart(byId("chart-ratio"), [
      { name: "now", of: (s) => s.recent, style: 2, show: ratio },
      { name: "average", of: (s) => (s.per_second.absent ? s.per_ten_thousand : null), style: 3, show: ratio },
    ], { log: [1, 10000], guides }),
    new Chart(byId("chart-wait"), [
      { name: "p50", of: milliseconds("p50"), style: 0, show: showMilliseconds },
      { name: "p99", of: milliseconds("p99"), style: 2, show: showMilliseconds },
    ], { log: [0.1, 1000] }),
    new Chart(byId("chart-requests"), [
      { name: "users", of: perSecond("users"), style: 0, show: count },
      { name: "absent keys", of: perSecond("absent"), style: 3, show: count },
      { name: "failed", of: perSecond("failed"), style: 2, show: count },
    ]),
  ];
}

/**
 * recent returns the queries per 10,000 absent keys of the last three seconds, as far as the
 * filter was on, or off, as it is in the last sample; null if no attack is played.
 */
function recent(samples) {
  const last = samples.at(-1);
  if (last.per_ten_thousand == null || !last.per_second.absent) return null;
  let [queries, keys, seconds] = [0, 0, 0];
  for (let i = samples.length - 1; i >= 0 && seconds < 3 && samples[i].filter === last.filter; i--) {
    const { per_second: now, seconds: took } = samples[i];
    queries += now.empty * took;
    keys += now.absent * took;
    seconds += took;
  }
  return (queries / keys) * 10000;
}

/** set puts a text where it is not yet. */
function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function showState(p) {
  let text = "no load is played";
  if (p.failure) text = p.failure;
  else if (p.running) text = `${names[p.scenario] ?? "A load"} is played`;
  else if (p.scenario) text = `${names[p.scenario]} is over`;
  const filter = p.filter ? "" : " · the filter is off";
  set(byId("state"), text + filter);
  set(byId("clock"), p.running ? `${Math.floor(p.seconds)} of ${count(p.limit)} s` : "");
  for (const button of document.querySelectorAll("[data-run]")) {
    button.setAttribute("aria-pressed", String(p.running && p.scenario === button.dataset.run));
  }
  byId("stop").disabled = !p.running;
  byId("filter").disabled = !p.switch;
  byId("filter").setAttribute("aria-checked", String(p.filter));
  set(byId("filter").querySelector("b"), p.filter ? "on" : "off");
}

function showTiles(s, p) {
  const { per_second: now, total } = s;
  set(byId("tile-requests"), count(now.requests));
  set(byId("tile-wait"), wait(s.p99));
  set(byId("tile-p50"), wait(s.p50));
  set(byId("tile-queries"), count(now.queries));
  const since = s.per_ten_thousand;
  const much = s.recent ?? since;
  set(byId("tile-ratio"), ratio(much));
  set(byId("tile-ratio-since"), since == null ? "play an attack to see" : `${ratio(since)} on average of ${count(total.absent)} keys`);
  byId("verdict").className = much == null || !p.promise ? "" : much > p.promise * 20000 ? "bad" : "good";
  set(byId("tile-wrong"), count(total.wrong));
  set(byId("tile-failed"), count(total.failed));
  byId("truth").className = total.wrong ? "bad" : "";
}

/** fill makes a table of rows, each a name and cells. */
function fill(table, rows) {
  const body = table.tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach(([name, ...cells], r) => {
    const row = body.rows[r] ?? body.insertRow();
    if (!row.cells.length) {
      const head = document.createElement("th");
      head.scope = "row";
      row.append(head);
      cells.forEach(() => row.insertCell());
    }
    set(row.cells[0], name);
    cells.forEach((cell, c) => {
      set(row.cells[c + 1], cell.text ?? cell);
      row.cells[c + 1].className = cell.style ?? "";
    });
  });
}

function showTables({ per_second: now, total }, p) {
  const words = (text) => ({ text, style: "text" });
  fill(byId("asked"), [
    ["filter", count(now.filter), count(total.filter), words(`${share(total.filter_no, total.filter)} “no”`)],
    ["cache", count(now.cache), count(total.cache), words(`${share(total.cache_hits, total.cache)} known`)],
    ["database", count(now.queries), count(total.queries), words(`${share(total.empty, total.queries)} no such row`)],
    ["database, written", count(now.inserts), count(total.inserts), words("")],
    ["refused: queue full", count(now.shed), count(total.shed), words("")],
  ]);
  const kinds = p.kinds.map((k) => [
    k.name, count(k.requests), count(k.per_second), wait(k.p50), wait(k.p99), wait(k.max), count(k.failed),
    { text: count(k.wrong), style: k.wrong ? "wrong" : "" },
    words(Object.entries(k.status).map(([status, n]) => `${status === "0" ? "none" : status}: ${count(n)}`).join(", ")),
  ]);
  fill(byId("kinds"), kinds.length ? kinds : [["nobody came yet", ...Array(7).fill("–"), words("")]]);
}

function showAlarm(total, p) {
  const lines = [];
  if (total.wrong) lines.push(`Wrong answers: ${count(total.wrong)}. The service said what is not true.`);
  lines.push(...p.mistakes);
  if (p.repeated) lines.push(`Pages of feeds that showed an item again: ${count(p.repeated)}. The filter did not answer, or lost it.`);
  if (p.late) lines.push(`Visitors who were due, and not served in time: ${count(p.late)}.`);
  const alarm = byId("alarm");
  if (alarm.innerText.trim() === lines.join("\n")) return;
  alarm.className = total.wrong ? "bad" : "";
  alarm.replaceChildren(...lines.map((line) => Object.assign(document.createElement("p"), { textContent: line })));
}

/** show shows a picture, as /live sends it. */
function show(p) {
  if (p.last < last) samples = []; // of a process before this one
  last = p.last;
  for (const sample of p.samples) {
    samples.push(sample);
    sample.recent = recent(samples);
  }
  samples = samples.slice(-p.keep);
  charts ??= makeCharts(p.promise);
  showState(p);
  const now = samples.at(-1);
  if (!now) return;
  showTiles(now, p);
  showTables(now, p);
  showAlarm(now.total, p);
  for (const chart of charts) chart.update(samples, p.keep, p.every);
}

/** lookOnce asks for what is new. */
async function lookOnce() {
  try {
    const response = await fetch(`/live?after=${last}`);
    if (!response.ok) throw new Error(`status ${response.status}`);
    show(await response.json());
  } catch (error) {
    set(byId("state"), `no connection to the service (${error.message}); trying again`);
  }
}

/** look asks for what is new after all looks that were asked for have ended. */
let looks = Promise.resolve();
const look = () => (looks = looks.then(lookOnce));

/** tell asks the service to do something, and looks at what came of it. */
async function tell(path) {
  try {
    const response = await fetch(path, { method: "POST" });
    if (!response.ok) throw new Error(await response.text());
  } catch (error) {
    set(byId("state"), error.message);
    return;
  }
  await look();
}

for (const button of document.querySelectorAll("[data-run]")) {
  button.addEventListener("click", () => tell(`/run?scenario=${button.dataset.run}`));
}
byId("stop").addEventListener("click", () => tell("/stop"));
byId("filter").addEventListener("click", (event) => {
  tell(`/filter?on=${event.currentTarget.getAttribute("aria-checked") !== "true"}`);
});

/** keepLooking looks again some time after the last look has ended: looks never pile up. */
async function keepLooking() {
  await look();
  setTimeout(keepLooking, 500);
}
keepLooking();
