//! Sorting and copying of tables, those that Rust wrote and those that are filled from the packed data. Rows are made
//! when they are shown, so that a table of thousands of transactions opens at once.

import { type CopiedCell, copy, csv, markdown } from "./copied";
import { announce, element } from "./element";

/** Longer tables are shown in pages of this many rows. */
const ROWS_MAX = 2000;

type Key = number | string;

/** A row that can be sorted before it is made. */
export interface TableRow {
  cells: CopiedCell[];
  make: () => HTMLTableRowElement;
}

/** Adds sort buttons and the bar to a table that Rust wrote. */
export function enrich(table: HTMLTableElement): void {
  const body = table.tBodies[0];
  if (body === undefined || table.tHead === null) return;
  let rows: TableRow[] | undefined;
  new Sortable(table, () => (rows ??= Array.from(body.rows, (row) => ({ cells: Array.from(row.cells, cellOf), make: () => row }))));
}

function cellOf(cell: HTMLTableCellElement): CopiedCell {
  return { text: (cell.textContent ?? "").trim(), raw: cell.dataset.v ?? null };
}

/** A table from data: heads with types, rows of cells. */
export function build(name: string, caption: string, heads: [string, "number" | "text"][], rows: TableRow[]): HTMLElement {
  const table = element(
    "table",
    { class: "data", "data-name": name },
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads.map(([head, type]) => element("th", { scope: "col", "data-type": type }, head)))),
    element("tbody"),
  );
  const scroll = element("div", { class: "table", tabindex: 0, role: "group", "aria-label": caption }, table);
  const box = element("div", { class: "built" }, scroll);
  new Sortable(table, () => rows).show();
  return box;
}

/** A row of texts with raw numbers. */
export function row(cells: CopiedCell[]): TableRow {
  const make = () =>
    element(
      "tr",
      {},
      ...cells.map((cell, i) => {
        const made = i === 0 ? element("th", { scope: "row" }, cell.text) : element("td", {}, cell.text);
        if (cell.raw !== null) made.dataset.v = cell.raw;
        return made;
      }),
    );
  return { cells, make };
}

class Sortable {
  private readonly heads: HTMLTableCellElement[];
  private readonly body: HTMLTableSectionElement;
  private order: TableRow[] | undefined;
  private page = 0;
  private pager: HTMLElement | undefined;

  constructor(
    private readonly table: HTMLTableElement,
    private readonly rows: () => TableRow[],
  ) {
    this.body = table.tBodies[0] ?? table.createTBody();
    this.heads = Array.from(table.tHead?.rows[table.tHead.rows.length - 1]?.cells ?? []);
    // A head over several columns has no order of its own.
    if (this.heads.every((head) => head.colSpan === 1)) this.heads.forEach((head, i) => this.sorter(head, i));
    const bar = element(
      "div",
      { class: "bar" },
      element("button", { type: "button", title: "As a table of text for a pull request or a wiki", click: (event) => this.copied(event, "Markdown") }, "Copy as Markdown"),
      element("button", { type: "button", title: "Comma-separated values, for a spreadsheet", click: (event) => this.copied(event, "CSV") }, "Copy as CSV"),
    );
    (table.closest(".table") ?? table).after(bar);
  }

  show(): void {
    const rows = this.order ?? this.rows();
    const from = this.page * ROWS_MAX;
    this.body.replaceChildren(...rows.slice(from, from + ROWS_MAX).map((row) => row.make()));
    if (rows.length <= ROWS_MAX) return;
    const pages = Math.ceil(rows.length / ROWS_MAX);
    const turn = (by: number) => () => {
      this.page = Math.min(pages - 1, Math.max(0, this.page + by));
      this.show();
    };
    const text = `rows ${from + 1} to ${Math.min(rows.length, from + ROWS_MAX)} of ${rows.length}`;
    const pager = element(
      "div",
      { class: "bar pager" },
      element("button", { type: "button", click: turn(-1) }, "Earlier rows"),
      element("span", {}, text),
      element("button", { type: "button", click: turn(1) }, "Later rows"),
    );
    if (this.pager === undefined) (this.table.closest(".table") ?? this.table).before(pager);
    else this.pager.replaceWith(pager);
    this.pager = pager;
  }

  private sorter(head: HTMLTableCellElement, column: number): void {
    // Beside the words, not around them: they may hold a glossary word, which can be focused itself.
    const name = `Sort by ${wordsOf(head)}`;
    head.append(element("button", { type: "button", class: "sort", "aria-label": name, click: () => this.sort(column) }));
  }

  private sort(column: number): void {
    const head = this.heads[column];
    if (head === undefined) return;
    const was = head.getAttribute("aria-sort");
    const next = was === null ? "ascending" : was === "ascending" ? "descending" : null;
    for (const other of this.heads) other.removeAttribute("aria-sort");
    if (next === null) this.order = undefined;
    else {
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const keyed = this.rows().map((row) => ({ row, key: keyOf(row.cells[column]) }));
      keyed.sort((a, b) => compare(a.key, b.key, sign));
      this.order = keyed.map(({ row }) => row);
    }
    this.page = 0;
    this.show();
    announce(next === null ? "in the original order" : `sorted by ${wordsOf(head)}, ${next}`);
  }

  private copied(event: Event, form: "Markdown" | "CSV"): void {
    const heads = this.heads.map(wordsOf);
    const rows = (this.order ?? this.rows()).map((row) => row.cells);
    const isNumber = this.heads.map((head) => head.dataset.type === "number" || head.dataset.type === "time");
    const text = form === "CSV" ? csv(heads, rows) : markdown(heads, isNumber, rows);
    const button = event.currentTarget as HTMLButtonElement;
    void copy(text).then((done) => {
      const words = done ? `Copied ${rows.length} rows` : "Could not copy";
      announce(words);
      button.textContent = words;
      setTimeout(() => (button.textContent = `Copy as ${form}`), 1500);
    });
  }
}

/** The head's words; a line end in them is a blank. */
function wordsOf(head: HTMLElement): string {
  const copy = head.cloneNode(true) as HTMLElement;
  copy.querySelectorAll("br").forEach((line) => line.replaceWith(" "));
  return (copy.textContent ?? "").trim();
}

function keyOf(cell: CopiedCell | undefined): Key | null {
  if (cell === undefined || cell.text === "" || cell.text === "–" || cell.text === "-") return null;
  const raw = Number(cell.raw ?? NaN);
  return Number.isNaN(raw) ? cell.text : raw;
}

/** Numbers before words, and what is missing always last. */
function compare(a: Key | null, b: Key | null, sign: number): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  if (typeof a === typeof b) return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  return typeof a === "number" ? -1 : 1;
}
