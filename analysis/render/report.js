"use strict";
// Everything on the page reads without this script; it adds sorting and a panel with a value's runs.
(() => {
  const text = (tag, content, parent) => {
    const element = document.createElement(tag);
    element.textContent = content;
    parent.append(element);
    return element;
  };

  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent.trim();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };

  const compared = (one, other) => {
    if (one === null || other === null) return 0;
    return typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other));
  };

  // Values that are missing stay at the end, whichever way the others go.
  const sortBy = (header) => {
    const table = header.closest("table");
    const body = table.tBodies[0];
    const column = header.cellIndex;
    const descending = header.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th[aria-sort]").forEach((each) => each.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => ({ row, value: key(row, column) }));
    const missing = rows.filter((each) => each.value === null);
    const found = rows.filter((each) => each.value !== null);
    found.sort((one, other) => (descending ? -1 : 1) * compared(one.value, other.value));
    body.append(...[...found, ...missing].map((each) => each.row));
  };

  const showProvenance = (cell) => {
    const panel = document.getElementById("provenance");
    const column = cell.closest("table").tHead.rows[cell.closest("table").tHead.rows.length - 1].cells[cell.cellIndex];
    panel.replaceChildren();
    text("h3", `${cell.parentElement.cells[0].textContent.trim()}: ${column.textContent.trim()}`, panel);
    const [value, ids] = cell.title.split("; runs: ");
    text("p", value, panel);
    const list = text("ul", "", panel);
    for (const id of ids ? ids.split(", ") : []) {
      const item = text("li", "", list);
      const link = text("a", id, item);
      link.href = `#run-${id}`;
      link.addEventListener("click", () => {
        panel.close();
        document.querySelector("#runs details").open = true;
      });
      const run = document.getElementById(`run-${id}`);
      if (run) text("span", ` commit ${run.dataset.commit || "unknown"}; ${run.dataset.overrides}; runs/${id}/config.yaml`, item);
    }
    const close = text("button", "Close", panel);
    close.addEventListener("click", () => panel.close());
    panel.showModal();
  };

  document.querySelectorAll("table.sortable thead tr:last-child th").forEach((header) => {
    header.tabIndex = 0;
    header.title = "Sort by this column";
    header.addEventListener("click", () => sortBy(header));
    header.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sortBy(header);
    });
  });
  document.querySelectorAll("td[data-value]").forEach((cell) => {
    cell.addEventListener("click", () => showProvenance(cell));
  });
})();
