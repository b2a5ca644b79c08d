//! Where an axis begins, ends and has its numbers. It must never hide a value: every range holds all that is drawn.

import type { Spec } from "./lines";
import type { Range } from "./view";

/** Steps of the time axis: seconds, minutes and hours as people count them. */
export const TIME_STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  14400, 21600, 43200, 86400,
];

/** Bytes are counted in powers of two. */
export const BINARY_STEPS = Array.from({ length: 46 }, (_, power) => 2 ** power);

/** From zero, unless all values lie far from it. */
export function linearRange(low: number | null, high: number | null, spec: Spec): Range {
  if (spec.every !== undefined && spec.fixed !== undefined) return spec.fixed;
  if (low === null || high === null) return [0, 1];
  const floor = spec.fixed?.[0] ?? (low < 0 ? low : 0);
  const top = high > floor ? high : floor + 1;
  return [floor, floor + (top - floor) * 1.08];
}

/** What lies between the numbers of a logarithmic axis: lines without one. */
export function between(low: number, high: number): number[] {
  const out: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (let factor = 2; factor < 10; factor++) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) out.push(value);
    }
  return Math.log10(high / low) > 5 ? [] : out;
}

/** Powers of ten, with 2 and 5 between them where there are few. */
export function decades(low: number, high: number): number[] {
  const factors = Math.log10(high / low) < 2.2 ? [1, 2, 5] : [1];
  const out: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) out.push(value);
    }
  return out;
}
