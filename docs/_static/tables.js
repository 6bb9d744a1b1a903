// Tables of the pages: a click on the head of a column sorts by it, a button copies the table as text with tabs.
const value = (row, column) => row.cells[column].textContent.trim();

function sortBy(table, column, down) {
  const compare = (a, b) => {
    const [x, y] = [value(a, column), value(b, column)];
    const [p, q] = [parseFloat(x), parseFloat(y)];
    return Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
  };
  const rows = [...table.tBodies[0].rows].sort(compare);
  table.tBodies[0].append(...(down ? rows.reverse() : rows));
}

function copyButton(table) {
  const button = document.createElement("button");
  button.textContent = "Copy table";
  button.className = "copy-table";
  button.addEventListener("click", async () => {
    const lines = [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("\t"));
    await navigator.clipboard.writeText(lines.join("\n"));
    button.textContent = "Copied";
  });
  return button;
}

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table.docutils")) {
    [...(table.tHead?.rows[0]?.cells ?? [])].forEach((head, column) => {
      let down = true;
      head.style.cursor = "pointer";
      head.title = "Sort by this column";
      head.addEventListener("click", () => sortBy(table, column, (down = !down)));
    });
    table.before(copyButton(table));
  }
});
