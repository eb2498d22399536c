"use strict";
// The page of the lab. It has one state: a scenario's text, the disciplines side by side, a link,
// seeds. Every change sends requests to the workers (worker.js), and the page draws their answers. The
// page itself neither parses nor simulates.
(() => {
  const $$ = id => document.getElementById(id);
  const facts = JSON.parse($$("facts").textContent);
  const VERSION = 1;
  const MOST_TEXT = 256 * 1024, MOST_LINK = 128 * 1024;
  const SILENT_MS = 8000;               // a worker that is silent for longer is ended
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  const state = { v: VERSION, text: "", qdiscs: [], link: null, seeds: 1, lesson: null };

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // ------------------------------------------------------------------------------------------- links

  // The state as text for a link: the version, then JSON, deflated, in base64 for URLs.
  const through = async (stream, bytes) =>
    new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
  const packed = async value => {
    const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(value)));
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return `${VERSION}=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  };
  const unpacked = async text => {
    const [, version, body] = /^(\d+)=([\w-]+)$/.exec(text) || [];
    if (!body) throw Error("this link holds no scenario: is it whole?");
    if (+version > VERSION) throw Error(`this link is from a newer lab (version ${version}); this page reads version ${VERSION}`);
    if (body.length > MOST_LINK) throw Error("this link is longer than the lab accepts");
    let bytes;
    try {
      const text_ = atob(body.replaceAll("-", "+").replaceAll("_", "/"));
      const reader = new Blob([Uint8Array.from(text_, c => c.charCodeAt(0))]).stream()
        .pipeThrough(new DecompressionStream("deflate-raw")).getReader();
      // A short link can unpack to endless text.
      const parts = [];
      for (let total = 0; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        total += value.length;
        if (total > 2 * MOST_TEXT) { reader.cancel(); throw RangeError("long"); }
        parts.push(value);
      }
      bytes = await new Blob(parts).text();
    } catch (error) {
      throw Error(error instanceof RangeError ? "the scenario in this link is longer than the lab accepts" : "this link is damaged");
    }
    let given;
    try { given = JSON.parse(bytes); } catch { throw Error("this link is damaged"); }
    return checked(given);
  };
  const checked = given => {
    const texts = list => Array.isArray(list) && list.length <= 8 && list.every(one => typeof one === "string" && one.length < 500);
    if (typeof given !== "object" || given === null || typeof given.text !== "string" || given.text.length > MOST_TEXT || !texts(given.qdiscs)) {
      throw Error("this link holds no scenario");
    }
    return {
      v: VERSION, text: given.text, qdiscs: given.qdiscs, link: typeof given.link === "string" ? given.link : null,
      seeds: [1, 5, 10, 20].includes(given.seeds) ? given.seeds : 1, lesson: Number.isInteger(given.lesson) ? given.lesson : null,
    };
  };

  // ----------------------------------------------------------------------------------------- workers

  // The inverse of `_digits` in __init__.py: five digits to the base 85 are four bytes.
  const bytesOf = text => {
    const padded = text + "|".repeat((5 - text.length % 5) % 5);
    const bytes = new DataView(new ArrayBuffer(padded.length / 5 * 4));
    for (let i = 0; i < padded.length; i += 5) {
      let number = 0;
      for (let k = i; k < i + 5; k++) {
        const code = padded.charCodeAt(k);
        number = number * 85 + (code === 125 ? 60 : code) - 40;
      }
      bytes.setUint32(i / 5 * 4, number);
    }
    return new Uint8Array(bytes.buffer, 0, bytes.byteLength - (padded.length - text.length));
  };

  let module_, ready;
  const source = URL.createObjectURL(new Blob([$$("worker").textContent], { type: "text/javascript" }));
  const start = async () => {
    const engine = bytesOf($$("engine").textContent);
    module_ = await reader.send({ what: "compile", engine }).answer;
  };

  // One thread. If it hangs or its engine fails, it is ended; the next request starts another.
  class Hand {
    constructor() { this.waiting = new Map(); this.next = 0; }
    begin() {
      this.worker = new Worker(source);
      this.worker.onmessage = ({ data }) => this.told(data);
      this.worker.onerror = event => this.end(event.message || "the worker failed");
      this.heard = performance.now();
      if (module_) this.send({ what: "begin", module: module_ });
      clearInterval(this.watch);
      this.watch = setInterval(() => {
        if (this.waiting.size && performance.now() - this.heard > SILENT_MS) {
          this.end(`the worker did not answer for ${SILENT_MS / 1000} s and was ended: the scenario is too large for a page. Run it in a terminal`);
        }
      }, 500);
    }
    send(message, progress) {
      if (!this.worker) this.begin();
      const id = ++this.next;
      if (!this.waiting.size) this.heard = performance.now();
      this.worker.postMessage({ ...message, id });
      const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, progress }));
      return { id, answer };
    }
    told({ id, answer, broken, progress }) {
      this.heard = performance.now();
      const waits = this.waiting.get(id);
      if (!waits) return;
      if (progress !== undefined) { waits.progress?.(progress); return; }
      this.waiting.delete(id);
      if (broken !== undefined) {
        waits.reject(Error(broken));
        this.end(broken);
      } else waits.resolve(answer);
    }
    stop(id) { this.worker?.postMessage({ what: "stop", stop: id }); }
    end(why) {
      this.worker?.terminate();
      this.worker = null;
      clearInterval(this.watch);
      for (const waits of this.waiting.values()) waits.reject(Error(why));
      this.waiting.clear();
    }
  }
  const reader = new Hand(), filmer = new Hand();
  const hands = Array.from({ length: Math.max(1, Math.min(4, (navigator.hardwareConcurrency || 2))) }, () => new Hand());
  const ask = async request => (await ready, reader.send({ what: "ask", request }).answer);

  // ------------------------------------------------------------------------------------------ values

  const BIG = { bit: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]], ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]] };
  const short = (value, digits = 3) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString("en").replaceAll(",", " ");
    return String(+value.toPrecision(digits));
  };
  const withUnit = (value, unit) => {
    const scale = unit === "bit/s" ? BIG.bit : unit === "ns" ? BIG.ns : unit === "bytes" ? [[1e6, "MB"], [1e3, "kB"], [1, "bytes"]] : null;
    if (!scale) return unit ? `${short(value)} ${unit}` : short(value);
    const [by, word] = scale.find(([least]) => value >= least) || scale.at(-1);
    return `${short(value / by)} ${word}`;
  };
  const numbersOf = column => column instanceof BigUint64Array || column instanceof BigInt64Array
    ? Float64Array.from(column, Number) : column;
  const colourOf = index => {
    const text = state.qdiscs[index];
    const kind = (text || shownRuns[index]?.qdisc || "").split(" ")[0];
    const same = state.qdiscs.slice(0, index).some(other => other.split(" ")[0] === kind);
    return (!same && facts.colours[kind]) || facts.flows[index % facts.flows.length];
  };
  const flowColour = group => facts.flows[group % facts.flows.length];

  // ------------------------------------------------------------------------------------ the scenario

  let read = null;                      // the core's answer about the text
  let round = 0;                        // of reading: an older answer is not shown

  const problems = (list, kind) => list.map(problem => {
    const box = element("div", { className: `problem ${kind}` });
    if (problem.line) {
      const go = element("button", { type: "button", textContent: `line ${problem.line}` });
      go.onclick = () => caret(problem.line, problem.column);
      box.append(go);
    }
    box.append(element("strong", { textContent: problem.key ? `${problem.key}: ${problem.message}` : problem.message }));
    if (problem.source && problem.column) {
      const lead = problem.source.slice(0, problem.column - 1).replace(/[^\t]/g, " ");
      box.append(element("pre", { textContent: `${problem.source}\n${lead}^` }));
    }
    if (problem.hint) box.append(element("div", { className: "hint", textContent: problem.hint }));
    return box;
  });
  const caret = (line, column) => {
    const area = $$("text");
    const at = area.value.split("\n").slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
    area.focus();
    area.setSelectionRange(at, at + 1);
    area.scrollTop = Math.max(0, (line - 6) * parseFloat(getComputedStyle(area).lineHeight));
  };

  // Reads the text, shows its problems or its sliders, and runs it.
  const changed = async ({ turned = null } = {}) => {
    const mine = ++round;
    const area = $$("text");
    if (area.value !== state.text) area.value = state.text;
    let found = turned;
    try { found ??= await ask({ ask: "read", text: state.text }); } catch (error) { fail(error.message); return; }
    if (mine !== round) return;
    const wrong = found.problems || (found.refused ? [{ message: found.refused }] : []);
    const lacking = found.lacking || [];
    area.setAttribute("aria-invalid", String(wrong.length > 0));
    $$("problems").replaceChildren(...problems(wrong, ""), ...problems(lacking, ""), ...problems(found.notes || [], "note"));
    if (wrong.length) { say("the last results are of the text before", false); return; }
    read = found;
    if (!turned) knobs();
    links();
    commands();
    remember();
    // The disciplines side by side replace a missing one.
    if (lacking.length && !state.qdiscs.length) { say("nothing was run", true); return; }
    await simulate();
  };

  // Sliders -----------------------------------------------------------------------------------------

  const STEPS = 1000;
  const toValue = (knob, at) => {
    const { least, most, whole } = knob;
    const x = at / STEPS;
    let value = least > 0 && most / least > 20 ? least * (most / least) ** x : least + (most - least) * x;
    if (whole && knob.unit !== "ns" && knob.unit !== "bit/s" && knob.unit !== "bytes") value = Math.round(value);
    return value > 99 || !whole ? +value.toPrecision(2) : value;
  };
  const toAt = ({ least, most, value }) => {
    const x = least > 0 && most / least > 20 ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least || 1);
    return Math.round(STEPS * x);
  };
  const slider = (knob, turn) => {
    const id = `knob-${knob.key.replace(/[^\w]/g, "-")}`;
    const input = element("input", { type: "range", id, min: 0, max: STEPS, value: toAt(knob) });
    const output = element("output", { htmlFor: id, textContent: withUnit(knob.value, knob.unit) });
    input.setAttribute("aria-valuetext", output.textContent);
    input.dataset.key = knob.key;
    input.oninput = () => {
      const value = toValue(knob, +input.value);
      output.textContent = withUnit(value, knob.unit);
      input.setAttribute("aria-valuetext", output.textContent);
      turnedAt ??= performance.now();
      turn(value);
    };
    const label = element("label", { htmlFor: id, textContent: knob.name }, element("small", { textContent: knob.of }));
    return element("div", { className: "knob" }, label, input, output);
  };
  // A change waits for the one before it. Of several that wait only the last is made.
  const latest = act => {
    let busy = false, next = null;
    return async (...given) => {
      next = given;
      if (busy) return;
      busy = true;
      while (next) {
        const now = next;
        next = null;
        await act(...now);
      }
      busy = false;
    };
  };
  const turn = latest(async (key, value) => {
    const { text, read: turned, refused } = await ask({ ask: "turn", text: state.text, key, value });
    if (refused) { say(refused, true); return; }
    state.text = text;
    await changed({ turned });
  });
  const turnWord = latest(async (index, word, value) => {
    const { text, refused } = await ask({ ask: "turn_word", qdisc: state.qdiscs[index], word, value });
    if (refused) { say(refused, true); return; }
    state.qdiscs[index] = text;
    const field = document.querySelectorAll(".candidate input")[index];
    if (field) field.value = text;
    remember();
    commands();
    await simulate();
  });
  const knobs = async () => {
    const rows = read.knobs
      .filter(knob => !(state.qdiscs.length && /qdisc#/.test(knob.key)))
      .map(knob => slider(knob, value => turn(knob.key, value)));
    for (const [index, text] of state.qdiscs.entries()) {
      const words = await ask({ ask: "words", qdisc: text });
      for (const knob of words.knobs || []) {
        if (["limit", "target", "interval", "bandwidth", "rtt", "tupdate", "min", "max", "probability", "quantum", "maxrate"].includes(knob.name)) {
          rows.push(slider({ ...knob, key: `${index}:${knob.key}` }, value => turnWord(index, knob.name, value)));
        }
      }
    }
    $$("knobs").replaceChildren(...rows);
  };

  // Side by side ------------------------------------------------------------------------------------

  const candidates = () => {
    const form = $$("candidates");
    const boxes = state.qdiscs.map((text, index) => {
      const input = element("input", { type: "text", value: text, size: Math.max(8, text.length), spellcheck: false });
      input.setAttribute("aria-label", `Discipline ${index + 1}`);
      input.onchange = () => setCandidate(index, input.value.trim());
      const gone = element("button", { type: "button", textContent: "×", title: `without ${text}` });
      gone.setAttribute("aria-label", `without ${text}`);
      gone.onclick = () => { state.qdiscs.splice(index, 1); candidates(); changed(); };
      const swatch = element("span", { className: "swatch" });
      swatch.style.background = colourOf(index);
      return element("span", { className: "candidate" }, swatch, input, gone);
    });
    const add = element("select");
    add.setAttribute("aria-label", "Add a discipline");
    add.append(element("option", { value: "", textContent: state.qdiscs.length ? "add a discipline" : "compare disciplines" }),
      ...facts.qdiscs.map(name => element("option", { textContent: name })));
    add.onchange = () => { state.qdiscs.push(add.value); candidates(); changed(); };
    form.replaceChildren(...boxes, ...(state.qdiscs.length < 6 ? [add] : []));
  };
  const setCandidate = async (index, text) => {
    const words = await ask({ ask: "words", qdisc: text });
    const box = document.querySelectorAll(".candidate")[index];
    box.classList.toggle("wrong", Boolean(words.refused || words.lacking));
    if (words.refused) { say(`${words.refused}${words.hint ? `; ${words.hint}` : ""}`, true); return; }
    if (words.lacking) { say(`${words.lacking.message}; ${words.lacking.hint}`, true); return; }
    state.qdiscs[index] = words.text;
    candidates();
    changed();
  };
  $$("candidates").onsubmit = event => event.preventDefault();

  const links = () => {
    const names = read.links.filter(link => link.queues).map(link => link.name);
    if (!names.includes(state.link)) state.link = names.includes("up") ? "up" : names[0] || null;
    $$("link").replaceChildren(...names.map(name => element("option", { textContent: name, selected: name === state.link })));
  };

  // ------------------------------------------------------------------------------------- simulating

  let shownRuns = [];                   // the answer of each run
  let running = [];                     // {hand, id} of those under way
  let attempt = 0;
  let turnedAt = null;                  // the time of the slider's move whose result is not drawn yet

  const say = (text, wrong) => {
    $$("state").textContent = text;
    $$("state").classList.toggle("wrong", Boolean(wrong));
  };
  const fail = message => { idle(); say(message, true); };
  const idle = () => { $$("progress").hidden = $$("stop").hidden = true; };

  // The runs side by side: disciplines, or the points of the scenario's own sweep.
  const contenders = () => {
    const at = read.both_ways ? null : state.link;
    if (state.qdiscs.length) return state.qdiscs.map(qdisc => ({ label: qdisc, variant: 0, qdisc, link: at }));
    return read.variants.map((label, variant) => ({ label: label || read.links.find(link => link.name === state.link)?.qdisc || "as written", variant }));
  };
  const request = ({ variant, qdisc, link }, seed, fresh, packets = false) => {
    const asked = { ask: "begin", text: state.text, variant, seed, packets, fresh };
    if (qdisc) Object.assign(asked, { qdisc }, link ? { link } : {});
    return asked;
  };
  const stopAll = () => { for (const { hand, id } of running) hand.stop(id); running = []; };
  $$("stop").onclick = () => { ++attempt; stopAll(); idle(); say("stopped", false); };

  const simulate = async () => {
    const mine = ++attempt;
    const began = performance.now();
    stopAll();
    await ready;
    const all = contenders();
    const first = read.seeds[0];
    const parts = new Map();
    let shown = false;
    const progress = (index, seed, fraction) => {
      if (mine !== attempt) return;
      parts.set(index, (seed + fraction) / state.seeds);
      const done = [...parts.values()].reduce((sum, part) => sum + part, 0) / all.length;
      const spent = performance.now() - began;
      if (spent < 250 && !shown) return;
      shown = true;
      $$("progress").hidden = $$("stop").hidden = false;
      $$("progress").value = done;
      const left = done > 0.02 ? `, about ${short((spent / done - spent) / 1000, 2)} s left` : "";
      say(`running: ${Math.round(100 * done)} %${left}`, false);
    };
    const one = async (contender, index) => {
      const hand = hands[index % hands.length];
      let last = null;
      for (let seed = 0; seed < state.seeds; seed++) {
        if (mine !== attempt) return null;
        const sent = hand.send({ what: "run", request: request(contender, first + seed, seed === 0) }, fraction => progress(index, seed, fraction));
        running.push({ hand, id: sent.id });
        const answer = await sent.answer;
        if (answer.stopped) return null;
        if (answer.about.problems || answer.about.refused) return { refused: answer.about };
        progress(index, seed, 1);
        last = seed === 0 ? answer : { ...last, numbers: answer.numbers };
      }
      return { ...last, contender, label: contender.label };
    };
    // A worker with several seeds runs them one after the other, since it keeps the numbers of one run.
    const queues = hands.map(() => Promise.resolve());
    const jobs = all.map((contender, index) => {
      const place = index % hands.length;
      const job = queues[place].then(() => one(contender, index));
      queues[place] = job.catch(() => null);
      return job;
    });
    let found;
    try { found = await Promise.all(jobs); } catch (error) { if (mine === attempt) fail(error.message); return; }
    if (mine !== attempt || found.some(run => run === null)) return;
    const refused = found.find(run => run.refused)?.refused;
    if (refused) {
      const told = refused.problems?.[0] || { message: refused.refused };
      fail(`${told.message}${told.hint ? `; ${told.hint}` : ""}`);
      return;
    }
    idle();
    shownRuns = found.map(run => ({ ...run, qdisc: run.about.links.find(link => link.name === state.link)?.qdisc }));
    const left = read.more_variants && !state.qdiscs.length ? `; ${read.more_variants} more points of the sweep are not shown` : "";
    say(`${all.length} × ${withUnit(read.duration_ns, "ns")}, ${state.seeds === 1 ? `seed ${first}: one seed is a demo` : `${state.seeds} seeds: mean ± half the 95 % interval`}; the first ${withUnit(read.warmup_ns, "ns")} are left out of the numbers${left}`, false);
    draw();
    // Measures the time from the slider's move to the drawn picture.
    const moved = turnedAt ?? began;
    turnedAt = null;
    requestAnimationFrame(() => {
      performance.measure("lab-shown", { start: moved, end: performance.now() });
      document.documentElement.dataset.shown = String(mine);
    });
    lessonChecked();
    filmed = null;
  };

  // ----------------------------------------------------------------------------------------- numbers

  // Rows of the table: name, unit, better direction (-1 less, 1 more), and number.
  const rowsOf = run => {
    const { numbers } = run;
    const queue = numbers.queues.find(one => one.link === state.link);
    const rows = [];
    const row = (name, unit, better, value, scale = 1) => {
      if (value && value.mean !== null && value.mean !== undefined) rows.push({ name, unit, better, mean: value.mean * scale, ci: value.ci95 === null ? null : value.ci95 * scale });
    };
    for (const probe of numbers.probes) {
      row(`${probe.name} RTT, median`, "ms", -1, probe.rtt_ms.p50);
      row(`${probe.name} RTT, 95th percentile`, "ms", -1, probe.rtt_ms.p95);
      if (probe.loss_rate.mean > 0) row(`${probe.name} lost`, "%", -1, probe.loss_rate, 100);
    }
    if (queue) {
      row(`queue ${queue.link}: wait, mean`, "ms", -1, queue.sojourn_ms.mean);
      row(`queue ${queue.link}: wait, 99th percentile`, "ms", -1, queue.sojourn_ms.p99);
      row(`queue ${queue.link}: used`, "%", 1, queue.utilisation, 100);
      row(`queue ${queue.link}: dropped`, "%", 0, queue.drop_rate, 100);
      if (queue.marked_packets.mean > 0) row(`queue ${queue.link}: marked`, "packets", 0, queue.marked_packets);
    }
    for (const group of numbers.groups) {
      row(`${group.name}: goodput`, "Mbit/s", 1, group.goodput_mbps);
      if (group.transfers) row(`${group.name}: completion, 95th percentile`, "ms", -1, group.transfers.completion_ms.p95);
      if (group.late_rate) row(`${group.name}: late or lost`, "%", -1, group.late_rate, 100);
      if (group.mos) row(`${group.name}: call quality (MOS)`, "", 1, group.mos);
    }
    if (numbers.jain.mean !== null && numbers.jain.mean < 0.9999) row("fairness (Jain)", "", 1, numbers.jain);
    return rows;
  };
  const table = () => {
    const all = shownRuns.map(rowsOf);
    const names = [...new Set(all.flat().map(row => row.name))];
    const head = element("tr", {}, element("th", { scope: "col", textContent: "" }),
      ...shownRuns.map(run => element("th", { scope: "col", textContent: run.label })));
    const body = names.map(name => {
      const each = all.map(rows => rows.find(row => row.name === name));
      const known = each.find(Boolean);
      const means = each.filter(Boolean).map(row => row.mean);
      const best = known.better && means.length > 1 ? (known.better < 0 ? Math.min(...means) : Math.max(...means)) : null;
      const cells = each.map((row, index) => {
        if (!row) return element("td", { textContent: "–" });
        const cell = element("td", { textContent: `${short(row.mean)}${known.unit ? ` ${known.unit}` : ""}` });
        if (row.ci !== null && state.seeds > 1) cell.append(element("small", { textContent: ` ± ${short(row.ci, 2)}` }));
        const base = each[0];
        if (index && base && base.mean && known.better) {
          const change = row.mean / base.mean - 1;
          if (Math.abs(change) >= 0.02) {
            const good = Math.sign(change) === known.better;
            const shown = change > 3 ? `× ${short(row.mean / base.mean, 2)}` : `${change > 0 ? "+" : "−"}${Math.round(100 * Math.abs(change))} %`;
            cell.append(" ", element("small", { className: good ? "better" : "worse", textContent: shown }));
          }
        }
        if (best !== null && row.mean === best && Math.max(...means) > 1.02 * Math.min(...means)) cell.className = "best";
        return cell;
      });
      return element("tr", {}, element("th", { scope: "row", textContent: name }), ...cells);
    });
    $$("numbers").replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
    verdict(all);
  };
  // The gains and the cost of the run with the least delay, compared with the first run.
  const verdict = all => {
    $$("verdict").textContent = "";
    if (all.length < 2) return;
    const delay = all[0].find(row => row.better < 0 && /95th|99th/.test(row.name) && row.unit === "ms");
    if (!delay) return;
    const of = index => all[index].find(row => row.name === delay.name)?.mean ?? Infinity;
    const best = all.map((_, index) => index).reduce((a, b) => (of(b) < of(a) ? b : a));
    const words = index => `${short(of(index))} ms`;
    const paid = all[best].filter(row => / goodput$/.test(row.name)).map(row => {
      const before = all[0].find(other => other.name === row.name);
      return `${row.name.replace(": goodput", "")} ${short(row.mean)} for ${short(before?.mean)} Mbit/s`;
    });
    $$("verdict").textContent = best === 0
      ? `None is better than ${shownRuns[0].label}: ${delay.name} ${words(0)}.`
      : `${shownRuns[best].label} in place of ${shownRuns[0].label}: ${delay.name} ${words(best)} in place of ${words(0)}; ${paid.join(", ")}.`;
  };

  // ------------------------------------------------------------------------------------------ charts

  let charts = [];
  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    return name => style.getPropertyValue(`--${name}`).trim();
  };
  const HEIGHT = 150;
  // A chart is made anew if its names, lines or colours change; otherwise it gets new numbers.
  // The page's width and colours are read once, before the page is changed, because a read after a
  // change makes the browser lay out the page again.
  let wanted = [];
  const chart = (title, unit, series, { log = false, steps = false } = {}) => {
    const tables_ = series.map(({ x, y }) => [Array.from(x), Array.from(y, v => (Number.isNaN(v) || (log && v <= 0) ? null : v))]);
    const data = tables_.length ? uPlot.join(tables_, tables_.map(t => t.map(() => 2))) : [[0], []];
    wanted.push({ title, unit, data, looks: series.map(({ label, colour, dash }) => ({ label, colour, dash })), log, steps });
  };
  const showCharts = () => {
    const css = theme();
    const ink = { muted: css("muted"), grid: css("grid") };
    const keyed = wanted.map(one => [JSON.stringify([ink, one.title, one.unit, one.looks, one.log, one.steps]), one]);
    if (keyed.length === charts.length && keyed.every(([key], i) => key === charts[i].key)) {
      keyed.forEach(([, { data }], i) => charts[i].u.setData(data));
    } else {
      const width = Math.max(260, $$("charts").clientWidth);
      for (const { u } of charts) u.destroy();
      $$("charts").replaceChildren();
      charts = keyed.map(([key, one], i) => ({ key, u: made(one, width, ink, i === 3) }));
    }
    wanted = [];
  };
  const made = ({ title, unit, data, looks, log, steps }, width, { muted, grid }, last) => {
    const axis = { stroke: muted, grid: { stroke: grid, width: 0.6 }, ticks: { stroke: grid, width: 0.6 }, font: "11px system-ui" };
    const figure = element("figure", {}, element("figcaption", { textContent: title }, element("small", { textContent: ` ${unit}${log ? ", log" : ""}` })));
    const holder = element("div");
    figure.append(holder);
    $$("charts").append(figure);
    const value = (_, v, series, at) => (at === null || at === undefined ? "" : short(v));
    const u = new uPlot({
      width, height: HEIGHT, cursor: { sync: { key: "lab" } }, legend: { live: true },
      scales: { x: { time: false, range: () => [0, read.duration_ns / 1e9] }, y: log ? { distr: 3 } : { range: (_, low, high) => [Math.min(0, low), high * 1.05 || 1] } },
      axes: [{ ...axis, label: last ? "time s" : undefined, values: (_, ticks) => ticks.map(t => `${t} s`) }, { ...axis, size: 56, values: (_, ticks) => ticks.map(t => (t === null ? "" : short(t, 2))) }],
      series: [{ label: "time", value: (_, v) => (v === null || v === undefined ? "" : `${short(v, 4)} s`) },
        ...looks.map(({ label, colour, dash }) => ({ label, stroke: colour, width: 1.4, dash, value, spanGaps: false, points: { show: false }, paths: steps ? uPlot.paths.stepped({ align: 1 }) : undefined }))],
    }, data, holder);
    u.over.addEventListener("click", () => { if (u.cursor.left >= 0) { setAt(u.posToVal(u.cursor.left, "x")); } });
    return u;
  };
  const linkIndex = run => run.about.links.findIndex(link => link.name === state.link);
  const rowsWhere = (column, wanted) => {
    const places = [];
    for (let i = 0; i < column.length; i++) if (Number(column[i]) === wanted) places.push(i);
    return places;
  };
  const pick = (column, places, scale = 1) => Float64Array.from(places, i => {
    const value = Number(column[i]);
    return value === -1 ? NaN : value * scale;
  });
  const MOST_LINES = 8;
  const draw = () => {
    const many = shownRuns.length > 1;
    const series = make => shownRuns.flatMap((run, index) => make(run, index).map(one => ({ colour: colourOf(index), label: run.label, ...one })));
    // The longest wait of each interval; a mean would hide it.
    chart(`How long packets wait in queue ${state.link}`, "ms, the largest of each interval", series(run => {
      const queue = run.tables.queue;
      const places = rowsWhere(queue.link, linkIndex(run));
      return [{ x: pick(queue.t_ns, places, 1e-9), y: pick(queue.sojourn_max_ns, places, 1e-6) }];
    }));
    const pings = series(run => {
      const { probe } = run.tables;
      const flows = [...new Set(probe.probe)];
      return flows.map(flow => {
        const places = rowsWhere(probe.probe, Number(flow));
        return { x: pick(probe.t_ns, places, 1e-9), y: pick(probe.rtt_ns, places, 1e-6), label: `${many ? `${run.label}, ` : ""}${run.about.flows[flow].name}` };
      });
    });
    if (pings.length) chart("Ping", "ms", pings);
    const shown = shownRuns[Math.min(+$$("shown").value || 0, shownRuns.length - 1)];
    const { flow } = shown.tables;
    const tcp = [...new Set(flow.flow)].map(Number).filter(one => shown.about.flows[one].congestion).slice(0, MOST_LINES);
    if (tcp.length) {
      chart(`Congestion windows${many ? ` with ${shown.label}` : ""}`, "kB", tcp.map(one => {
        const places = rowsWhere(flow.flow, one);
        return { x: pick(flow.t_ns, places, 1e-9), y: pick(flow.cwnd_bytes, places, 1e-3), colour: flowColour(one), label: shown.about.flows[one].name };
      }), { steps: true });
    }
    chart(`Dropped and marked at ${state.link}`, "packets since the start", series(run => {
      const { drops } = run.tables;
      const places = rowsWhere(drops.link, linkIndex(run));
      const x = [0, ...pick(drops.t_ns, places, 1e-9), read.duration_ns / 1e9];
      return [{ x, y: x.map((_, i) => Math.min(i, places.length)) }];
    }), { steps: true });
    const options = shownRuns.map((run, index) => element("option", { value: index, textContent: run.label, selected: run === shown }));
    $$("shown").replaceChildren(...options);
    showCharts();
    table();
  };
  const resized = new ResizeObserver(() => {
    const width = Math.max(260, $$("charts").clientWidth);
    for (const { u } of charts) if (u.width !== width) u.setSize({ width, height: HEIGHT });
    paint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (shownRuns.length) draw(); });

  // -------------------------------------------------------------------------------------------- film

  const WINDOW = 1.0;                   // seconds that are fetched at once
  let filmed = null, film = { at: 0, playing: false, last: 0 }, fetching = false;
  const filmRun = () => shownRuns[Math.min(+$$("shown").value || 0, shownRuns.length - 1)];
  const setAt = seconds => {
    film.at = Math.max(0, Math.min(seconds, read ? read.duration_ns / 1e9 : 0));
    $$("at").value = String(read ? Math.round(1000 * film.at / (read.duration_ns / 1e9)) : 0);
    $$("at-text").textContent = `${film.at.toFixed(4)} s`;
    paint();
  };
  const fetchFilm = async () => {
    if (fetching) return;
    fetching = true;
    const run = filmRun();
    const from = Math.max(0, film.at - 0.1), until = film.at + WINDOW;
    try {
      $$("film-state").textContent = "running it again, packet by packet";
      const { answer } = filmer.send({
        what: "run", request: request(run.contender, read.seeds[0], true, true),
        film: { ask: "film", from_ns: Math.round(from * 1e9), until_ns: Math.round(until * 1e9) },
      });
      const found = await answer;
      const { packets, drops } = found.tables;
      const link = linkIndex(run);
      const leave = rowsWhere(packets.link, link), fall = rowsWhere(drops.link, link);
      filmed = {
        run, from, until, rate: found.about.links[link].rate,
        out: pick(packets.t_ns, leave, 1e-9), wait: pick(packets.sojourn_ns, leave, 1e-9),
        flow: leave.map(i => Number(packets.flow[i])), bytes: leave.map(i => Number(packets.bytes[i])),
        fell: pick(drops.t_ns, fall, 1e-9), fellFlow: fall.map(i => Number(drops.flow[i])),
        cause: fall.map(i => found.about.causes[Number(drops.cause[i])]), marked: fall.map(i => Number(drops.marked[i]) === 1),
      };
      $$("film-state").textContent = "";
    } catch (error) {
      film.playing = false;
      $$("film-state").textContent = error.message;
    }
    fetching = false;
    paint();
  };
  const within = () => filmed && filmed.run === filmRun() && film.at >= filmed.from && film.at <= filmed.until;
  const paint = () => {
    const canvas = $$("film");
    const ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    if (canvas.width !== Math.round(width * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
    const g = canvas.getContext("2d"), css = theme();
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "12px system-ui";
    g.fillStyle = css("muted");
    if (!shownRuns.length) return;
    if (!within()) {
      g.fillText(film.playing || fetching ? "one moment" : "press Play, or choose a time", 12, 24);
      return;
    }
    const { at } = film;
    const { out, wait, flow, bytes, fell, fellFlow, marked, cause, run } = filmed;
    const waiting = [];
    for (let i = 0; i < out.length; i++) if (out[i] > at && out[i] - wait[i] <= at) waiting.push(i);
    // The head of the queue is at the right; a full line continues in the line above.
    const right = width - 70, left = 12, block = Math.max(4, Math.min(18, (right - left) * 3 / Math.max(waiting.length, 30)));
    const perLine = Math.max(1, Math.floor((right - left) / block));
    const base = height - 62;
    waiting.forEach((i, place) => {
      const line = Math.floor(place / perLine), x = right - (place % perLine + 1) * block, y = base - line * (block + 3) - block;
      if (y < 40) return;
      const size = Math.max(0.35, Math.min(1, bytes[i] / 1514));
      g.fillStyle = flowColour(flow[i]);
      g.fillRect(x + 1, y + block * (1 - size), block - 2, block * size);
    });
    g.strokeStyle = css("muted");
    g.strokeRect(left - 4, 36, right - left + 6, base - 34);
    // The packet on the wire, and packets that have just left.
    for (let i = 0; i < out.length; i++) {
      const age = at - out[i];
      if (age < 0 || age > 0.01) continue;
      g.globalAlpha = 1 - age / 0.01;
      g.fillStyle = flowColour(flow[i]);
      g.fillRect(right + 8 + 45 * age / 0.01, base - 14, 12, 12);
    }
    g.globalAlpha = 1;
    for (let i = 0; i < fell.length; i++) {
      const age = at - fell[i];
      if (age < 0 || age > 0.03) continue;
      g.globalAlpha = 1 - age / 0.03;
      const head = cause[i] === "target" || cause[i] === "ce_threshold" || cause[i] === "blue";
      const x = head ? right - 16 : left + 4;
      if (marked[i]) {
        g.strokeStyle = flowColour(fellFlow[i]);
        g.beginPath();
        g.arc(x + 5, base - 24 - 60 * age / 0.03, 5, 0, 2 * Math.PI);
        g.stroke();
        continue;
      }
      g.fillStyle = css("lost");
      g.fillRect(x, base + 6 + 40 * age / 0.03, 10, 10);
    }
    g.globalAlpha = 1;
    g.fillStyle = css("ink");
    const queued = waiting.length ? Math.max(...waiting.map(i => at - (out[i] - wait[i]))) : 0;
    g.fillText(`${run.label}: ${waiting.length} packets in queue ${state.link}; the oldest has waited ${withUnit(queued * 1e9, "ns")}`, 12, 18);
    g.fillStyle = css("muted");
    const names = [...new Map(waiting.map(i => [flow[i], run.about.flows[flow[i]].name])).entries()].slice(0, 8);
    let x = 12;
    for (const [number, name] of names) {
      g.fillStyle = flowColour(number);
      g.fillRect(x, height - 16, 9, 9);
      g.fillStyle = css("muted");
      g.fillText(name, x + 13, height - 7);
      x += g.measureText(name).width + 30;
      if (x > width - 60) break;
    }
  };
  const tick = now => {
    if (!film.playing) return;
    if (within() && !fetching) setAt(film.at + Math.min(0.1, (now - film.last) / 1000) * +$$("speed").value);
    else fetchFilm();
    film.last = now;
    if (read && film.at >= read.duration_ns / 1e9) playing(false);
    requestAnimationFrame(tick);
  };
  const playing = on => {
    film.playing = on;
    $$("play").textContent = on ? "Pause" : "Play";
    if (on) { film.last = performance.now(); requestAnimationFrame(tick); }
  };
  $$("play").onclick = () => playing(!film.playing);
  $$("at").oninput = () => { setAt(+$$("at").value / 1000 * read.duration_ns / 1e9); if (!within()) latestFilm(); };
  const latestFilm = latest(fetchFilm);
  if (reduced.matches) $$("speed").value = "0.001";

  // --------------------------------------------------------------------------------------- lessons

  const lookup = ({ run, of, name, number }) => {
    const numbers = shownRuns[run || 0]?.numbers;
    if (!numbers) return undefined;
    const from = of ? numbers[of].find(one => one.name === name || one.link === name) : numbers;
    return number.split(".").reduce((value, key) => value?.[key], from)?.mean;
  };
  const holds = check => {
    const value = lookup(check);
    if (value === undefined || value === null) return false;
    return check.below !== undefined ? value < check.below : value > check.above;
  };
  const lessonChecked = () => {
    if (state.lesson === null) return;
    const lesson = facts.lessons[state.lesson];
    if (!lesson) return;
    const rows = lesson.checks.map(check => {
      const value = lookup(check), met = holds(check);
      const now = value === undefined || value === null ? "–" : `${short(value * check.scale)} ${check.unit}`;
      return element("li", { className: met ? "done" : "", textContent: `${met ? "✓" : "·"} ${check.says}: now ${now}` });
    });
    const all = lesson.checks.every(holds);
    const box = $$("lesson");
    box.querySelector("ul").replaceChildren(...rows);
    box.querySelector(".answer").hidden = !all;
    box.dataset.done = String(all);
  };
  const lessonShown = () => {
    const box = $$("lesson");
    const lesson = state.lesson === null ? null : facts.lessons[state.lesson];
    box.hidden = !lesson;
    if (!lesson) return;
    const end = element("button", { type: "button", textContent: "Leave" });
    end.onclick = () => { state.lesson = null; lessonShown(); remember(); };
    const show = element("button", { type: "button", textContent: "Show me" });
    show.onclick = () => { solve(lesson); };
    const next = element("button", { type: "button", textContent: "Next lesson" });
    next.onclick = () => begin((state.lesson + 1) % facts.lessons.length);
    box.className = "lesson-box";
    box.replaceChildren(
      element("h2", { textContent: `${state.lesson + 1}. ${lesson.title}` }),
      element("p", { textContent: lesson.question }), element("p", {}, element("strong", { textContent: "Do: " }), lesson.task),
      element("ul"), element("p", { className: "answer", hidden: true, textContent: lesson.answer }),
      element("p", { className: "buttons" }, show, next, end));
  };
  const solve = lesson => {
    for (const [old, new_] of lesson.solution.text || []) state.text = state.text.replace(old, new_);
    if (lesson.solution.qdiscs) state.qdiscs = [...lesson.solution.qdiscs];
    candidates();
    changed();
  };
  const begin = index => {
    const lesson = facts.lessons[index];
    Object.assign(state, { text: lesson.text, qdiscs: [...lesson.qdiscs], link: lesson.link || null, lesson: index, seeds: 1 });
    $$("lessons").open = false;
    lessonShown();
    all();
  };
  $$("lesson-list").replaceChildren(...facts.lessons.map((lesson, index) => {
    const button = element("button", { type: "button", textContent: lesson.title });
    button.onclick = () => begin(index);
    return element("li", {}, button);
  }));

  // -------------------------------------------------------------------------- out of the page, and in

  let remembering;
  const remember = () => {
    clearTimeout(remembering);
    remembering = setTimeout(async () => {
      const text = await packed(state);
      try { history.replaceState(null, "", `#${text}`); } catch { /* a page from disk in a strict browser */ }
    }, 250);
  };
  const commands = () => {
    const quoted = state.qdiscs.map(text => (/^[\w-]+$/.test(text) ? text : `'${text.replaceAll("'", "")}'`));
    const link = state.qdiscs.length && !read.both_ways ? ` --link ${state.link}` : "";
    const seeds = ` --seeds ${Math.max(5, state.seeds)}`;
    $$("commands").textContent = state.qdiscs.length
      ? `sojourn compare scenario.toml ${quoted.join(" ")}${link}${seeds}` : `sojourn run scenario.toml${seeds} -o run`;
  };
  $$("copy").onclick = async () => {
    const url = `${location.href.split("#")[0]}#${await packed(state)}`;
    try { await navigator.clipboard.writeText(url); say("the link is in the clipboard; it contains this whole state", false); }
    catch { location.hash = await packed(state); say("the address of this page is the link", false); }
  };
  $$("save").onclick = () => {
    const url = URL.createObjectURL(new Blob([state.text], { type: "text/plain" }));
    element("a", { href: url, download: "scenario.toml" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  $$("examples").append(element("option", { value: "", textContent: "choose" }), ...Object.keys(facts.examples).map(name => element("option", { textContent: name })));
  $$("examples").onchange = () => {
    const text = facts.examples[$$("examples").value];
    if (!text) return;
    Object.assign(state, { text, qdiscs: [], link: null, lesson: null });
    lessonShown();
    all();
  };
  let typing;
  $$("text").oninput = () => {
    state.text = $$("text").value;
    clearTimeout(typing);
    typing = setTimeout(changed, 150);
  };
  $$("link").onchange = () => { state.link = $$("link").value; filmed = null; (read.both_ways ? (draw(), remember()) : changed()); };
  $$("shown").onchange = () => { draw(); filmed = null; paint(); };
  $$("seeds").onchange = () => { state.seeds = +$$("seeds").value; remember(); commands(); simulate(); };

  // Shows a whole state, and runs it.
  const all = async () => {
    candidates();
    $$("seeds").value = String(state.seeds);
    await changed();
    candidates();
    if (read) setAt(Math.min(film.at || 0.3 * read.duration_ns / 1e9, read.duration_ns / 1e9));
  };
  const open = async text => {
    const given = JSON.parse($$("state-given").textContent);
    Object.assign(state, given);
    if (text) {
      try { Object.assign(state, await unpacked(text)); } catch (error) {
        await all();
        fail(`${error.message}. This is the lab's own scenario.`);
        return;
      }
    }
    lessonShown();
    await all();
  };
  addEventListener("hashchange", async () => {
    const text = location.hash.slice(1);
    if (text && text !== await packed(state)) open(text);
  });
  if (typeof WebAssembly === "undefined" || typeof CompressionStream === "undefined") {
    say("this browser is too old for the lab: it needs WebAssembly and CompressionStream (2023 and after)", true);
    return;
  }
  ready = start();
  ready.then(() => resized.observe($$("charts")), error => fail(`the engine can't be started here: ${error.message}`));
  open(location.hash.slice(1));
})();
