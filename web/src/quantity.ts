//! Numbers as text. Exact forms lose no digit of a count or a nanosecond; short forms are for axes.
//! It must never round in an exact form: the page may not differ from the result document.

const UNITS: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

/** `12.345678 ms`: every nanosecond kept. */
export function exactDuration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || Number.isNaN(ns)) return "–";
  const [size, unit] = UNITS.find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
  const decimals = Math.log10(size);
  const text = decimals === 0 ? String(ns) : fixed(ns, size, decimals);
  return `${text} ${unit}`;
}

/** Integer division by a power of ten without a float's rounding. */
function fixed(ns: number, size: number, decimals: number): string {
  const sign = ns < 0 ? "−" : "";
  const whole = Math.floor(Math.abs(ns) / size);
  const rest = String(Math.abs(ns) - whole * size).padStart(decimals, "0").replace(/0+$/, "");
  return sign + grouped(whole) + (rest === "" ? "" : `.${rest}`);
}

/** Three significant digits, for axes and short lists. */
export function shortDuration(ns: number | null): string {
  if (ns === null || Number.isNaN(ns)) return "–";
  const [size, unit] = UNITS.find(([size]) => Math.abs(ns) >= size * 0.9995) ?? [1, "ns"];
  return `${trimmed(ns / size)} ${unit}`;
}

function trimmed(value: number): string {
  return Math.abs(value) >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** `1,234,567`. */
export function grouped(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/** Any number, at most six digits after the point, none if it is whole. */
export function plain(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return grouped(value);
  if (Math.abs(value) >= 0.001) return value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
  return String(Number(value.toPrecision(6)));
}

/** `1.5k`, `20M`: for axes. */
export function short(value: number): string {
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]] as const)
    if (size >= unit) return `${Number((value / (name === "k" ? 1e3 : unit)).toPrecision(4))}${name}`;
  return String(Number(value.toPrecision(4)));
}

/** A place on the time axis: `12.5 s`, from a minute on `2:05`, from an hour on `1:02:05`. */
export function clock(seconds: number, span = seconds): string {
  if (Math.abs(span) < 120) return `${Number(seconds.toFixed(6))} s`;
  const sign = seconds < 0 ? "−" : "";
  const size = Number(Math.abs(seconds).toFixed(3));
  const [h, m, s] = [Math.floor(size / 3600), Math.floor((size % 3600) / 60), Number((size % 60).toFixed(3))];
  const two = (value: number) => (value < 10 ? `0${value}` : String(value));
  return sign + (h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`);
}
