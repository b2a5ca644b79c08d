//! What lies under the lines of a time chart: bands with their labels, moments, the density of response times as a
//! picture, and the slowest transactions as points. Positions come from uPlot; it must never keep one.

import uPlot from "uplot";
import { HEAT_STEPS, colour, faint, heatRamp } from "./palette";
import { between } from "./ticks";
import type { Density, SlowTransaction, Trial } from "./trial";
import type { Range } from "./view";

/** Room above the plot for the labels of bands, CSS pixels. */
export const LABELS_PX = 20;
const POINT_PX = 2.1;
/** More points than this are drawn as squares, which take a fifth of the time. */
const ROUND_MAX = 1500;
/** How much a band hides, as in the SVGs. */
const SHADE = 0.13;

type Context = CanvasRenderingContext2D;

function clipped(u: uPlot, draw: (context: Context, ratio: number) => void): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, uPlot.pxRatio);
  ctx.restore();
}

const x = (u: uPlot, ns: number) => u.valToPos(ns / 1e9, "x", true);

/** Lines between those that have a number, fainter. */
export function drawBetween(u: uPlot): void {
  const { min, max } = u.scales.y ?? {};
  if (!min || !max) return;
  clipped(u, (context, ratio) => {
    context.strokeStyle = faint("--grid", 0.5);
    context.lineWidth = ratio;
    context.beginPath();
    for (const value of between(min, max)) {
      const y = u.valToPos(value, "y", true);
      context.moveTo(u.bbox.left, y);
      context.lineTo(u.bbox.left + u.bbox.width, y);
    }
    context.stroke();
  });
}

/** Shades of warm-up, drain, steps and faults. */
export function drawBands(u: uPlot, trial: Trial): void {
  clipped(u, (context, ratio) => {
    for (const band of trial.index.bands) {
      const [from, to] = [x(u, band.from_ns), x(u, band.to_ns)];
      const name = `--band-${band.kind}`;
      context.fillStyle = faint(name, SHADE);
      // Steps cover everything, so their edges are enough.
      if (band.kind !== "step") context.fillRect(from, u.bbox.top, Math.max(to - from, 2 * ratio), u.bbox.height);
      context.strokeStyle = faint(name, band.kind === "step" ? 0.3 : 0.6);
      context.lineWidth = ratio;
      if (band.kind === "warm-up" || band.kind === "drain") continue;
      context.setLineDash(band.kind === "fault" ? [2 * ratio, 2 * ratio] : []);
      context.beginPath();
      for (const edge of [from, to]) {
        context.moveTo(edge, u.bbox.top);
        context.lineTo(edge, u.bbox.top + u.bbox.height);
      }
      context.stroke();
    }
  });
}

/** Greys what the charts that zoom do not show. */
export function drawRest(u: uPlot, range: Range | null): void {
  if (range === null) return;
  clipped(u, (context) => {
    const { left, top, width, height } = u.bbox;
    const [from, to] = range.map((s) => Math.min(left + width, Math.max(left, u.valToPos(s, "x", true))));
    context.fillStyle = faint("--muted", SHADE);
    context.fillRect(left, top, (from ?? left) - left, height);
    context.fillRect(to ?? left, top, left + width - (to ?? left), height);
  });
}

/** Labels above the plot, each where it has room, and moments as ticks at its upper edge. */
export function drawLabels(u: uPlot, trial: Trial, withText: boolean): void {
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  const [left, right] = [bbox.left, bbox.left + bbox.width];
  ctx.save();
  ctx.font = `${11 * ratio}px ${colour("--font")}`;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left";
  // Faults first: where two labels want the same place, what was disturbed says more than a step.
  const order = ["fault", "warm-up", "drain", "step"];
  const bands = [...trial.index.bands].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  const taken: [number, number][] = [];
  for (const band of withText ? bands : []) {
    const from = Math.max(left, x(u, band.from_ns));
    const to = Math.min(right, x(u, band.to_ns));
    if (to < left || from > right || (to <= from && band.kind !== "fault")) continue;
    const label = band.label || band.kind;
    const width = ctx.measureText(label).width;
    const room = band.kind === "fault" ? Infinity : to - from;
    const start = Math.min(from, right - width);
    const free = taken.every(([a, b]) => start + width + 8 * ratio < a || start > b + 8 * ratio);
    if (width > room || !free) continue;
    taken.push([start, start + width]);
    ctx.fillStyle = band.kind === "fault" ? colour("--bad") : colour("--muted");
    ctx.fillText(label, start, bbox.top - 7 * ratio);
  }
  ctx.fillStyle = colour("--warn");
  for (const moment of trial.index.moments) {
    const at = x(u, moment.at_ns);
    if (at < left || at > right) continue;
    ctx.beginPath();
    ctx.moveTo(at - 3.5 * ratio, bbox.top - 4 * ratio);
    ctx.lineTo(at + 3.5 * ratio, bbox.top - 4 * ratio);
    ctx.lineTo(at, bbox.top + 3 * ratio);
    ctx.fill();
  }
  ctx.restore();
}

/** Densities as a picture of one pixel a column and bucket, which the canvas scales without smoothing. */
export class Heat {
  private image: HTMLCanvasElement | undefined;
  private readonly first: number;
  private readonly rows: number;

  constructor(
    private readonly density: Density,
    private readonly trial: Trial,
  ) {
    let [low, high] = [Infinity, 0];
    density.bucket.forEach((bucket) => {
      low = Math.min(low, bucket);
      high = Math.max(high, bucket);
    });
    this.first = low;
    this.rows = high - low + 1;
  }

  /** To be called when the colours have changed. */
  forget(): void {
    this.image = undefined;
  }

  draw(u: uPlot): void {
    this.image ??= this.paint();
    const image = this.image;
    const { from_ns, per_decade } = this.density;
    const edge = (bucket: number) => u.valToPos(from_ns * 10 ** (bucket / per_decade), "y", true);
    const [from, to] = this.trial.span;
    const [left, right] = [u.valToPos(from, "x", true), u.valToPos(to, "x", true)];
    const [top, bottom] = [edge(this.first + this.rows), edge(this.first)];
    clipped(u, (context) => {
      context.imageSmoothingEnabled = false;
      context.drawImage(image, left, top, right - left, bottom - top);
    });
  }

  private paint(): HTMLCanvasElement {
    const image = document.createElement("canvas");
    image.width = this.trial.index.columns;
    image.height = this.rows;
    const context = image.getContext("2d");
    if (context === null) return image;
    const pixels = context.createImageData(image.width, image.height);
    const { cells, bucket, count } = this.density;
    const most = count.reduce((a, b) => Math.max(a, b), 1);
    const ramp = heatRamp();
    let cell = 0;
    cells.forEach((inColumn, column) => {
      for (const end = cell + inColumn; cell < end; cell++) {
        // Logarithmic, because counts span decades and a lone transaction must still be seen.
        const share = most === 1 ? 1 : Math.log(count[cell] ?? 1) / Math.log(most);
        const step = 4 * Math.round(share * (HEAT_STEPS - 1));
        const row = this.rows - 1 - ((bucket[cell] ?? 0) - this.first);
        pixels.data.set(ramp.subarray(step, step + 4), 4 * (row * image.width + column));
      }
    });
    context.putImageData(pixels, 0, 0);
    return image;
  }
}

/** Where a slow transaction stands: at its response time, or when it ended without one. */
export function slowHeight(row: SlowTransaction): number | null {
  const height = row.response ?? row.end;
  return height !== null && height > 0 ? height : null;
}

/** Dots for those that got their answer, crosses for those that did not. */
export function drawSlow(u: uPlot, rows: SlowTransaction[]): void {
  clipped(u, (context, ratio) => {
    const radius = POINT_PX * ratio;
    const isRound = rows.length <= ROUND_MAX;
    const [dots, crosses] = [new Path2D(), new Path2D()];
    for (const row of rows) {
      const height = slowHeight(row);
      const at = x(u, row.due);
      if (height === null || at < u.bbox.left - radius || at > u.bbox.left + u.bbox.width + radius) continue;
      const y = u.valToPos(height, "y", true);
      if (row.response !== null && !isRound) {
        dots.rect(at - 0.85 * radius, y - 0.85 * radius, 1.7 * radius, 1.7 * radius);
        continue;
      }
      if (row.response !== null) {
        dots.moveTo(at + radius, y);
        dots.arc(at, y, radius, 0, 2 * Math.PI);
        continue;
      }
      const arm = 1.3 * radius;
      crosses.moveTo(at - arm, y - arm);
      crosses.lineTo(at + arm, y + arm);
      crosses.moveTo(at - arm, y + arm);
      crosses.lineTo(at + arm, y - arm);
    }
    context.fillStyle = faint("--ink", 0.55);
    context.fill(dots);
    context.strokeStyle = colour("--bad");
    context.lineWidth = 1.4 * ratio;
    context.stroke(crosses);
  });
}
