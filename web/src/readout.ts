//! The line above a chart: which line is which, and the exact values of the column under the cursor, as text.

import { element } from "./element";
import type { Line, Spec } from "./lines";
import { clock } from "./quantity";
import type { Trial } from "./trial";

export class Readout {
  readonly root: HTMLElement;
  private readonly time = element("span", { class: "at" });
  private readonly values: { line: Line; root: HTMLElement; value: HTMLElement }[];

  constructor(
    private readonly trial: Trial,
    spec: Spec,
  ) {
    this.values = spec.lines.filter((line) => line.isDrawnOnly !== true).map((line) => {
      const swatch = element("i", { class: line.unseen === true ? "swatch none" : "swatch", "aria-hidden": "true" });
      swatch.style.setProperty("--swatch", `var(${line.colour})`);
      swatch.classList.toggle("dashed", (line.dash?.length ?? 0) > 0);
      const value = element("b");
      return { line, value, root: element("span", { class: line.unseen === true ? "entry unlined" : "entry", "data-line": line.name }, swatch, `${line.name} `, value) };
    });
    const unit = spec.unit === "" ? [] : [element("span", { class: "unit" }, spec.unit)];
    this.root = element("div", { class: "readout" }, ...unit, ...this.values.map(({ root }) => root), this.time);
  }

  show(column: number | null): void {
    // What has taken two lines keeps them: or the chart below would move away from under the pointer, and back, for ever.
    if (column === null && this.time.textContent !== "") this.root.style.minHeight = `${this.root.offsetHeight}px`;
    this.root.classList.toggle("idle", column === null);
    this.time.textContent = column === null ? "" : this.span(column);
    for (const { line, value } of this.values) {
      value.textContent = column === null ? "" : line.exact(column);
      const raw = column === null ? NaN : (line.more?.[0]?.values[column] ?? line.values[column] ?? NaN);
      if (Number.isNaN(raw)) value.removeAttribute("data-v");
      else value.dataset.v = String(raw);
    }
  }

  hide(names: Set<string>): void {
    for (const { line, root } of this.values) root.hidden = names.has(line.name);
  }

  /** The same as a sentence. */
  words(column: number): string {
    const values = this.values
      .filter(({ root }) => !root.hidden)
      .map(({ line }) => `${line.name} ${line.exact(column)}`);
    const moments = this.trial.index.moments
      .filter(({ at_ns }) => this.trial.columnAt(at_ns) === column)
      .map(({ name, detail }) => `${name} ${detail}`);
    const middle = this.trial.index.start_ns + (column + 0.5) * this.trial.index.width_ns;
    const bands = this.trial.index.bands
      .filter((band) => band.from_ns <= middle && middle <= band.to_ns)
      .map((band) => band.label || band.kind);
    return [`${this.span(column)}: ${values.join(", ")}`, ...bands, ...moments].join("; ");
  }

  private span(column: number): string {
    const [from, to] = this.trial.columnSpan(column);
    const end = this.trial.span[1];
    return `${clock(from / 1e9, end).replace(/ s$/, "")} – ${clock(to / 1e9, end)}`;
  }
}
