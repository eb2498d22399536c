"use strict";
// The page's charts. All data is in the page, in `#data`: lines as levels of detail, coarse to fine, each a pair of
// numbers of buffers (times, values; float32, base64). One window of time is shared by all charts over time.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLUMNS = 1200;               // a level with fewer points in the window is replaced by a finer one
  const HEIGHT = 186;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const decoded = new Map();
  const shown = data.runs.map(() => true);
  const hiddenFlows = new Set();
  const whole = [0, data.duration];
  let view = [...whole];
  let charts = [];                    // charts over time: {u, panel, refresh, section}
  const others = [];                  // charts of other quantities
  const ALL = -1;                     // in place of a seed: all of them, as a mean and a band
  const seeds = [...new Set(data.views.map(v => v.seed))].sort((a, b) => a - b);
  const chosen = { seed: data.means.length ? ALL : seeds[0], run: 0, insideSeed: data.views[0].seed };
  const straight = new Set();         // titles of charts with a linear axis where a logarithmic one is usual

  // ------------------------------------------------------------------------------------------------------- values

  const buffer = i => {
    if (!decoded.has(i)) {
      const bytes = Uint8Array.from(atob(data.buffers[i]), c => c.charCodeAt(0));
      const values = new Float32Array(bytes.length / 4), reader = new DataView(bytes.buffer);
      for (let k = 0; k < values.length; k++) values[k] = reader.getFloat32(4 * k, true);
      decoded.set(i, values);
    }
    return decoded.get(i);
  };

  // The first index whose value is not below x.
  const search = (values, x) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  };

  // The part of a line in the window, and a point on each side, from the coarsest level that fills the columns.
  const slice = (levels, [from, to], log) => {
    for (let i = 0; i < levels.length; i++) {
      const t = buffer(levels[i][0]), y = buffer(levels[i][1]);
      const a = Math.max(search(t, from) - 1, 0), b = Math.min(search(t, to) + 1, t.length);
      if (b - a < COLUMNS && i < levels.length - 1) continue;
      const values = Array.from(y.subarray(a, b), v => Number.isNaN(v) || (log && v <= 0) ? null : v);
      return [Array.from(t.subarray(a, b)), values];
    }
    return [[], []];
  };

  const join = tables => {
    if (!tables.length) return [[...view]];
    const first = tables[0][0];
    const same = tables.every(([x]) => x.length === first.length && x.every((v, i) => v === first[i]));
    // A gap of one line lasts to its next value, whatever times other lines have in it (2: NULL_EXPAND).
    return same ? [first, ...tables.map(t => t[1])] : uPlot.join(tables, tables.map(t => t.map(() => 2)));
  };

  const number = v => {
    if (v === null || v === undefined || Number.isNaN(v)) return "–";
    if (Math.abs(v) < 5e-7) return "0";
    const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.abs(v)))));
    return v.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "\u202f");
  };
  const seconds = v => v === null || v === undefined ? "–" : v.toFixed(view[1] - view[0] < 2 ? 4 : 2) + " s";

  // ------------------------------------------------------------------------------------------------------ colours

  const css = name => getComputedStyle(root).getPropertyValue(name).trim();
  const isDark = () => dark.matches && !root.classList.contains("printing");
  const colour = pair => pair === "ink" ? css("--ink") : pair[isDark() ? 1 : 0];

  // ------------------------------------------------------------------------------------------------------- charts

  const axes = (across, unit, log) => [
    {
      stroke: () => css("--muted"), grid: { stroke: () => css("--grid"), width: 1 }, ticks: { stroke: () => css("--grid") },
      size: 34, label: across, labelSize: 16, labelGap: 0,
    },
    {
      stroke: () => css("--muted"), grid: { stroke: () => css("--grid"), width: 1 }, ticks: { stroke: () => css("--grid") },
      size: 66, label: log ? `${unit}, log` : unit, labelSize: 18, labelGap: 0,
      values: (u, splits) => splits.map(v => v === null ? "" : String(+v.toPrecision(6))),
    },
  ];

  // Marks of a logarithmic axis: decades, and 2 and 5 between them if there is room.
  const logSplits = (low, high) => {
    const found = [], steps = Math.log10(high / low) > 3.2 ? [1] : [1, 2, 5];
    if (Math.log10(high / low) < .7) {
      const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
      const step = power * (rough / power >= 5 ? 5 : rough / power >= 2 ? 2 : 1);
      for (let v = Math.ceil(low / step) * step; v <= high; v += step) found.push(+v.toPrecision(6));
      return found;
    }
    for (let decade = 10 ** Math.floor(Math.log10(low)); decade <= high; decade *= 10) {
      for (const step of steps) {
        const v = +(decade * step).toPrecision(6);
        if (v >= low && v <= high) found.push(v);
      }
    }
    return found;
  };
  // The beginning of a logarithmic axis: the last mark that is not above the least value.
  const named = (low, high) => Math.max(...logSplits(low / 10, high).filter(v => v <= low * 1.001), low / 10);
  const logarithmic = axis => Object.assign(axis, {
    splits: (u, i, low, high) => logSplits(low, high),
    filter: (u, splits) => splits,
  });

  // `top`: the end of the axis, even if larger values exist.
  const yRange = (log, top) => (u, low, high) => {
    if (low === null || high === null) return log ? [1, 10] : [0, 1];
    if (top) high = Math.min(high, top);
    return log ? [low / 1.25, high * 1.25] : [Math.min(0, low), high > 0 ? high * 1.06 : 1];
  };

  const shadeWarmup = u => {
    const end = Math.min(data.warmup, view[1]);
    if (end <= view[0]) return;
    const x0 = u.valToPos(view[0], "x", true), x1 = u.valToPos(end, "x", true);
    u.ctx.save();
    u.ctx.fillStyle = css("--shade");
    u.ctx.fillRect(x0, u.bbox.top, x1 - x0, u.bbox.height);
    u.ctx.restore();
  };
  // Names the warm-up above the lines, on a background, because the line of a limit would cross the text.
  const nameWarmup = u => {
    const end = Math.min(data.warmup, view[1]);
    const wide = end > view[0] ? u.valToPos(end, "x", true) - u.valToPos(view[0], "x", true) : 0;
    if (wide < 60 * devicePixelRatio) return;
    const x0 = u.valToPos(view[0], "x", true);
    u.ctx.save();
    u.ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    u.ctx.textBaseline = "top";
    u.ctx.textAlign = "left";
    u.ctx.fillStyle = css("--paper");
    u.ctx.fillRect(x0 + 2, u.bbox.top + 2, u.ctx.measureText("warm-up").width + 5, 12 * devicePixelRatio);
    u.ctx.fillStyle = css("--muted");
    u.ctx.fillText("warm-up", x0 + 4, u.bbox.top + 3);
    u.ctx.restore();
  };

  // A measurement's phases: loaded ones tinted behind the lines, all of them named along the top.
  const paintPhases = (u, phases, paint) => {
    u.ctx.save();
    u.ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    u.ctx.textBaseline = "top";
    u.ctx.textAlign = "left";
    for (const phase of phases || []) {
      const from = Math.max(phase.start, view[0]), to = Math.min(phase.end, view[1]);
      if (to > from) paint(phase, u.valToPos(from, "x", true), u.valToPos(to, "x", true));
    }
    u.ctx.restore();
  };
  const shadePhases = (u, phases) => paintPhases(u, phases, (phase, x0, x1) => {
    if (!phase.colour) return;
    u.ctx.fillStyle = colour(phase.colour) + "1c";
    u.ctx.fillRect(x0, u.bbox.top, x1 - x0, u.bbox.height);
  });
  const namePhases = (u, phases) => paintPhases(u, phases, (phase, x0, x1) => {
    const wide = u.ctx.measureText(phase.name).width + 6;
    if (wide + 4 > x1 - x0) return;
    u.ctx.fillStyle = css("--paper");
    u.ctx.fillRect(x0 + 2, u.bbox.top + 1, wide, 12 * devicePixelRatio);
    u.ctx.fillStyle = css("--muted");
    u.ctx.fillText(phase.name, x0 + 5, u.bbox.top + 2);
  });

  // A legend's value at the cursor; empty without a cursor.
  const hovered = words => (u, v, series, at) => at === null || at === undefined ? "" : words(u, v);

  const line = (entry, unit) => ({
    label: entry.label,
    stroke: () => colour(entry.colour),
    width: entry.dots ? 2 : entry.width || 1.2,
    // A line with levels of detail fills its panel; dashes would only break it up.
    dash: entry.dash && entry.dash.length && !(entry.line && entry.line.length > 1) ? entry.dash : undefined,
    paths: entry.dots ? () => null : undefined,
    points: entry.dots ? { show: true, size: 3.5, width: 0, fill: () => colour(entry.colour) } : { show: false },
    fill: entry.fill ? () => colour(entry.colour) + "33" : undefined,
    class: entry.edge ? "unlisted" : undefined,
    spanGaps: false,
    value: hovered((u, v) => v === null || v === undefined ? "–" : `${number(v)} ${unit}`),
  });

  // A chart's frame: caption, buttons that save it as it is shown, and `more` of them.
  const figure = (parent, title, hint, of, more = []) => {
    const made = document.createElement("figure"), caption = document.createElement("figcaption");
    caption.textContent = title;
    if (hint) {
      const small = document.createElement("small");
      small.textContent = ` ${hint}`;
      caption.append(small);
    }
    const save = document.createElement("span");
    save.className = "save screen";
    save.append(...more, ...saving.buttons(of));
    caption.append(save);
    const holder = document.createElement("div");
    holder.className = "holder";
    holder.setAttribute("role", "img");
    holder.setAttribute("aria-label", title);
    made.append(caption, holder);
    parent.append(made);
    return holder;
  };

  // The properties of a chart for `saving`. `rows`: the rows of its CSV file.
  const savable = (chart, title, entries, rows) => Object.assign(chart, {
    title, rows, below: [], above: [],
    ink: () => css("--ink"), muted: () => css("--muted"), grid: () => css("--grid"), paper: () => css("--paper"),
    looks: entries.map(e => ({ colour: () => colour(e.colour), dash: e.dash, dots: e.dots, width: e.edge ? .6 : e.width || 1.2 })),
    key: () => entries.flatMap((e, i) => chart.u.series[i + 1].show && !e.edge ? [[e.label, colour(e.colour), e.dash]] : []),
  });

  // A Run is hidden in all charts, by a click on its name under a chart or on its box.
  const setRun = (run, on) => {
    if (shown[run] === on) return;
    shown[run] = on;
    const box = document.querySelector(`input[data-run="${run}"]`);
    if (box) box.checked = on;
    for (const chart of [...charts, ...others]) chart.toggle();
    remember();
  };
  const setFlow = (flow, on) => {
    if (hiddenFlows.has(flow) !== on) return;
    if (on) hiddenFlows.delete(flow); else hiddenFlows.add(flow);
    for (const box of document.querySelectorAll("#flows input")) if (box.value === flow) box.checked = on;
    for (const chart of charts) chart.toggle();
  };
  const clicked = entries => (u, i, change) => {
    const entry = i > 0 ? entries[i - 1] : null;
    if (!entry || change.show === undefined) return;
    if (entry.run !== undefined) setRun(entry.run, change.show);
    else if (entry.flow !== undefined) setFlow(entry.flow, change.show);
  };

  const width = () => root.classList.contains("printing") ? 680 : Math.max(document.body.clientWidth - 40, 280);

  // A chart over the shared window of time. `panel`: title, unit, log, series or ticks or density.
  const overTime = (parent, panel, section) => {
    const special = panel.ticks || panel.density;
    const entries = panel.series || [];
    const log = panel.log && !straight.has(panel.title);
    const chart = { panel, section };
    const more = panel.log ? [scaleButton(panel.title, log)] : [];
    const holder = figure(parent, panel.title, panel.hint, () => chart, more);
    savable(chart, panel.title, entries, () => rowsOf(panel));
    Object.assign(chart, { special, holder });
    const fresh = () => {
      if (panel.ticks) return [[...view], [0, panel.ticks.length || 1]];
      if (panel.density) return medians(panel.density);
      return join(entries.map(e => slice(e.line, view, log)));
    };
    const series = panel.ticks
      ? [{ show: true, label: "", stroke: "transparent", points: { show: false } }]
      : panel.density
        ? [{
            label: "median", stroke: () => css("--ink"), width: 1.2, points: { show: false },
            paths: uPlot.paths.stepped({ align: 1 }), value: hovered((u, v) => v === null || v === undefined ? "–" : `${number(v)} ms`),
          }]
        : entries.map(e => line(e, panel.unit));
    const y = { distr: log ? 3 : 1, log: 10, range: yRange(log, panel.top) };
    if (panel.ticks) y.range = () => [0, Math.max(panel.ticks.length, 1)];
    if (panel.density) y.range = () => densityRange(panel.density);
    const look = axes("time, s", panel.unit || " ", log);
    if (log) logarithmic(look[1]);
    if (panel.ticks) Object.assign(look[1], { values: (u, splits) => splits.map(() => ""), grid: { show: false }, ticks: { show: false } });
    const under = panel.ticks ? holder.parentElement.appendChild(document.createElement("p")) : null;
    if (under) under.className = "hint under";
    const below = u => {
      shadeWarmup(u);
      shadePhases(u, panel.phases);
      if (panel.density) paintDensity(u, panel.density);
    };
    const above = u => {
      if (panel.ticks) paintTicks(u, panel.ticks);
      if (!panel.ticks) nameWarmup(u);
      namePhases(u, panel.phases);
    };
    chart.below.push(below);
    chart.above.push(above);
    const u = new uPlot({
      width: width(),
      height: panel.height || (panel.ticks ? 80 + 22 * Math.max(panel.ticks.length, 1) : HEIGHT),
      scales: { x: { time: false, range: () => view }, y },
      axes: look,
      series: [{ label: "time", value: hovered((u, v) => seconds(v)) }, ...series],
      legend: { live: true, isolate: false, markers: { dash: (u, i) => (entries[i - 1] || {}).dash?.length ? "dashed" : "solid" } },
      bands: entries.flatMap((e, i) => e.band ? [{ series: [i + 3, i + 1], fill: () => colour(e.colour) + "30" }] : []),
      cursor: {
        sync: { key: "time", setSeries: false, scales: ["x", null] },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => { show(whole); return null; } },
        points: { show: !special },
        y: false,
      },
      hooks: {
        setSelect: [u => selected(u)],
        drawClear: [below],
        draw: [above],
        setSeries: [clicked(entries)],
        setCursor: under ? [u => { under.textContent = nearby(u, panel.ticks); }] : [],
      },
    }, fresh(), holder);
    if (panel.ticks) holder.querySelector(".u-legend .u-series:last-child").style.display = "none";
    chart.u = u;
    chart.refresh = () => u.batch(() => {
      u.setData(fresh(), false);
      u.setScale("x", { min: view[0], max: view[1] });
    });
    chart.toggle = () => entries.forEach((e, i) => {
      const on = (e.run === undefined || shown[e.run]) && !(e.flow !== undefined && hiddenFlows.has(e.flow));
      if (u.series[i + 1].show !== on) u.setSeries(i + 1, { show: on });
    });
    charts.push(chart);
    chart.toggle();
    return chart;
  };

  const paintTicks = (u, rows) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    if (!rows.length) {
      ctx.fillStyle = css("--muted");
      ctx.fillText("none", bbox.left + bbox.width / 2, bbox.top + bbox.height / 2);
    }
    const high = bbox.height / Math.max(rows.length, 1);
    rows.forEach((row, i) => {
      const t = buffer(row.t), top = bbox.top + i * high;
      ctx.fillStyle = colour(row.colour);
      let last = -1;
      for (let k = search(t, view[0]); k < t.length && t[k] <= view[1]; k++) {
        const x = Math.round(u.valToPos(t[k], "x", true));
        if (x !== last) ctx.fillRect(x, top + high * .35, Math.max(1, devicePixelRatio), high * .6);
        last = x;
      }
      const text = row.label, wide = ctx.measureText(text).width;
      ctx.fillStyle = css("--paper");
      ctx.fillRect(bbox.left + 1, top, wide + 8, 13 * devicePixelRatio);
      ctx.fillStyle = colour(row.colour);
      ctx.fillText(text, bbox.left + 4, top + 1);
    });
    ctx.restore();
  };

  // Counts the events within some pixels of the cursor.
  const nearby = (u, rows) => {
    const x = u.cursor.left;
    if (!(x >= 0)) return "";
    const [from, to] = [u.posToVal(x - 3, "x"), u.posToVal(x + 3, "x")];
    const found = rows.map(row => [row.name, search(buffer(row.t), to) - search(buffer(row.t), from)]).filter(([, n]) => n);
    return `${seconds(from)} to ${seconds(to)}: ${found.map(([name, n]) => `${n} × ${name}`).join(", ") || "none"}`;
  };

  // A chart's numbers, at the finest level that the page has, within the window.
  const rowsOf = panel => {
    const within = t => [search(t, view[0]), search(t, view[1])];
    if (panel.ticks) {
      return [["time [s]", "cause"], ...panel.ticks.flatMap(row => {
        const t = buffer(row.t), [from, to] = within(t);
        return Array.from(t.subarray(from, to), v => [v, row.name]);
      })];
    }
    if (panel.density) {
      const d = panel.density, t = buffer(d.t), parts = [...d.rows, d.sent, d.lost].map(buffer), last = d.rows.length - 1;
      const head = ["time [s]", ...d.rows.map((_, i) => `quantile ${i} of ${last} [ms]`), "sent", "lost"];
      return [head, ...Array.from(t, (v, i) => [v, ...parts.map(part => part[i])])];
    }
    const series = panel.series.filter(e => !e.level);
    const lines = series.map(e => e.line[e.line.length - 1].map(buffer));
    const joined = join(lines.map(([t, y]) => {
      const [from, to] = within(t);
      return [Array.from(t.subarray(from, to)), Array.from(y.subarray(from, to))];
    }));
    const unit = panel.unit ? ` [${panel.unit}]` : "";
    return [["time [s]", ...series.map(e => e.label + unit)], ...joined[0].map((t, i) => [t, ...joined.slice(1).map(y => y[i])])];
  };

  const scaleButton = (title, log) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = log ? "linear" : "log";
    button.setAttribute("aria-label", `${log ? "Linear" : "Logarithmic"} axis for ${title}`);
    button.addEventListener("click", () => {
      if (log) straight.add(title); else straight.delete(title);
      drawCompared();
      drawInside();
    });
    return button;
  };

  // The density graph after Plenz: columns of pings, bands about the median, lighter further out, the lost in red above.
  const medians = d => {
    const t = Array.from(buffer(d.t)), middle = buffer(d.rows[(d.rows.length - 1) / 2]);
    const y = Array.from(middle, v => Number.isNaN(v) ? null : v);
    return [[...t, t[t.length - 1] + d.column], [...y, y[y.length - 1]]];
  };
  const densityRange = d => {
    const t = buffer(d.t), top = buffer(d.rows[d.rows.length - 1]);
    let most = 0;
    for (let i = 0; i < t.length; i++) if (t[i] + d.column > view[0] && t[i] < view[1] && top[i] > most) most = top[i];
    return [0, most > 0 ? most * 1.12 : 1];
  };
  const paintDensity = (u, d) => {
    const { ctx, bbox } = u, t = buffer(d.t), sent = buffer(d.sent), lost = buffer(d.lost);
    const bands = (d.rows.length - 1) / 2;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (let i = 0; i < t.length; i++) {
      if (t[i] + d.column < view[0] || t[i] > view[1]) continue;
      const x0 = u.valToPos(t[i], "x", true), x1 = u.valToPos(t[i] + d.column, "x", true);
      for (let band = 0; band < bands; band++) {
        const low = buffer(d.rows[band])[i], high = buffer(d.rows[d.rows.length - 1 - band])[i];
        if (Number.isNaN(low)) break;
        const y0 = u.valToPos(high, "y", true), y1 = u.valToPos(low, "y", true);
        ctx.fillStyle = data.shades[isDark() ? bands - 1 - band : band];
        ctx.fillRect(x0, y0, Math.max(x1 - x0, 1), Math.max(y1 - y0, 1));
      }
      if (lost[i] > 0) {
        ctx.fillStyle = css("--lost");
        ctx.fillRect((x0 + x1) / 2 - devicePixelRatio, bbox.top, 2 * devicePixelRatio, bbox.height * (.02 + .12 * lost[i] / sent[i]));
      }
    }
    ctx.restore();
  };

  const distribution = (parent, cdf) => {
    const who = e => e.label === undefined ? { ...data.runs[e.run], label: data.runs[e.run].name, run: e.run } : e;
    const entries = cdf.series.map(e => ({ ...who(e), dash: cdf.series.length > 1 ? who(e).dash : [], width: 1.8 }));
    const chart = {};
    const holder = figure(parent, cdf.title, undefined, () => chart);
    savable(chart, cdf.title, entries, () => [
      ["curve", cdf.unit, "% of samples at most"],
      ...cdf.series.flatMap((e, i) => Array.from(buffer(e.x), (x, k) => [entries[i].label, x, buffer(e.y)[k]])),
    ]);
    const tables = cdf.series.map(e => [Array.from(buffer(e.x)), Array.from(buffer(e.y))]);
    const look = axes(cdf.log ? `${cdf.unit}, log` : cdf.unit, "% of samples");
    look[0].values = (u, splits) => splits.map(v => v === null ? "" : String(+v.toPrecision(6)));
    if (cdf.log) logarithmic(look[0]);
    const u = new uPlot({
      width: width(), height: 300,
      scales: {
        x: { time: false, distr: cdf.log ? 3 : 1, range: (u, low, high) => low === null || low === undefined ? [1, 10] : cdf.log ? [named(low, high), high * 1.1] : [0, high] },
        y: { range: () => [0, 102] },
      },
      axes: look,
      series: [
        { label: "at most", value: hovered((u, v) => v === null || v === undefined ? "–" : `${number(v)} ${cdf.unit}`) },
        ...entries.map(e => ({ ...line(e, "%"), spanGaps: true })),
      ],
      legend: { live: true, isolate: false, markers: { dash: (u, i) => (entries[i - 1] || {}).dash?.length ? "dashed" : "solid" } },
      cursor: { drag: { x: true, y: false }, y: false, hover: { skip: [null, undefined] } },
      hooks: {
        drawClear: [markPercentiles],
        setSeries: [clicked(entries)],
      },
    }, tables.length ? uPlot.join(tables) : [[]], holder);
    chart.below.push(markPercentiles);
    others.push(Object.assign(chart, { u, toggle: () => entries.forEach((e, i) => {
      if (e.run !== undefined && u.series[i + 1].show !== shown[e.run]) u.setSeries(i + 1, { show: shown[e.run] });
    }) }));
    chart.toggle();
  };
  const markPercentiles = u => {
    u.ctx.save();
    u.ctx.strokeStyle = u.ctx.fillStyle = css("--muted");
    u.ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    u.ctx.textAlign = "left";
    u.ctx.setLineDash([2, 3]);
    for (const p of [95, 99]) {
      const at = Math.round(u.valToPos(p, "y", true)) + .5;
      u.ctx.beginPath();
      u.ctx.moveTo(u.bbox.left, at);
      u.ctx.lineTo(u.bbox.left + u.bbox.width, at);
      u.ctx.stroke();
      // The two lines are close: one name is above its line, the other below.
      u.ctx.textBaseline = "top";
      const rise = p === 99 ? -11 : 1;
      u.ctx.fillText(`p${p}`, u.bbox.left + (p === 99 ? 30 : 6) * devicePixelRatio, at + rise * devicePixelRatio);
    }
    u.ctx.restore();
  };

  // --------------------------------------------------------------------------------------------------- the window

  const show = ([from, to]) => {
    from = Math.max(from, whole[0]);
    to = Math.min(to, whole[1]);
    if (!(to - from > 1e-4) || (from === view[0] && to === view[1])) return;
    view = [from, to];
    for (const chart of charts) chart.refresh();
    sayWindow();
    remember();
  };
  const sayWindow = () => {
    const [from, to] = view;
    for (const out of document.querySelectorAll("[data-window]")) {
      out.textContent = from === whole[0] && to === whole[1] ? "all" : `${seconds(from)} to ${seconds(to)}`;
    }
  };
  // Every synchronised chart reports a selection. Only the first report counts: it is of the chart that was dragged.
  let selecting = false;
  const selected = u => {
    const { left, width: wide } = u.select;
    if (selecting || wide < 3) return;
    selecting = true;
    const to = [u.posToVal(left, "x"), u.posToVal(left + wide, "x")];
    setTimeout(() => {
      for (const chart of charts) chart.u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      show(to);
      selecting = false;
    });
  };
  const zoom = factor => {
    const middle = (view[0] + view[1]) / 2, half = (view[1] - view[0]) / 2 * factor;
    show([middle - half, middle + half]);
  };
  const pan = share => {
    const step = (view[1] - view[0]) * share;
    const by = Math.min(Math.max(step, whole[0] - view[0]), whole[1] - view[1]);
    show([view[0] + by, view[1] + by]);
  };
  const actions = { in: () => zoom(.5), out: () => zoom(2), reset: () => show(whole), left: () => pan(-.25), right: () => pan(.25) };
  const keys = { "+": "in", "=": "in", "-": "out", "0": "reset", Home: "reset", ArrowLeft: "left", ArrowRight: "right" };
  for (const button of document.querySelectorAll("[data-action]")) button.addEventListener("click", actions[button.dataset.action]);
  for (const place of document.querySelectorAll(".charts[tabindex]")) {
    place.addEventListener("keydown", event => {
      if (event.target !== place || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      actions[keys[event.key]]();
    });
  }

  // ----------------------------------------------------------------------------------------------------- sections

  // The view is in the address behind its #, so that it can be shared: time, Runs, seed.
  const remember = () => {
    const parts = [];
    if (view[0] !== whole[0] || view[1] !== whole[1]) parts.push(`time=${view.map(v => +v.toFixed(4)).join("-")}`);
    if (!shown.every(Boolean)) parts.push(`runs=${shown.flatMap((on, i) => on ? [i + 1] : []).join(",")}`);
    if (chosen.seed !== (data.means.length ? ALL : seeds[0])) parts.push(`seed=${chosen.seed}`);
    if (!parts.length && !location.hash.includes("=")) return;
    history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname + location.search);
  };
  const recall = () => {
    const asked = new Map(location.hash.slice(1).split("&").map(part => part.split("=")));
    const window = (asked.get("time") || "").split("-").map(Number);
    if (window.length === 2 && window[0] >= 0 && window[1] <= whole[1] && window[1] - window[0] > 1e-4) view = window;
    const on = new Set((asked.get("runs") || "").split(",").map(Number));
    if (asked.has("runs") && shown.some((_, i) => on.has(i + 1))) {
      shown.forEach((_, i) => {
        shown[i] = on.has(i + 1);
        const box = document.querySelector(`input[data-run="${i}"]`);
        if (box) box.checked = shown[i];
      });
    }
    if (seeds.includes(Number(asked.get("seed")))) chosen.seed = Number(asked.get("seed"));
    sayWindow();
  };

  const clear = section => {
    for (const chart of charts) if (chart.section === section) chart.u.destroy();
    charts = charts.filter(chart => chart.section !== section);
  };

  const compared = [
    { key: "ping", title: "Ping RTT", hint: "lost pings are gaps", unit: "ms", parts: [["ping", ""]] },
    { key: "one_way", title: "One-way delay of video, calls and other datagrams", hint: "the largest of each sample", unit: "ms", parts: [["one_way", ""]] },
    { key: "sojourn", title: "Sojourn at the bottleneck", unit: "ms", parts: [["largest", ", largest"], ["mean", ", mean"]] },
    { key: "goodput", title: "Goodput, all flows", unit: "Mbit/s", parts: [["goodput", ""]] },
    { key: "there", title: data.ways[0], unit: "Mbit/s", parts: [["there", ""]] },
    { key: "back", title: data.ways[1], unit: "Mbit/s", parts: [["back", ""]] },
    { key: "down", title: "Goodput of the download", unit: "Mbit/s", parts: [["download", ""]] },
    { key: "up", title: "Goodput of the upload", unit: "Mbit/s", parts: [["upload", ""]] },
    { key: "backlog", title: data.measured ? "Backlog of the local link" : "Backlog at the bottleneck", unit: "packets", parts: [["backlog", ""]] },
  ];

  const comparedPanel = kind => {
    const entries = [];
    let top = 0;
    for (const all of chosen.seed === ALL ? data.means : []) {
      const run = data.runs[all.run];
      for (const [name] of kind.parts) {
        if (!all.lines[name]) continue;
        top = Math.max(top, all.tops[name] || 0);
        const [low, mean, high] = all.lines[name].map(y => [[all.t, y]]);
        const of = { run: all.run, colour: run.colour };
        entries.push({ ...of, label: `${run.name}, lowest`, edge: true, band: true, line: low, width: .4 },
          { ...of, label: run.name, dash: data.runs.length > 1 ? run.dash : [], line: mean, width: 1.6 },
          { ...of, label: `${run.name}, highest`, edge: true, line: high, width: .4 });
      }
    }
    for (const v of data.views) {
      if (v.seed !== chosen.seed) continue;
      const run = data.runs[v.run];
      for (const [name, suffix] of kind.parts) {
        if (!v.lines[name]) continue;
        top = Math.max(top, v.tops[name] || 0);
        const faint = name === "largest";
        entries.push({ label: run.name + suffix, run: v.run, colour: faint ? run.colour.map(c => c + "66") : run.colour,
          dash: data.runs.length > 1 ? run.dash : [], width: faint ? 1 : 1.5, line: v.lines[name] });
      }
    }
    // Last, since a band refers to its line by position.
    if (kind.key === "ping" && entries.length) entries.push(...data.idle);
    const hint = [
      chosen.seed === ALL ? "mean over the seeds; the band goes from the lowest to the highest of them" : kind.hint,
      data.above_rate[kind.key],
    ].filter(Boolean).join("; ");
    return { title: kind.title, hint, unit: kind.unit, log: data.log[kind.key] || false, series: entries, phases: data.phases,
      top: top || undefined };
  };

  const drawCompared = () => {
    const hero = document.getElementById("hero"), rest = document.getElementById("compared");
    clear("compared");
    hero.replaceChildren();
    rest.replaceChildren();
    const panels = compared.map(comparedPanel).filter(panel => panel.series.length);
    panels.forEach((panel, i) => overTime(i === 0 ? hero : rest, { ...panel, height: i === 0 ? 300 : HEIGHT }, "compared"));
  };

  const drawInside = () => {
    const place = document.getElementById("inside"), toggles = document.getElementById("flows");
    clear("inside");
    place.replaceChildren();
    hiddenFlows.clear();
    const found = data.views.find(v => v.run === chosen.run && v.seed === chosen.insideSeed) || data.views.find(v => v.run === chosen.run);
    const flows = [...new Set(found.panels.flatMap(p => (p.series || []).map(e => e.flow).filter(f => f !== undefined)))];
    toggles.hidden = flows.length < 2;
    toggles.querySelectorAll("label").forEach(label => label.remove());
    for (const flow of flows) {
      const label = document.createElement("label"), box = document.createElement("input");
      box.type = "checkbox";
      box.checked = true;
      box.value = flow;
      box.addEventListener("change", () => setFlow(flow, box.checked));
      label.append(box, flow);
      toggles.append(label);
    }
    for (const panel of found.panels) overTime(place, { ...panel, phases: found.phases }, "inside");
    for (const d of found.density) {
      const sent = buffer(d.sent).reduce((a, b) => a + b, 0), lost = buffer(d.lost).reduce((a, b) => a + b, 0);
      const hint = `each column is ${d.column} s: median, and bands further from it; red: lost, ${lost} of ${sent}`;
      overTime(place, { title: `Density graph of ${d.probe}`, unit: "ms", hint, density: d, height: 230, phases: found.phases }, "inside");
    }
  };

  const pick = (id, options, current, change) => {
    const select = document.getElementById(id);
    if (!select) return;
    select.replaceChildren(...options.map(([value, text]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      option.selected = value === current;
      return option;
    }));
    select.onchange = () => change(Number(select.value));
  };
  const seedsOf = run => data.views.filter(v => v.run === run).map(v => [v.seed, `${data.repeats} ${v.seed}`]);
  recall();
  const each = [...(data.means.length ? [[ALL, "all: mean and band"]] : []), ...seeds.map(s => [s, `${data.repeats} ${s}`])];
  pick("seed", each, chosen.seed, value => { chosen.seed = value; drawCompared(); remember(); });
  const pickInside = () => pick("inside-seed", seedsOf(chosen.run), chosen.insideSeed, value => { chosen.insideSeed = value; drawInside(); });
  // A peer has only pings, drawn beside the first Run's.
  const opened = data.runs.map((r, i) => [i, r.name]).filter(([i]) => data.views.some(v => v.run === i && v.panels.length));
  pick("inside-run", opened, 0, value => {
    chosen.run = value;
    if (!seedsOf(value).some(([s]) => s === chosen.insideSeed)) chosen.insideSeed = seedsOf(value)[0][0];
    pickInside();
    drawInside();
  });
  pickInside();

  for (const box of document.querySelectorAll("input[data-run]")) {
    box.addEventListener("change", () => setRun(Number(box.dataset.run), box.checked));
  }

  drawCompared();
  drawInside();
  for (const cdf of data.cdfs) distribution(document.getElementById("cdfs"), cdf);

  // --------------------------------------------------------------------------------------------- screen and paper

  const all = () => [...charts, ...others];
  const resize = () => { for (const { u } of all()) if (u.width !== width()) u.setSize({ width: width(), height: u.height }); };
  new ResizeObserver(resize).observe(document.body);
  const repaint = () => { for (const { u } of all()) u.redraw(false); };
  dark.addEventListener("change", repaint);
  // Paper is white, narrower, and can't unfold anything.
  let folded = [];
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
    resize();
    repaint();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    for (const one of folded) one.open = false;
    resize();
    repaint();
  });
  root.classList.add("ready");
})();
