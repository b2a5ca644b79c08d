//! Which lines each kind of time chart has. Every value is a column of the packed data, and a rate is a count by the
//! length of its column; nothing else is computed.

import { isSparse } from "./gaps";
import type { Builder, Line } from "./lines";
import { exactDuration, plain, short, shortDuration } from "./quantity";
import type { QuantileName, Trial } from "./trial";

/** Colours of lines that have no meaning of their own, in turn. */
const COLOURS = 8;
/** Dashes, in turn, so that no line is known by its colour alone. */
const DASHES: number[][] = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 4], [12, 4], [2, 6], [6, 2, 2, 2, 2, 2]];

export const BUILDERS: Record<string, Builder> = { latency, rates, outstanding, lag, stages, series, lanes };

function latency(trial: Trial) {
  const line = (name: string, key: QuantileName, colour: string): Line => {
    const values = trial.column(key);
    return { name, values, colour, halo: true, unseen: known(values) === 0, width: key === "p50_ns" ? 2.25 : 1.75, exact: (i) => exactDuration(values[i]) };
  };
  const max = line("max", "max_ns", "--muted");
  // A percentile has no value where fewer than ten samples lie beyond it: then the longest stands for the tail.
  const hasTail = 2 * known(trial.column("p99_ns")) > known(max.values);
  const lines = [
    line("p50", "p50_ns", "--p50"),
    line("p99", "p99_ns", "--p99"),
    line("p99.9", "p999_ns", "--p999"),
    { ...max, halo: false, width: 1, unseen: hasTail },
  ];
  return {
    lines,
    height: 320,
    logarithmic: true,
    fixed: logarithmicRange(trial),
    unit: "response time",
    axis: shortDuration,
    zooms: true,
    tail: true,
    labels: true,
  };
}

const known = (values: Float64Array) => values.reduce((count, value) => count + Number(!Number.isNaN(value)), 0);

/** Fixed for the whole trial, so that a zoom in time does not move it. */
function logarithmicRange(trial: Trial): [number, number] {
  let low = Infinity;
  let high = 0;
  const see = (value: number) => {
    if (value > 0) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  };
  for (const name of ["p50_ns", "max_ns"] as const) trial.column(name).forEach(see);
  for (const row of trial.slow()) see(row.response ?? row.end ?? 0);
  const density = trial.density();
  if (density !== null) {
    const edge = (bucket: number) => density.from_ns * 10 ** (bucket / density.per_decade);
    density.bucket.forEach((bucket) => see(edge(bucket)));
  }
  if (!(low < high)) return low === Infinity ? [1e6, 1e9] : [low / 3, low * 3];
  return [low / 1.15, high * 1.3];
}

/** Counts as rates. Columns shorter than a second show the rate of their second: less is noise. */
function bySecond(trial: Trial, counts: Float64Array): Float64Array {
  const each = Math.max(1, Math.round(1 / trial.column_s));
  return counts.map((_, i) => {
    const from = i - (i % each);
    const second = counts.subarray(from, from + each);
    const length = trial.columnSpan(from + second.length - 1)[1] - trial.columnSpan(from)[0];
    return (second.reduce((sum, count) => sum + count, 0) * 1e9) / length;
  });
}

function perSecond(trial: Trial, name: string, counts: Float64Array, colour: string, extra: Partial<Line> = {}): Line {
  return {
    name,
    values: bySecond(trial, counts),
    colour,
    exact: (i) => {
      const count = counts[i] ?? NaN;
      const [from, to] = trial.columnSpan(i);
      const width = (to - from) / 1e9;
      return width === 1 ? `${plain(count)}/s` : `${plain(count / width)}/s (${plain(count)})`;
    },
    more: [{ name: `${name}, count`, values: counts }],
    ...extra,
  };
}

function rates(trial: Trial) {
  const failed = Object.entries(trial.index.failed).map(([name, ref], i) => {
    const words = { colour: `--f${i % COLOURS}`, width: 1.5, area: 0.18, dash: DASHES[i % DASHES.length] ?? [] };
    return perSecond(trial, name, trial.array(ref), words.colour, words);
  });
  const lines = [
    perSecond(trial, "offered", trial.column("offered"), "--muted", { dash: [6, 3], width: 1.5 }),
    perSecond(trial, "sent", trial.column("sent"), "--muted", { unseen: true }),
    perSecond(trial, "goodput", trial.column("committed"), "--c0", { width: 2 }),
    ...failed.filter((line) => line.values.some((value) => value > 0)),
  ];
  return { lines, height: 200, unit: "per second", axis: short, zooms: true };
}

function outstanding(trial: Trial) {
  const values = trial.column("outstanding");
  const line: Line = { name: "outstanding", values, colour: "--c0", area: 0.12, exact: (i) => plain(values[i]) };
  return { lines: [line], height: 140, unit: "transactions", axis: short };
}

function lag(trial: Trial) {
  const values = trial.column("own_lag_p99_ns");
  const exact = (i: number) => exactDuration(values[i]);
  return {
    lines: [{ name: "own lag p99", values, colour: "--c6", area: 0.12, exact }],
    height: 140,
    unit: "",
    axis: shortDuration,
  };
}

function stages(trial: Trial) {
  const lines = trial.index.reached.map((ref, i) =>
    perSecond(trial, trial.index.stages[i] ?? `stage ${i}`, trial.array(ref), `--c${i % COLOURS}`, {
      width: 1.75,
      dash: DASHES[i % DASHES.length] ?? [],
    }),
  );
  const between = lines.slice(1).map((_, i): [number, number] => [i, i + 1]);
  return { lines, height: 200, unit: "per second", axis: short, between, zooms: true };
}

function series(trial: Trial, figure: HTMLElement) {
  const wanted = (figure.dataset.series ?? "").split(" ").filter((word) => word !== "");
  const found = wanted.flatMap((word) => trial.index.series.filter((s) => `${s.source}.${s.name}` === word));
  const names = new Set(found.map((s) => s.name));
  const { unit, form } = found[0] ?? { unit: "", form: "number" };
  const isTime = form === "duration";
  const say = isTime ? exactDuration : plain;
  const lines = found.map((one, i): Line => {
    const [low, values, high] = [trial.array(one.min), trial.array(one.mean), trial.array(one.max)];
    const differs = low.some((value, column) => value < (high[column] ?? NaN));
    const name = names.size > 1 ? `${one.source} ${one.name}` : one.source;
    return {
      name,
      key: `${one.source}.${one.name}`,
      values,
      colour: `--c${i % COLOURS}`,
      dash: DASHES[Math.floor(i / COLOURS)] ?? [],
      width: 1.5,
      isSparse: isSparse(values),
      exact: (column) =>
        differs && (low[column] ?? 0) < (high[column] ?? 0)
          ? `${say(values[column])} (${say(low[column])} to ${say(high[column])})`
          : say(values[column]),
      ...(differs ? { band: { low, high } } : {}),
      more: [
        { name: `${name}, lowest`, values: low },
        { name: `${name}, highest`, values: high },
      ],
    };
  });
  const isBinary = form === "bytes";
  return { lines, height: 130, unit, isBinary, axis: isTime ? shortDuration : isBinary ? bytes : short };
}

/** How thick and in which colour a lane is, by state: the same as in the static chart (report/src/svg/time/lanes.rs). */
const LOOKS = [
  { width: 10, colour: "--c2" },
  { width: 6, colour: "--c4" },
  { width: 3, colour: "--c1" },
];

/** Progress: a lane a node, drawn where it answered, as thick as it is near the highest. The states are in the data. */
function lanes(trial: Trial, figure: HTMLElement) {
  const wanted = (figure.dataset.series ?? "").split(" ");
  const of = trial.index.lanes.find((one) => one.lanes.some((lane) => wanted.includes(`${lane.source}.${one.name}`)));
  const nodes = of?.lanes ?? [];
  const words = ["with the highest", `up to ${of?.near_max ?? 0} ${of?.unit ?? ""} behind`, "more behind"];
  const lines = nodes.flatMap((node, row): Line[] => {
    const [state, reached, behind] = [trial.array(node.state), trial.array(node.reached), trial.array(node.behind)];
    const lane = nodes.length - row;
    const exact = (column: number) => {
      const less = behind[column] ?? NaN;
      if (Number.isNaN(less)) return "no answer";
      return `${plain(reached[column])}${less >= 1 ? ` (${plain(less)} behind)` : ""}`;
    };
    const key = `${node.source}.${of?.name ?? ""}`;
    const drawn = LOOKS.map((look, is): Line => {
      // Up to the middle of the next column, where the next stretch begins.
      const goesOn = (at: number) => state[at - 1] === is && (state[at] ?? 3) < LOOKS.length;
      const values = state.map((one, at) => (one === is || goesOn(at) ? lane : NaN));
      return { name: `${node.source}, ${words[is] ?? ""}`, key, values, ...look, exact, isDrawnOnly: true };
    });
    const told: Line = { name: node.source, key, values: reached, colour: "--muted", exact, unseen: true };
    return [told, ...drawn.filter((line) => line.values.some((value) => !Number.isNaN(value)))];
  });
  const names = nodes.map((node) => node.source).reverse();
  const axis = (value: number) => (Number.isInteger(value) ? (names[value - 1] ?? "") : "");
  const fixed: [number, number] = [0.4, nodes.length + 0.6];
  return { lines, height: 44 + 16 * nodes.length, fixed, every: 1, unit: "", axis };
}

function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return value === 0 ? "0" : `${Number(size.toPrecision(3))} ${units[unit]}`;
}
