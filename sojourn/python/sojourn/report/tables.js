"use strict";
// Tables of numbers: a click on a column's heading sorts by it; buttons below copy the table.
(() => {
  // The text of a cell: its number and interval, without the star.
  const said = cell => cell.textContent.trim().replace(/\s+/g, " ");
  const value = cell => {
    const number = parseFloat(said(cell).replace(/[\u202f\u00a0 ](?=\d)/g, "").replace(/^[^\d.-]+/, ""));
    return Number.isNaN(number) ? null : number;
  };

  const heads = table => [...table.tHead.rows[0].cells];
  const named = head => {
    const unit = head.querySelector("small"), name = said(head).slice(0, unit ? -said(unit).length || undefined : undefined).trim();
    const inside = unit ? said(unit).split(",")[0] : "";
    return inside && !/better$/.test(inside) ? `${name} [${inside}]` : name;
  };

  const sort = (table, column, head) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads(table)) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0], sign = down ? -1 : 1;
    const key = row => column === 0 ? said(row.cells[0]) : value(row.cells[column]);
    const less = (a, b) => a === b ? 0 : a === null ? sign : b === null ? -sign : a < b ? -1 : 1;
    body.append(...[...body.rows].sort((a, b) => sign * less(key(a), key(b))));
  };

  const rows = table => [heads(table).map(named), ...[...table.tBodies[0].rows].map(row => [...row.cells].map(said))];
  const forms = {
    Markdown: table => {
      const [head, ...body] = rows(table), line = cells => `| ${cells.map(cell => cell.replace(/\|/g, "\\|")).join(" | ")} |\n`;
      return line(head) + line(head.map((_, i) => i ? "---:" : "---")) + body.map(line).join("");
    },
    LaTeX: table => {
      const safe = text => text.replace(/[\\{}]/g, "").replace(/[&%$#_]/g, "\\$&").replace(/ ?± ?/g, " $\\pm$ ").replace(/≤/g, "$\\le$").replace(/≥/g, "$\\ge$").replace(/[\u202f\u00a0]/g, "\\,");
      const [head, ...body] = rows(table).map(row => row.map(safe)), line = cells => `  ${cells.join(" & ")} \\\\\n`;
      return `\\begin{tabular}{l${"r".repeat(head.length - 1)}}\n  \\hline\n${line(head)}  \\hline\n${body.map(line).join("")}  \\hline\n\\end{tabular}\n`;
    },
    CSV: table => saving.csv(rows(table)),
  };

  // A browser may deny the clipboard to a page opened from a disk. Then the text is copied from a text area.
  const copy = async text => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  for (const table of document.querySelectorAll("table.numbers")) {
    if (!table.tHead || table.tBodies.length !== 1) continue;
    heads(table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, column, head));
      head.append(button);
    });
    const line = document.createElement("p"), answer = document.createElement("span");
    line.className = "copy screen";
    line.append("Copy as ");
    answer.setAttribute("role", "status");
    for (const [form, text] of Object.entries(forms)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = form;
      button.addEventListener("click", async () => {
        await copy(text(table));
        answer.textContent = " copied";
        setTimeout(() => { answer.textContent = ""; }, 2000);
      });
      line.append(button, " ");
    }
    line.append(answer);
    (table.closest(".scroll") || table).after(line);
  }
})();
