// The page asks for the state twice a second and shows it.
import { Chart } from "./chart.js";
import { count, ratio, share, wait } from "./format.js";

const byId = (id) => document.getElementById(id);
const perSecond = (field) => (sample) => sample.rate?.[field] ?? null;
const milliseconds = (field) => (sample) => (sample[field] ? sample[field] / 1000 : null);
const showMilliseconds = (ms) => wait(ms && ms * 1000);

let charts;

/** makeCharts makes the charts; the state says what the filter promises. */
function makeCharts(promise) {
  const guides = [{ at: 10000, name: "without a filter: 10,000" }];
  if (promise) guides.push({ at: promise * 10000, name: `promised: ${count(promise * 10000)}` });
  return [
    new Chart(byId("chart-asked"), [
      { name: "filter", of: perSecond("filter"), style: 0, show: count },
      { name: "cache", of: perSecond("cache"), style: 1, show: count },
      { name: "database", of: perSecond("queries"), style: 2, show: count },
    ]),
    new Chart(byId("chart-ratio"), [{ name: "over three seconds", of: (s) => s.ratio, style: 2, show: ratio }],
      { log: [1, 10000], guides }),
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

/** derive adds to each sample what happened since the one before, per second, and the ratio. */
function derive(samples) {
  const fields = Object.keys(samples[0] ?? {}).filter((f) => typeof samples[0][f] === "number");
  samples.forEach((sample, i) => {
    if (i === 0) return;
    sample.rate = {};
    for (const f of fields) sample.rate[f] = (sample[f] - samples[i - 1][f]) / sample.seconds;
    sample.ratio = ratioAt(samples, i);
  });
}

/**
 * ratioAt returns the queries without a row per 10,000 absent keys, of the last three seconds in which the filter was
 * on, or off, as it is in sample i; null if no absent key was asked for in sample i.
 */
function ratioAt(samples, i) {
  if (!samples[i].rate.absent) return null;
  let [queries, keys, seconds] = [0, 0, 0];
  for (let k = i; k > 0 && seconds < 3 && samples[k].on === samples[i].on; k--) {
    const { rate, seconds: took } = samples[k];
    queries += rate.empty * took;
    keys += rate.absent * took;
    seconds += took;
  }
  return (queries / keys) * 10000;
}

/** set puts a text where it is not yet. */
function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function showState(s) {
  const attack = s.running ? "the service is under attack" : s.seconds ? "the attack is over" : "no attack yet";
  set(byId("state"), attack + (s.on ? "" : " · the filter is off"));
  set(byId("clock"), s.running ? `${Math.floor(s.seconds)} of ${count(s.limit)} s` : "");
  byId("attack").setAttribute("aria-pressed", String(s.running));
  byId("stop").disabled = !s.running;
  byId("filter").disabled = false;
  byId("filter").setAttribute("aria-checked", String(s.on));
  set(byId("filter").querySelector("b"), s.on ? "on" : "off");
}

function showTiles(now, s) {
  set(byId("tile-requests"), count(now.rate?.requests));
  set(byId("tile-wait"), wait(now.p99));
  set(byId("tile-p50"), wait(now.p50));
  set(byId("tile-queries"), count(now.rate?.queries));
  const known = s.samples.findLast((sample) => sample.ratio != null);
  set(byId("tile-ratio"), ratio(known?.ratio));
  set(byId("tile-ratio-of"), known ? `of ${count(now.absent)} keys in all` : "attack to see");
  byId("verdict").className = !known || !s.promise ? "" : known.ratio > s.promise * 20000 ? "bad" : "good";
  set(byId("tile-wrong"), count(now.wrong));
  set(byId("tile-failed"), count(now.failed));
  byId("truth").className = now.wrong ? "bad" : "";
}

function showTable(now) {
  const rows = [
    ["filter", "filter", `${share(now.filter_no, now.filter)} “no”`],
    ["cache", "cache", `${share(now.cache_hits, now.cache)} known`],
    ["database", "queries", `${share(now.empty, now.queries)} no such row`],
    ["database, written", "writes", ""],
    ["refused: queue full", "shed", ""],
    ["users of the attack", "users", ""],
    ["absent keys of the attack", "absent", ""],
  ];
  const body = byId("asked").tBodies[0];
  rows.forEach(([name, field, said], r) => {
    const row = body.rows[r] ?? body.insertRow();
    if (!row.cells.length) {
      row.append(Object.assign(document.createElement("th"), { scope: "row" }));
      for (let i = 0; i < 3; i++) row.insertCell();
      row.cells[3].className = "text";
    }
    [name, count(now.rate?.[field]), count(now[field]), said].forEach((text, i) => set(row.cells[i], text));
  });
}

function showAlarm(now) {
  const lines = [];
  if (now.wrong) lines.push(`Wrong answers: ${count(now.wrong)}. The service said what is not true.`);
  if (now.mistake) lines.push(now.mistake);
  const alarm = byId("alarm");
  if (alarm.innerText.trim() === lines.join("\n")) return;
  alarm.className = now.wrong ? "bad" : "";
  alarm.replaceChildren(...lines.map((line) => Object.assign(document.createElement("p"), { textContent: line })));
}

/** show shows a state, as /live sends it. */
function show(s) {
  derive(s.samples);
  charts ??= makeCharts(s.promise);
  showState(s);
  const now = s.samples.at(-1);
  if (!now) return;
  showTiles(now, s);
  showTable(now);
  showAlarm(now);
  for (const chart of charts) chart.update(s.samples, s.keep, s.every);
}

async function lookOnce() {
  try {
    const response = await fetch("/live");
    if (!response.ok) throw new Error(`status ${response.status}`);
    show(await response.json());
  } catch (error) {
    set(byId("state"), `no connection to the service (${error.message}); trying again`);
  }
}

/** look asks for the state after all looks before have ended. */
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

byId("attack").addEventListener("click", () => tell("/attack"));
byId("stop").addEventListener("click", () => tell("/stop"));
byId("filter").addEventListener("click", (event) => {
  tell(`/filter?on=${event.currentTarget.getAttribute("aria-checked") !== "true"}`);
});

/** keepLooking looks again some time after the last look has ended, so looks never pile up. */
async function keepLooking() {
  await look();
  setTimeout(keepLooking, 500);
}
keepLooking();
