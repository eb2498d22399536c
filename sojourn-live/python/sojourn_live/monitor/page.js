"use strict";
const SPANS = JSON.parse(document.getElementById("spans").dataset.seconds), NAMES = {600: "10 min", 3600: "1 h", 21600: "6 h", 86400: "24 h"};
const TOKEN = new URLSearchParams(location.search).get("token") || "";
const COLUMNS = ["sent", "lost", "min", "p10", "p50", "p90", "max"];
// Rows this far back may still change: a probe counts in the row in which it was sent, but it is known to be lost only after its timeout.
const SETTLED_S = 70;
let span = SPANS[0], kept = null, charts = new Map(), asked = 0;

const element = (name, text) => { const e = document.createElement(name); if (text !== undefined) e.textContent = text; return e; };
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const ms = v => v == null ? "–" : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2);

for (const s of SPANS) {
  const button = element("button", NAMES[s]);
  button.onclick = () => { span = s; kept = null; press(); ask(); };
  button.dataset.span = s;
  document.getElementById("spans").append(button, " ");
}
const press = () => document.querySelectorAll("#spans button").forEach(b => b.setAttribute("aria-pressed", +b.dataset.span === span));
press();

// Columns of rows: new rows replace those from `since` on, and rows older than the span are removed.
function merge(old, fresh, names, since, from) {
  const result = {}, keep = [];
  if (old) old.t.forEach((t, i) => { if (t >= from && t < since) keep.push(i); });
  for (const name of ["t", ...names]) result[name] = (old ? keep.map(i => old[name][i]) : []).concat(fresh[name]);
  return Object.assign({}, fresh, result);
}

async function ask() {
  const mine = ++asked, of = span;
  const since = kept ? Math.floor(kept.now - SETTLED_S - kept.width) : 0;
  try {
    const reply = await fetch("data?token=" + encodeURIComponent(TOKEN) + "&span=" + of + "&since=" + since, {cache: "no-store"});
    if (!reply.ok) throw new Error(await reply.text());
    const fresh = await reply.json();
    if (mine !== asked) return;
    const from = fresh.now - of, known = (list, name) => list && list.find(x => x.name === name);
    if (kept && kept.width === fresh.width) {
      fresh.targets = fresh.targets.map(t => merge(known(kept.targets, t.name), t, COLUMNS, since - fresh.width + 1, from));
      fresh.traffic = fresh.traffic.map(t => merge(known(kept.traffic, t.name), t, ["received", "sent"], since - fresh.width + 1, from));
      const seen = kept.events.filter(e => e.t >= from && e.t < since);
      fresh.events = seen.concat(fresh.events.filter(e => e.t >= since));
    }
    kept = fresh;
    draw();
  } catch (error) {
    document.getElementById("state").textContent = "no answer: the monitor has ended, or " + error.message;
  }
}

// Leaves a gap between rows that are further apart than `most`.
function gaps(t, width, most, columns) {
  const times = [], filled = columns.map(() => []);
  t.forEach((at, i) => {
    if (i && at - t[i - 1] > most) { times.push(t[i - 1] + width); filled.forEach(f => f.push(null)); }
    times.push(at); columns.forEach((c, k) => filled[k].push(c[i]));
  });
  return [times, ...filled];
}

const axis = label => ({stroke: colour("--muted"), grid: {stroke: colour("--grid"), width: 1}, ticks: {stroke: colour("--grid")}, label, labelSize: 16, size: 52, font: "11px system-ui"});
const clock = (u, at) => at.map(t => new Date(t * 1000).toLocaleTimeString([], at.length > 1 && at[1] - at[0] < 60 ? {} : {hour: "2-digit", minute: "2-digit"}));
const across = () => Object.assign(axis(), {values: clock, size: 30, space: 90});
const line = (name, stroke, width) => ({label: name, stroke, width, points: {show: false}, spanGaps: false});

function lossHook(u) {
  const lost = u.lossRows || [], context = u.ctx;
  context.save(); context.strokeStyle = colour("--lost"); context.lineWidth = 1.5 * devicePixelRatio;
  for (const [at, share] of lost) {
    const x = u.valToPos(at, "x", true);
    if (x < u.bbox.left) continue;
    context.beginPath(); context.moveTo(x, u.bbox.top); context.lineTo(x, u.bbox.top + (0.04 + 0.96 * share) * u.bbox.height * 0.25); context.stroke();
  }
  context.restore();
}

function chart(key, title, options) {
  if (charts.has(key)) return charts.get(key);
  const heading = element("h2", title + " "), small = element("small"), place = element("div");
  heading.append(small);
  document.getElementById("charts").append(heading, place);
  const plot = new uPlot(Object.assign({
    width: width(), cursor: {sync: {key: "all"}, y: false}, legend: {show: false},
  }, options), [[]].concat(options.series.slice(1).map(() => [])), place);
  const made = {plot, small};
  charts.set(key, made);
  return made;
}
const width = () => Math.max(320, document.getElementById("charts").clientWidth);

function draw() {
  const range = [kept.now - span, kept.now], half = kept.width / 2;
  const scales = {x: {time: true, range: () => [kept.now - span, kept.now]}};
  for (const target of kept.targets) {
    const {plot, small} = chart("rtt " + target.name, target.name, {
      height: 175, scales: Object.assign({y: {range: (u, low, high) => [0, (high || 1) * 1.08]}}, scales),
      axes: [across(), axis("RTT [ms]")],
      series: [{}, line("max", "transparent", 0), line("min", "transparent", 0), line("p90", "transparent", 0), line("p10", "transparent", 0), line("median", colour("--median"), 1.2)],
      bands: [{series: [1, 2], fill: colour("--outer")}, {series: [3, 4], fill: colour("--inner")}],
      hooks: {draw: [lossHook]},
    });
    const t = target.t.map(at => at + half);
    plot.lossRows = t.map((at, i) => [at, target.lost[i] / target.sent[i]]).filter(([, share]) => share > 0);
    plot.setData(gaps(t, kept.width, target.gap, [target.max, target.min, target.p90, target.p10, target.p50]));
    let sent = 0, lost = 0;
    target.t.forEach((at, i) => { if (at >= kept.now - 60) { sent += target.sent[i]; lost += target.lost[i]; } });
    const settled = target.p50.length - 2, last = target.p50[Math.max(settled, 0)];
    small.textContent = (target.address !== target.name ? target.address + " · " : "") + "median now " + ms(last) + " ms · last minute: ";
    const mark = element("span", sent ? (100 * lost / sent).toFixed(lost ? 1 : 0) + " % lost" : "nothing sent");
    if (lost) mark.className = "lost";
    small.append(mark);
  }
  for (const carried of kept.traffic) {
    const {plot, small} = chart("traffic " + carried.name, "traffic of " + carried.name, {
      height: 150, scales, axes: [across(), Object.assign(axis("Mbit/s"), {space: 22, values: (u, at) => at.map(v => Math.abs(v).toLocaleString())})],
      series: [{}, Object.assign(line("received", colour("--down"), 1.2), {fill: colour("--down") + "40"}), Object.assign(line("sent", colour("--up"), 1.2), {fill: colour("--up") + "40"})],
    });
    const rows = gaps(carried.t.map(at => at + half), kept.width, 1.5 * kept.width, [carried.received, carried.sent.map(v => -v)]);
    plot.setData(rows);
    const n = carried.t.length - 1;
    small.textContent = "down (above) " + ms(carried.received[n]) + " Mbit/s · up (below) " + ms(carried.sent[n]) + " Mbit/s";
  }
  document.getElementById("state").textContent = new Date(kept.now * 1000).toLocaleTimeString() + " · each column " + kept.width + " s: median, 10 to 90 %, least to greatest; red: lost";
  const list = document.getElementById("events");
  list.replaceChildren(...kept.events.slice(-8).reverse().map(e => element("li", new Date(e.t * 1000).toLocaleString() + ": " + e.text)));
}

addEventListener("resize", () => charts.forEach(({plot}) => plot.setSize({width: width(), height: plot.height})));
ask();
setInterval(ask, 1000);
