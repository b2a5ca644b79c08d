//! What is missing between values: those that no line reaches are drawn as points, or nobody sees them; and a series
//! that was sampled more seldom than the chart has columns has no gaps, only a slower pace.

/** Indexes of values between two missing ones. */
export function isolated(values: ArrayLike<number | null | undefined>): number[] {
  const out: number[] = [];
  const has = (i: number) => values[i] !== null && values[i] !== undefined;
  for (let i = 0; i < values.length; i++) if (has(i) && !has(i - 1) && !has(i + 1)) out.push(i);
  return out;
}

/** How many columns lie between a value and the next, usually. */
function usualDistance(known: number[]): number {
  const distances = known.slice(1).map((at, i) => at - (known[i] ?? at));
  distances.sort((a, b) => a - b);
  return distances[Math.floor(distances.length / 2)] ?? 1;
}

/** The values with `undefined` for what is missing only because samples are rarer than columns: uPlot draws on there, and
 * stops at `null`. What is missing for longer than twice the usual distance is a gap. */
export function bridged(values: readonly (number | null)[]): (number | null | undefined)[] {
  const known = values.flatMap((value, at) => (value === null ? [] : [at]));
  const reach = 2 * usualDistance(known);
  const out: (number | null | undefined)[] = [...values];
  known.slice(1).forEach((at, i) => {
    const from = known[i] ?? at;
    if (at - from <= reach) out.fill(undefined, from + 1, at);
  });
  return out;
}

/** Whether no two neighbouring columns both have a value: the pace of the samples, not a gap. */
export function isSparse(values: Float64Array): boolean {
  let known = 0;
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i])) continue;
    if (i > 0 && !Number.isNaN(values[i - 1])) return false;
    known++;
  }
  return known > 1;
}
