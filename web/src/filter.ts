//! The filter box: `/` goes to it, and what is typed hides charts, lines and rows whose names do not have it.

import { element } from "./element";
import type { TimeChart } from "./chart";

/** Puts the box into the navigation. */
export function addFilter(nav: HTMLElement, charts: () => TimeChart[]): void {
  const box = element("input", {
    type: "search",
    id: "filter",
    placeholder: "Filter  /",
    "aria-label": "Filter charts, series and table rows by name",
    "aria-keyshortcuts": "/",
    autocomplete: "off",
    spellcheck: "false",
  });
  const told = element("span", { id: "filter-told", class: "unseen", role: "status" });
  nav.append(element("span", { class: "filter" }, box, told));
  box.addEventListener("input", () => {
    told.textContent = apply(box.value, charts());
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    box.value = "";
    told.textContent = apply("", charts());
    box.blur();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    box.focus();
    box.select();
  });
}

/** Words of which a name must have all. */
function matcher(text: string): (name: string) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return (name) => words.every((word) => name.toLowerCase().includes(word));
}

/** Opens all that something lies folded in, but for the tables of charts. */
function unfold(of: HTMLElement): void {
  for (let parent = of.parentElement; parent !== null; parent = parent.parentElement)
    if (parent instanceof HTMLDetailsElement && !parent.matches(".as-table")) parent.open = true;
}

function apply(text: string, charts: TimeChart[]): string {
  const matches = matcher(text);
  const isEmpty = text.trim() === "";
  const byFigure = new Map(charts.map((chart) => [chart.figure, chart]));
  let [shown, all] = [0, 0];
  for (const figure of document.querySelectorAll<HTMLElement>("figure.chart")) {
    const name = `${figure.dataset.name ?? ""} ${figure.querySelector("figcaption")?.textContent ?? ""}`;
    const isNamed = isEmpty || matches(name);
    const lines = (figure.dataset.series ?? "").split(" ");
    const hasLine = lines.some(matches);
    figure.hidden = !isNamed && !hasLine;
    if (!isEmpty && !figure.hidden) unfold(figure);
    byFigure.get(figure)?.filter((line) => isNamed || line.key === undefined || matches(line.key));
    all++;
    if (!figure.hidden) shown++;
  }
  for (const table of document.querySelectorAll<HTMLTableElement>("table.data")) {
    if (table.closest("details.as-table") !== null) continue;
    const isNamed = isEmpty || matches(`${table.dataset.name ?? ""} ${table.caption?.textContent ?? ""}`);
    let left = 0;
    for (const row of table.tBodies[0]?.rows ?? []) {
      row.hidden = !isNamed && !matches(row.cells[0]?.textContent ?? "");
      all++;
      if (!row.hidden) left++;
    }
    shown += left;
    if (!isEmpty && left > 0) unfold(table);
    (table.closest(".table") ?? table).classList.toggle("none-left", left === 0 && !isEmpty);
  }
  document.documentElement.classList.toggle("filtered", !isEmpty);
  return isEmpty ? "" : `${shown} of ${all} charts and rows`;
}
