// Sorts and filters the tables of the board.
(function () {
  "use strict";
  const value = (row, at) => {
    const told = row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
    const number = told === "" || told === "–" ? NaN : Number(told);
    return { told, number };
  };
  // What has no value comes last, whichever way it is sorted.
  function before(a, b, at, sign) {
    const [one, other] = [value(a, at), value(b, at)];
    const [lacks, otherLacks] = [one, other].map((v) => v.told === "" || v.told === "–");
    if (lacks || otherLacks) return lacks - otherLacks;
    const numbers = !Number.isNaN(one.number) && !Number.isNaN(other.number);
    return sign * (numbers ? one.number - other.number : one.told.localeCompare(other.told));
  }
  for (const table of document.querySelectorAll("table.board")) {
    table.querySelectorAll("thead th").forEach((head, at) => head.querySelector("button")?.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((a, b) => before(a, b, at, sign)));
    }));
  }
  const text = document.getElementById("filter-text");
  const choices = [...document.querySelectorAll("select[data-filter]")];
  function filter() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll("table.board tbody tr")) {
      const told = row.textContent.toLowerCase();
      const chosen = choices.every((choice) => !choice.value || row.dataset[choice.dataset.filter] === choice.value);
      row.hidden = !(chosen && words.every((word) => told.includes(word)));
    }
  }
  if (text) [text, ...choices].forEach((input) => input.addEventListener("input", filter));
  document.body.dataset.charts ??= "0";
})();
