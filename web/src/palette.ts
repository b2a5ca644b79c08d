//! The colours of page.css for what is drawn on a canvas, which does not know CSS variables.
//! No colour is written here: light, dark and print are page.css's alone.

let known = new Map<string, string>();
let ramp: Uint8ClampedArray | undefined;

/** Steps of the colour map of densities. */
export const HEAT_STEPS = 256;
/** `--heat-0` (fewest) … `--heat-4` (most). */
const HEAT_STOPS = 5;

/** The value of a CSS variable, such as `--ink`. */
export function colour(name: string): string {
  let value = known.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888888";
    known.set(name, value);
  }
  return value;
}

/** The same with an opacity, 0 … 1. */
export function faint(name: string, opacity: number): string {
  const [r, g, b] = rgb(colour(name));
  return `rgba(${r},${g},${b},${opacity})`;
}

/** To be called when light becomes dark, or screen becomes paper. */
export function forgetColours(): void {
  known = new Map();
  ramp = undefined;
}

/** Calls back when the system changes between light and dark. */
export function onSchemeChange(then: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    forgetColours();
    then();
  });
}

/** RGBA for each of [`HEAT_STEPS`]; equal steps look equally different, because they are equal in Oklab. */
export function heatRamp(): Uint8ClampedArray {
  ramp ??= buildRamp();
  return ramp;
}

function buildRamp(): Uint8ClampedArray {
  const stops = Array.from({ length: HEAT_STOPS }, (_, i) => oklab(rgb(colour(`--heat-${i}`))));
  const out = new Uint8ClampedArray(4 * HEAT_STEPS);
  for (let step = 0; step < HEAT_STEPS; step++) {
    const place = (step / (HEAT_STEPS - 1)) * (HEAT_STOPS - 1);
    const low = Math.min(HEAT_STOPS - 2, Math.floor(place));
    const [a, b] = [stops[low] as Triple, stops[low + 1] as Triple];
    const mixed = a.map((value, i) => value + ((b[i] ?? 0) - value) * (place - low)) as Triple;
    out.set([...fromOklab(mixed), 255], 4 * step);
  }
  return out;
}

type Triple = [number, number, number];

/** `#rrggbb` and `#rgb`; page.css uses no other form for these variables. */
function rgb(text: string): Triple {
  const digits = text.replace("#", "");
  const full = digits.length === 3 ? digits.replace(/./g, "$&$&") : digits;
  const value = Number.parseInt(full, 16);
  return Number.isNaN(value) ? [128, 128, 128] : [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

// Björn Ottosson, "A perceptual color space for image processing", 2020.
function oklab(color: Triple): Triple {
  const [r, g, b] = color.map((v) => {
    const s = v / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }) as Triple;
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklab([lightness, a, b]: Triple): Triple {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear: Triple = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((v) => 255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055)) as Triple;
}
