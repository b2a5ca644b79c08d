//! The slowest transactions of a latency chart: a ring around the one under the pointer, and a panel that shows its
//! row. The panel lists all that were kept of a column, so that the keyboard reaches each.

import type uPlot from "uplot";
import type { Tail } from "./chart";
import { element } from "./element";
import { clock, exactDuration, plain, shortDuration } from "./quantity";
import type { SlowTransaction, Trial } from "./trial";
import { slowHeight } from "./under";

/** A point is meant when the pointer is at most this far from it, CSS pixels. */
const NEAR_PX = 12;

export class SlowTail implements Tail {
  private readonly ring = element("div", { class: "ring", "aria-hidden": "true" });
  private readonly tip = element("div", { class: "tip", "aria-hidden": "true" });
  private readonly panel = element("section", { class: "slow", "aria-label": "Slowest transactions" });
  private readonly rows: SlowTransaction[];
  private near: SlowTransaction | null = null;

  constructor(
    private readonly trial: Trial,
    private readonly holder: HTMLElement,
  ) {
    this.rows = trial.slow();
    this.panel.hidden = true;
    holder.after(this.panel);
    this.panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
  }

  hover(u: uPlot): void {
    if (this.ring.parentNode !== u.over) u.over.append(this.ring, this.tip);
    const { left, top, event } = u.cursor;
    const isPointer = event instanceof MouseEvent && left !== undefined && left >= 0;
    this.near = isPointer ? this.nearest(u, left, top ?? 0) : null;
    u.over.style.cursor = this.near === null ? "crosshair" : "pointer";
    this.ring.hidden = this.near === null;
    if (this.near !== null) {
      this.ring.style.left = `${u.valToPos(this.near.due / 1e9, "x")}px`;
      this.ring.style.top = `${u.valToPos(slowHeight(this.near) ?? 1, "y")}px`;
    }
    this.hint(u, isPointer ? left : null);
  }

  open(column: number, u: uPlot): void {
    const inColumn = this.rows.filter((row) => row.column === column);
    const chosen = this.near ?? null;
    const shown = chosen === null ? inColumn : this.rows.filter((row) => row.column === chosen.column);
    // A click beside every point, on a column that has some, is a wish to look at that second.
    const isPointer = u.cursor.event instanceof MouseEvent && document.activeElement !== this.holder;
    if (shown.length === 0 || (isPointer && chosen === null)) return;
    this.show(shown, chosen ?? shown[0] ?? null, chosen === null);
  }

  close(): boolean {
    if (this.panel.hidden) return false;
    this.panel.hidden = true;
    this.holder.focus({ preventScroll: true });
    return true;
  }

  private nearest(u: uPlot, left: number, top: number): SlowTransaction | null {
    let best: SlowTransaction | null = null;
    let least = NEAR_PX;
    for (const row of this.rows) {
      const across = u.valToPos(row.due / 1e9, "x") - left;
      if (Math.abs(across) > NEAR_PX) continue;
      const height = slowHeight(row);
      if (height === null) continue;
      const distance = Math.hypot(across, u.valToPos(height, "y") - top);
      if (distance < least) [least, best] = [distance, row];
    }
    return best;
  }

  /** What happened at the pointer: moments and faults, in words. */
  private hint(u: uPlot, left: number | null): void {
    this.tip.replaceChildren();
    if (left !== null) {
      const moments = this.trial.index.moments
        .filter(({ at_ns }) => Math.abs(u.valToPos(at_ns / 1e9, "x") - left) < 5)
        .map(({ at_ns, name, detail }) => `${clock(at_ns / 1e9, this.trial.span[1])} ${name}: ${detail}`);
      const at_ns = u.posToVal(left, "x") * 1e9;
      const faults = this.trial.index.bands
        .filter((band) => band.kind === "fault" && band.from_ns <= at_ns && at_ns <= band.to_ns)
        .map((band) => `fault: ${band.label}`);
      const near = this.near === null ? [] : [describe(this.near)];
      for (const words of [...near, ...faults, ...moments]) this.tip.append(element("div", {}, words));
    }
    this.tip.hidden = this.tip.childElementCount === 0;
    if (this.tip.hidden || left === null) return;
    const width = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(left + 14, u.over.clientWidth - width))}px`;
  }

  private show(rows: SlowTransaction[], chosen: SlowTransaction | null, withFocus: boolean): void {
    const [from, to] = this.trial.columnSpan(rows[0]?.column ?? 0);
    const end = this.trial.span[1];
    const detail = element("dl", { class: "fields" });
    const buttons = rows.map((row) =>
      element("button", { type: "button", click: () => pick(row) }, `${shortDuration(row.response)} ${row.outcome}`.replace("– ", "")),
    );
    const pick = (row: SlowTransaction) => {
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(rows[i] === row)));
      detail.replaceChildren(...fields(row).flatMap(([name, text]) => [element("div", {}, element("dt", {}, name), element("dd", {}, text))]));
    };
    const close = element("button", { type: "button", class: "close", "aria-label": "Close the panel", click: () => this.close() }, "×");
    const title = `Slowest transactions due from ${clock(from / 1e9, end).replace(/ s$/, "")} to ${clock(to / 1e9, end)}`;
    const list = element("ul", { class: "picks" }, ...buttons.map((button) => element("li", {}, button)));
    this.panel.replaceChildren(element("p", { class: "what" }, title), close, list, detail);
    this.panel.hidden = false;
    if (chosen !== null) pick(chosen);
    if (withFocus) buttons[0]?.focus({ preventScroll: true });
    this.panel.scrollIntoView({ block: "nearest" });
  }
}

function describe(row: SlowTransaction): string {
  return `tx ${row.tx}: ${row.response === null ? row.outcome : `${shortDuration(row.response)} ${row.outcome}`}`;
}

/** The row in words, in the order in which it happened. */
export function fields(row: SlowTransaction): [string, string][] {
  const after = (ns: number | null) => (ns === null ? "–" : `${exactDuration(row.due + ns)} (due + ${exactDuration(ns)})`);
  const whole: [string, string][] = [
    ["transaction", String(row.tx)],
    ["response time", exactDuration(row.response)],
    ["service time", exactDuration(row.service)],
    ["outcome", row.outcome],
    ["due", exactDuration(row.due)],
    ["ready", after(row.ready)],
    ["sent", after(row.sent)],
    ...row.marks.map(({ stage, after_due }): [string, string] => [stage, after(after_due)]),
    ["end", after(row.end)],
    ["code", plain(row.code)],
    ["error", row.error || "–"],
    ["target", row.kind || "–"],
    ["connection", plain(row.connection)],
    ["worker", plain(row.worker)],
  ];
  return whole;
}
