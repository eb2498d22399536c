"use strict";
// The engine (crates/lab) in a thread of its own. Each message is one request and has one answer. A
// run also reports its progress, and ends early when it receives a stop.
const SLICE = 60000;                    // events between two checks for new messages
const TELL_MS = 60;
let engine, asked = Promise.resolve();
const stopped = new Set();

// Requests and answers are bytes in the engine's memory.
const ask = request => {
  const { memory, room, ask: answerRequest, answer } = engine.exports;
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const at = room(bytes.length);
  new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  const length = answerRequest();
  return new Uint8Array(memory.buffer, answer(), length);
};
const json = bytes => JSON.parse(new TextDecoder().decode(bytes));

const TYPES = { u8: Uint8Array, u32: Uint32Array, u64: BigUint64Array, i64: BigInt64Array, f64: Float64Array };

// A line with the layout, then the columns, each in a typed array.
const tables = bytes => {
  const end = bytes.indexOf(10) + 1;
  const said = json(bytes.subarray(0, end));
  for (const columns of Object.values(said.tables)) {
    for (const [name, [type, from, length]] of Object.entries(columns)) {
      const Kind = TYPES[type];
      const size = length * Kind.BYTES_PER_ELEMENT;
      columns[name] = new Kind(bytes.slice(end + from, end + from + size).buffer);
    }
  }
  return said;
};

const others = () => new Promise(resolve => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => { channel.port1.close(); resolve(); };
  channel.port2.postMessage(0);
});

// A run to its end; null if it is stopped.
const run = async (id, begin) => {
  const about = json(ask(begin));
  if (!about.links) return { about };
  let told = performance.now();
  for (;;) {
    const { done, at_ns, end_ns } = json(ask({ ask: "go", events: SLICE }));
    if (done) return { about, done };
    if (stopped.has(id)) return null;
    if (performance.now() - told > TELL_MS) {
      told = performance.now();
      postMessage({ id, progress: at_ns / end_ns });
    }
    await others();
    if (stopped.has(id)) return null;
  }
};

// Loads the engine from its bytes, which gzip compressed.
const compiled = async bytes => {
  const module = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(module).arrayBuffer());
};

const answer = async ({ id, what, request, film }) => {
  if (what === "run") {
    const run_ = await run(id, request);
    if (!run_ || !run_.done) return run_ || { stopped: true };
    return { about: run_.about, ...tables(ask(film || { ask: "tables" })) };
  }
  return json(ask(request));
};

const words = error => {
  try {
    const { memory, panicked, panicked_bytes } = engine.exports;
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, panicked(), panicked_bytes()));
    return text || String(error);
  } catch {
    return String(error);
  }
};

onmessage = ({ data }) => {
  if (data.what === "stop") { stopped.add(data.stop); return; }
  asked = asked.then(async () => {
    const { id } = data;
    try {
      if (data.what === "begin") {
        engine = await WebAssembly.instantiate(data.module, {});
        postMessage({ id, answer: true });
        return;
      }
      if (data.what === "compile") {
        const module = await compiled(data.engine);
        engine = await WebAssembly.instantiate(module, {});
        postMessage({ id, answer: module });
        return;
      }
      const found = stopped.has(id) ? { stopped: true } : await answer(data);
      stopped.delete(id);
      // Columns are transferred, not copied.
      const columns = Object.values(found.tables || {}).flatMap(Object.values);
      postMessage({ id, answer: found }, columns.map(column => column.buffer));
    } catch (error) {
      // The engine's memory is in an unknown state: the page ends this worker.
      postMessage({ id, broken: words(error) });
    }
  });
};
