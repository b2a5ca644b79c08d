//! One time chart: a uPlot canvas in the place of the static SVG, a readout of exact values above it, and the
//! keyboard. Zoom is asked of the view and comes back from it; a chart must never zoom alone. Response times and rates
//! zoom; every other chart stays whole, with the stretch that is looked at left clear.

import uPlot from "uplot";
import { announce } from "./element";
import type { Line, Spec } from "./lines";
import { bridged, isolated } from "./gaps";
import { colour, faint } from "./palette";
import { clock } from "./quantity";
import { Readout } from "./readout";
import { BINARY_STEPS, TIME_STEPS, decades, linearRange } from "./ticks";
import type { Trial } from "./trial";
import { Heat, LABELS_PX, drawBands, drawBetween, drawLabels, drawRest, drawSlow } from "./under";
import type { Range, View } from "./view";

/** Room for the numbers of the y axis: the same for all, so that one moment is one line down the page. */
const AXIS_PX = 66;
const AXIS_NARROW_PX = 56;
const NARROW_PX = 500;
const RIGHT_PX = 18;
/** What +/- multiplies the shown stretch by. */
const ZOOM_STEP = 1.6;
/** How many columns an arrow key moves with Shift. */
const LEAP = 10;

export interface Tail {
  /** The cursor or the pointer is somewhere: mark the transaction there. */
  hover(u: uPlot): void;
  /** Enter, or a click. */
  open(column: number, u: uPlot): void;
  close(): boolean;
}

export class TimeChart {
  private plot: uPlot | undefined;
  private readonly heat: Heat | null;
  private readonly readout: Readout;
  private readonly seconds: Float64Array;
  private readonly hidden = new Set<string>();
  private announcing = 0;
  tail: Tail | undefined;

  constructor(
    readonly figure: HTMLElement,
    private readonly holder: HTMLElement,
    readonly trial: Trial,
    readonly spec: Spec,
    private readonly view: View,
  ) {
    this.seconds = trial.seconds;
    const density = spec.tail === true ? trial.density() : null;
    this.heat = density === null ? null : new Heat(density, trial);
    this.readout = new Readout(trial, spec);
  }

  draw(): void {
    if (this.plot !== undefined || this.seconds.length === 0) return;
    const { holder } = this;
    holder.replaceChildren();
    holder.before(this.readout.root);
    this.figure.classList.add("drawn");
    this.plot = new uPlot(this.options(holder.clientWidth), this.data(), holder);
    holder.tabIndex = 0;
    holder.setAttribute("role", "application");
    holder.setAttribute("aria-roledescription", "time chart");
    const keys = this.zooms ? "Arrow keys move the cursor, plus and minus zoom, Escape resets." : "Arrow keys move the cursor.";
    holder.setAttribute("aria-label", `${this.title()}. ${keys}`);
    holder.addEventListener("keydown", (event) => this.key(event));
    holder.addEventListener("focus", () => this.current() ?? this.moveTo(this.shown()[0]));
    this.readout.show(null);
  }

  title(): string {
    return this.figure.querySelector("figcaption strong, figcaption")?.textContent?.trim() || this.figure.dataset.name || "chart";
  }

  /** Takes the width that there is; `ratio`-dependent parts are drawn again. */
  resize(width = this.holder.clientWidth): void {
    if (this.plot !== undefined && width > 0 && width !== this.plot.width)
      this.plot.setSize({ width, height: this.plot.height });
  }

  redraw(): void {
    this.heat?.forget();
    this.plot?.redraw(false, true);
  }

  /** Shows what the view shows. */
  follow(): void {
    if (!this.zooms) {
      this.plot?.redraw(false, false);
      return;
    }
    const [min, max] = this.window();
    const scale = this.plot?.scales.x;
    if (this.plot !== undefined && (scale?.min !== min || scale?.max !== max)) this.plot.setScale("x", { min, max });
  }

  /** Hides lines whose key is not wanted. */
  filter(isWanted: (line: Line) => boolean): void {
    for (const line of this.spec.lines) {
      if (isWanted(line)) this.hidden.delete(line.name);
      else this.hidden.add(line.name);
    }
    this.readout.hide(this.hidden);
    this.plot?.batch(() => {
      this.plot?.series.forEach((series, i) => {
        const show = !this.hidden.has(String(series.label));
        if (i > 0 && series.show !== show) this.plot?.setSeries(i, { show });
      });
    });
  }

  private get zooms(): boolean {
    return this.spec.zooms === true;
  }

  private window(): Range {
    const [from, to] = this.trial.span;
    const range = this.zooms ? this.view.range : null;
    if (range === null || range[1] <= from || range[0] >= to) return [from, to];
    return [Math.max(from, range[0]), Math.min(to, range[1])];
  }

  private data(): uPlot.AlignedData {
    const positive = this.spec.logarithmic === true;
    const drawn = (values: Float64Array) =>
      Array.from(values, (v) => (Number.isNaN(v) || (positive && v <= 0) ? null : v));
    const columns: (number | null | undefined)[][] = [];
    for (const { line, part } of this.parts()) {
      const values = part === "low" ? line.band?.low : part === "high" ? line.band?.high : line.values;
      const shown = drawn(values ?? line.values);
      // Samples rarer than columns are joined, and a node that was down is a gap all the same.
      columns.push(line.isSparse === true ? bridged(shown) : shown);
    }
    return [Array.from(this.seconds), ...columns] as uPlot.AlignedData;
  }

  /** In drawing order: bands, then halos, then lines. */
  private parts(): { line: Line; part: "high" | "low" | "halo" | "line" }[] {
    const seen = this.spec.lines.filter((line) => line.unseen !== true);
    const of = (part: "high" | "low" | "halo" | "line") => (line: Line) => ({ line, part });
    return [
      ...seen.filter((line) => line.band !== undefined).flatMap((line) => [of("high")(line), of("low")(line)]),
      ...seen.filter((line) => line.halo === true).map(of("halo")),
      ...seen.map(of("line")),
    ];
  }

  private options(width: number): uPlot.Options {
    const { spec, trial } = this;
    const parts = this.parts();
    const at = (line: Line, part: string) => 1 + parts.findIndex((p) => p.line === line && p.part === part);
    const seen = spec.lines.filter((line) => line.unseen !== true);
    const bands: uPlot.Band[] = seen
      .filter((line) => line.band !== undefined)
      .map((line) => ({ series: [at(line, "high"), at(line, "low")], fill: () => faint(line.colour, 0.2) }));
    for (const [upper, lower] of spec.between ?? []) {
      const [a, b] = [seen[upper], seen[lower]];
      if (a !== undefined && b !== undefined)
        bands.push({ series: [at(a, "line"), at(b, "line")], fill: () => faint("--warn", 0.3) });
    }
    const logarithmic = spec.logarithmic === true;
    const axisFont = `11px ${colour("--font")}`;
    const axis = { font: axisFont, stroke: () => colour("--muted"), ticks: { show: false } };
    const grid = { stroke: () => colour("--grid"), width: 1 };
    return {
      width,
      height: spec.height,
      padding: [spec.labels === true ? LABELS_PX : 8, RIGHT_PX, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: this.zooms, y: false, setScale: false, dist: 4 },
        points: { show: false },
        sync: {
          key: `trial-${trial.number}`,
          setSeries: false,
          scales: ["x", null],
          // A zoom goes by way of the view; only the cursor's place is shared here.
          filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: () => true },
        } as uPlot.Cursor.Sync,
        bind: { dblclick: () => () => (this.view.zoom(null), null) },
        focus: { prox: -1 },
      },
      scales: {
        x: { time: false, range: () => this.window() },
        y: logarithmic
          ? { distr: 3, log: 10, range: () => spec.fixed ?? [1, 10] }
          : { range: (_, low, high) => linearRange(low, high, spec) },
      },
      axes: [
        {
          ...axis,
          grid: { ...grid, show: false },
          size: 24,
          gap: 5,
          space: 70,
          incrs: TIME_STEPS,
          values: (_, splits) => splits.map((s) => clock(s, trial.span[1])),
          ticks: { show: true, size: 4, stroke: () => colour("--muted"), width: 1 },
          border: { show: true, stroke: () => colour("--muted"), width: 1 },
        },
        {
          ...axis,
          grid,
          size: (u) => (u.width < NARROW_PX ? AXIS_NARROW_PX : AXIS_PX),
          gap: 7,
          space: spec.height < 160 ? 28 : 34,
          values: (_, splits) => splits.map((s) => (s === null ? "" : spec.axis(s))),
          ...(spec.isBinary === true ? { incrs: BINARY_STEPS } : {}),
          ...(spec.every === undefined ? {} : { incrs: [spec.every], space: 1 }),
          ...(logarithmic ? { splits: (_u: uPlot, _i: number, low: number, high: number) => decades(low, high), filter: (_u: uPlot, splits: number[]) => splits } : {}),
        },
      ],
      series: [{}, ...parts.map(({ line, part }) => this.series(line, part))],
      bands,
      hooks: {
        drawClear: [(u) => (logarithmic ? drawBetween(u) : undefined), (u) => drawBands(u, trial), (u) => drawRest(u, this.zooms ? null : this.view.range)],
        drawAxes: [
          (u) => {
            if (spec.tail !== true) return;
            this.heat?.draw(u);
            drawSlow(u, trial.slow());
          },
        ],
        draw: [(u) => drawLabels(u, trial, spec.labels === true)],
        setCursor: [
          (u) => {
            this.readout.show(u.cursor.idx ?? null);
            this.tail?.hover(u);
          },
        ],
        setSelect: [(u) => this.selected(u)],
        ready: [
          (u) => {
            u.over.addEventListener("click", () => this.tail?.open(u.cursor.idx ?? -1, u));
            // Charts above are drawn when they come into sight, and move this one without a word to it.
            u.over.addEventListener("mouseenter", () => u.syncRect(true));
          },
        ],
      },
    };
  }

  private series(line: Line, part: string): uPlot.Series {
    const width = line.width ?? 1.5;
    const base = { label: line.name, show: !this.hidden.has(line.name), spanGaps: false };
    if (part === "high" || part === "low") return { ...base, stroke: "transparent", width: 0, points: { show: false } };
    const points = (size: number, name: string): uPlot.Series.Points => ({
      show: true,
      size,
      width: 0,
      fill: () => colour(name),
      filter: (u, i) => isolated(u.data[i] ?? []),
    });
    if (part === "halo")
      return { ...base, stroke: () => colour("--paper"), width: width + 2, points: points(8, "--paper") };
    return {
      ...base,
      stroke: () => colour(line.colour),
      width,
      points: points(5, line.colour),
      ...(line.dash === undefined || line.dash.length === 0 ? {} : { dash: line.dash }),
      ...(line.area === undefined ? {} : { fill: () => faint(line.colour, line.area ?? 0) }),
    };
  }

  private selected(u: uPlot): void {
    const { left, width } = u.select;
    if (width <= 0) return;
    const range: Range = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoomTo(range[0], range[1]);
  }

  private zoomTo(from: number, to: number, repeated = false): void {
    const [start, end] = this.trial.span;
    const least = Math.min(2 * this.trial.column_s, end - start);
    const middle = (from + to) / 2;
    const half = Math.max(to - from, least) / 2;
    const low = Math.max(start, middle - half);
    const high = Math.min(end, middle + half);
    this.view.zoom(low <= start && high >= end ? null : [low, high], repeated);
  }

  private current(): number | null {
    return this.plot?.cursor.idx ?? null;
  }

  /** First and last column in sight. */
  private shown(): [number, number] {
    const [from, to] = this.window();
    const inside = (s: number) => s >= from && s <= to;
    const first = this.seconds.findIndex(inside);
    return [Math.max(0, first), Math.max(0, this.seconds.findLastIndex(inside))];
  }

  private moveTo(column: number): void {
    const u = this.plot;
    if (u === undefined) return;
    const place = { left: u.valToPos(this.seconds[column] ?? 0, "x"), top: 10 };
    // The third argument, which tells the other charts, is missing in uPlot's types.
    (u.setCursor as (place: { left: number; top: number }, fire: boolean, tell: boolean) => void)(place, true, true);
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => announce(`${this.title()}, ${this.readout.words(column)}`), 150);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target !== this.holder) return;
    const [first, last] = this.shown();
    const here = Math.min(last, Math.max(first, this.current() ?? first));
    const [from, to] = this.window();
    const step = event.shiftKey ? LEAP : 1;
    const zoomed = (factor: number) => {
      const centre = this.seconds[here] ?? (from + to) / 2;
      this.zoomTo(centre - (centre - from) * factor, centre + (to - centre) * factor, true);
      this.moveTo(here);
    };
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.moveTo(Math.max(first, here - step)),
      ArrowRight: () => this.moveTo(Math.min(last, here + step)),
      Home: () => this.moveTo(first),
      End: () => this.moveTo(last),
      ...(this.zooms ? { "+": () => zoomed(1 / ZOOM_STEP), "=": () => zoomed(1 / ZOOM_STEP), "-": () => zoomed(ZOOM_STEP) } : {}),
      Escape: () => {
        if (this.tail?.close() !== true) this.view.zoom(null);
      },
    };
    if (this.tail !== undefined && this.plot !== undefined) {
      const u = this.plot;
      actions.Enter = () => this.tail?.open(here, u);
    }
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }
}
