"use strict";
// A chart as a file: SVG, PNG, CSV. `saving.buttons` makes the buttons in a chart's caption.
const saving = (() => {
  const FONT = 'system-ui, "DejaVu Sans", sans-serif';
  const HEADING = 26;                 // room above a saved chart for its title, px
  const ROW = 18;                     // a row of its key

  const hand = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const escaped = text => String(text).replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
  const slug = text => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "chart";
  const px = value => String(+value.toFixed(2));

  // The key: labels and colours of the shown series that have a label, in rows that fit.
  const key = (chart, write) => {
    let x = 10, y = HEADING + chart.u.height + 12;
    for (const [label, colour, dash] of chart.key()) {
      const wide = write.measure(label) + 46;
      if (x > 10 && x + wide > chart.u.width) { x = 10; y += ROW; }
      write.line(x, y, x + 24, y, colour, dash, 2);
      write.text(label, x + 30, y + 4, chart.ink());
      x += wide;
    }
    return y + ROW;
  };

  // The methods of a canvas's context that the charts' painters use, as SVG. Their numbers are device pixels.
  const recorder = (canvas, ratio) => {
    const made = [];
    let path = "";
    const at = (x, y) => `${px(x / ratio)} ${px(y / ratio)}`;
    return {
      made, fillStyle: "#000", strokeStyle: "#000", font: "10px", textBaseline: "top", textAlign: "left",
      save() {}, restore() {}, rect() {}, clip() {}, setLineDash() {},
      beginPath() { path = ""; },
      moveTo(x, y) { path += `M${at(x, y)}`; },
      lineTo(x, y) { path += `L${at(x, y)}`; },
      stroke() { made.push(`<path d="${path}" fill="none" stroke="${escaped(this.strokeStyle)}"/>`); },
      measureText(text) { canvas.font = this.font; return canvas.measureText(text); },
      fillRect(x, y, w, h) {
        made.push(`<rect x="${px(x / ratio)}" y="${px(y / ratio)}" width="${px(w / ratio)}" height="${px(h / ratio)}" fill="${escaped(this.fillStyle)}"/>`);
      },
      fillText(text, x, y) {
        const size = parseFloat(this.font) / ratio, down = this.textBaseline === "top" ? size * .9 : 0;
        made.push(`<text x="${px(x / ratio)}" y="${px(y / ratio + down)}" font-size="${px(size)}" fill="${escaped(this.fillStyle)}">${escaped(text)}</text>`);
      },
    };
  };

  const svg = chart => {
    const { u } = chart, ratio = devicePixelRatio, out = [];
    const left = u.bbox.left / ratio, top = u.bbox.top / ratio, wide = u.bbox.width / ratio, high = u.bbox.height / ratio;
    const write = {
      measure: text => { u.ctx.font = `12px ${FONT}`; return u.ctx.measureText(text).width; },
      line: (x0, y0, x1, y1, colour, dash, width) => out.push(
        `<line x1="${px(x0)}" y1="${px(y0)}" x2="${px(x1)}" y2="${px(y1)}" stroke="${colour}" stroke-width="${width}"`
        + (dash && dash.length ? ` stroke-dasharray="${dash.join(" ")}"/>` : "/>")),
      text: (text, x, y, colour, anchor = "start", size = 12) => out.push(
        `<text x="${px(x)}" y="${px(y)}" font-size="${size}" text-anchor="${anchor}" fill="${colour}">${escaped(text)}</text>`),
    };
    const painted = painter => {
      const ctx = recorder(u.ctx, ratio);
      painter({ ctx, bbox: u.bbox, valToPos: u.valToPos.bind(u), posToVal: u.posToVal.bind(u) });
      out.push(...ctx.made);
    };
    write.text(chart.title, 10, 17, chart.ink(), "start", 14);
    out.push(`<g transform="translate(0 ${HEADING})">`);
    // The marks and labels of the axes are in private fields of uPlot. The version in vendor/ is fixed, so they exist.
    const [across, along] = u.axes;
    const marks = (axis, draw) => (axis._splits || []).forEach((value, i) => draw(value, (axis._values || [])[i]));
    marks(across, (value, word) => {
      const x = left + u.valToPos(value, "x");
      write.line(x, top, x, top + high, chart.grid(), [], 1);
      if (word !== "" && word !== undefined && word !== null) write.text(word, x, top + high + 16, chart.muted(), "middle", 11);
    });
    marks(along, (value, word) => {
      const y = top + u.valToPos(value, "y");
      if (word === "" || word === undefined || word === null) return;
      write.line(left, y, left + wide, y, chart.grid(), [], 1);
      write.text(word, left - 6, y + 4, chart.muted(), "end", 11);
    });
    write.text(across.label || "", left + wide / 2, top + high + 32, chart.muted(), "middle", 11);
    out.push(`<text transform="translate(12 ${px(top + high / 2)}) rotate(-90)" font-size="11" text-anchor="middle" fill="${chart.muted()}">${escaped(along.label || "")}</text>`);
    out.push(`<clipPath id="plot"><rect x="${px(left)}" y="${px(top)}" width="${px(wide)}" height="${px(high)}"/></clipPath><g clip-path="url(#plot)">`);
    chart.below.forEach(painted);
    u.series.forEach((series, i) => {
      if (i === 0 || !series.show || chart.special) return;
      const look = chart.looks[i - 1], ys = u.data[i], xs = u.data[0];
      let path = "", pen = false;
      const place = k => [left + u.valToPos(xs[k], "x"), top + u.valToPos(ys[k], "y")];
      for (let k = 0; k < xs.length; k++) {
        if (ys[k] === null) pen = false;
        if (ys[k] === null || ys[k] === undefined) continue;
        const [x, y] = place(k);
        if (look.dots) out.push(`<circle cx="${px(x)}" cy="${px(y)}" r="1.7" fill="${look.colour()}"/>`);
        else path += `${pen ? "L" : "M"}${px(x)} ${px(y)}`;
        pen = true;
      }
      if (path) {
        const dash = look.dash && look.dash.length ? ` stroke-dasharray="${look.dash.join(" ")}"` : "";
        out.push(`<path d="${path}" fill="none" stroke="${look.colour()}" stroke-width="${look.width}"${dash}/>`);
      }
    });
    chart.above.forEach(painted);
    out.push("</g></g>");
    const height = key(chart, write);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${u.width}" height="${height}" viewBox="0 0 ${u.width} ${height}" font-family="${escaped(FONT)}">`
      + `<rect width="100%" height="100%" fill="${chart.paper()}"/>${out.join("")}</svg>`;
  };

  const png = (chart, done) => {
    const { u } = chart, ratio = devicePixelRatio, canvas = document.createElement("canvas");
    const ctx = canvas.getContext("2d");
    const write = {
      measure: text => { ctx.font = `12px ${FONT}`; return ctx.measureText(text).width; },
      line: () => {}, text: () => {},
    };
    canvas.width = u.width * ratio;
    canvas.height = key(chart, write) * ratio;
    ctx.fillStyle = chart.paper();
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(u.ctx.canvas, 0, HEADING * ratio);
    ctx.scale(ratio, ratio);
    write.line = (x0, y0, x1, y1, colour, dash, width) => {
      Object.assign(ctx, { strokeStyle: colour, lineWidth: width });
      ctx.setLineDash(dash || []);
      ctx.beginPath();
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
    };
    write.text = (text, x, y, colour) => {
      Object.assign(ctx, { fillStyle: colour, font: `12px ${FONT}` });
      ctx.fillText(text, x, y);
    };
    key(chart, write);
    Object.assign(ctx, { fillStyle: chart.ink(), font: `600 14px ${FONT}` });
    ctx.fillText(chart.title, 10, 17);
    canvas.toBlob(done, "image/png");
  };

  const quoted = cell => {
    const text = cell === null || cell === undefined || Number.isNaN(cell) ? "" : String(cell);
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const csv = rows => rows.map(row => row.map(quoted).join(",") + "\n").join("");

  const save = {
    SVG: chart => hand(new Blob([svg(chart)], { type: "image/svg+xml" }), `${slug(chart.title)}.svg`),
    PNG: chart => png(chart, blob => hand(blob, `${slug(chart.title)}.png`)),
    CSV: chart => hand(new Blob([csv(chart.rows())], { type: "text/csv" }), `${slug(chart.title)}.csv`),
  };
  const buttons = of => Object.entries(save).map(([kind, to]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = kind;
    button.setAttribute("aria-label", `Save this chart as ${kind}`);
    button.addEventListener("click", () => to(of()));
    return button;
  });
  return { buttons, svg, csv };
})();
