"use strict";
// Opens the section that a link leads to. Without this script it is opened by a click.
for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.addEventListener("click", () => {
    document.querySelector(`${link.hash} > details`).open = true;
  });
}
// Sorts tables by their columns. Without this script they are plain tables.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
  };
  const compare = (column, down) => (a, b) => {
    const x = key(a, column), y = key(b, column);
    if (x !== null && y !== null) return down ? y - x : x - y;
    if (x !== null || y !== null) return x === null ? 1 : -1; // what has no number comes last
    const words = a.cells[column].textContent.localeCompare(b.cells[column].textContent, "en");
    return down ? -words : words;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const numbers = body.rows[0] && body.rows[0].cells[column].dataset.value !== undefined;
      const now = head.getAttribute("aria-sort");
      // Numbers begin with the greatest, names with A.
      const down = now ? now === "ascending" : numbers;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...body.rows].sort(compare(column, down)));
    });
  });
}
