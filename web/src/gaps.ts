//! Values that no line reaches, because their neighbours are missing: they are drawn as points, or nobody sees them.

/** Indexes of values between two missing ones. */
export function isolated(values: ArrayLike<number | null | undefined>): number[] {
  const out: number[] = [];
  const has = (i: number) => values[i] !== null && values[i] !== undefined;
  for (let i = 0; i < values.length; i++) if (has(i) && !has(i - 1) && !has(i + 1)) out.push(i);
  return out;
}
