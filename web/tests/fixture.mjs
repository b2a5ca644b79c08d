//! A page as Rust would write it, from a seed: for tests of the script alone, and for screenshots that must not change
//! when a measurement does. With its result document, so that every number shown can be compared.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { Packer } from "./pack.mjs";
import { page } from "./fixture_page.mjs";

const dist = path.join(path.dirname(fileURLToPath(import.meta.url)), "../dist");
const SECOND = 1e9;

/** Numbers in [0, 1) from a seed (mulberry32). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Response times of one column: logarithmic-normal, with a tail, slower while frozen. */
function sampleColumn(rand, count, scale_ns) {
  const normal = () => Math.sqrt(-2 * Math.log(1 - rand())) * Math.cos(2 * Math.PI * rand());
  return Array.from({ length: count }, () => Math.round(scale_ns * Math.exp(0.55 * normal() + (rand() < 0.01 ? 2 : 0))));
}

function trialOf(seed, setting, { columns, series, perColumn, hasLanes }) {
  const rand = random(seed);
  const width = SECOND;
  const timeline = { start_ns: 0, width_ns: width, columns: [] };
  const density = { cells: [], bucket: [], count: [] };
  const slow = [];
  let tx = 9_007_199_000_000 + seed * 1000;
  const frozen = [Math.floor(columns * 0.5), Math.floor(columns * 0.5) + Math.max(2, Math.floor(columns / 60))];
  let waiting = 0;
  for (let c = 0; c < columns; c++) {
    const isFrozen = c >= frozen[0] && c < frozen[1];
    const offered = Math.round(perColumn * (0.9 + 0.2 * rand()) * (c < columns * 0.7 ? 1 : 1.4));
    const isDraining = c >= columns - 2;
    const due = isDraining ? 0 : offered;
    const times = sampleColumn(rand, due, (isFrozen ? 600e6 : 8e6) * setting.load * (1 + 0.4 * Math.sin(c / 23)));
    times.sort((a, b) => a - b);
    const at = (q) => (times.length === 0 ? null : times[Math.min(times.length - 1, Math.ceil(q * times.length) - 1)]);
    const limited = setting.limited && c % 7 < 3 ? Math.round(due * 0.12) : 0;
    const unknown = isFrozen ? Math.round(due * 0.2) : 0;
    const committed = Math.max(0, due - limited - unknown - (isFrozen ? Math.round(due * 0.5) : 0));
    waiting = isFrozen ? waiting + due : Math.round(waiting * 0.4) + Math.round(due * 0.02);
    timeline.columns.push({
      offered: due, sent: due, committed,
      failed: { ...(limited > 0 ? { limited } : {}), ...(unknown > 0 ? { unknown } : {}) },
      reached: [Math.max(committed, Math.round(due * 0.99)), committed],
      outstanding: waiting,
      p50_ns: at(0.5), p99_ns: at(0.99), p999_ns: at(0.999), max_ns: at(1),
      own_lag_p99_ns: due === 0 ? null : Math.round(4e4 + 3e4 * rand()),
    });
    const cells = new Map();
    for (const ns of times) {
      const bucket = Math.floor(Math.log10(Math.max(1000, ns) / 1000) * 24 + 1e-9);
      cells.set(bucket, (cells.get(bucket) ?? 0) + 1);
    }
    const sorted = [...cells].sort((a, b) => a[0] - b[0]);
    density.cells.push(sorted.length);
    for (const [bucket, count] of sorted) {
      density.bucket.push(bucket);
      density.count.push(count);
    }
    for (const [i, ns] of times.slice(-8).reverse().entries()) {
      const lost = isFrozen && i < 3;
      const at_ns = c * width + Math.floor(rand() * width);
      slow.push({ column: c, tx: tx++, due: at_ns, ready: 1200, sent: 61_234, accepted: Math.round(ns * 0.6), committed: lost ? null : ns,
        end: lost ? 5e9 : ns, outcome: lost ? 1 : 0, code: lost ? null : 200, error: lost ? 1 : 0, kind: i % 2, connection: i % 4, worker: i % 2, stream: 0 });
    }
  }
  const metrics = ["cpu_cores", "rss_bytes", "run_queue", "steal_percent"];
  const sources = ["generator", "host", "echo-0", "echo-1"];
  const all = Array.from({ length: series }, (_, i) => {
    const [source, name] = [sources[Math.floor(i / metrics.length) % sources.length], metrics[i % metrics.length]];
    const base = [0.8, 64e6, 1.5, 0.4][i % metrics.length] * (1 + Math.floor(i / metrics.length) * 0.4);
    let level = base;
    const mean = Array.from({ length: columns }, () => (level = Math.max(0, level + base * 0.04 * (rand() - 0.5))));
    const spread = mean.map((v) => v * 0.08 * rand());
    return { source, name, min: mean.map((v, c) => v - spread[c]), mean, max: mean.map((v, c) => v + spread[c]) };
  });
  const bands = [
    { kind: "warm-up", from_ns: 0, to_ns: Math.max(1, Math.floor(columns * 0.05)) * SECOND, label: "warm-up" },
    { kind: "step", from_ns: Math.floor(columns * 0.05) * SECOND, to_ns: Math.floor(columns * 0.7) * SECOND, label: `${perColumn}/s` },
    { kind: "step", from_ns: Math.floor(columns * 0.7) * SECOND, to_ns: (columns - 2) * SECOND, label: `${Math.round(perColumn * 1.4)}/s` },
    { kind: "fault", from_ns: frozen[0] * SECOND, to_ns: frozen[1] * SECOND, label: "pause echo-0" },
    { kind: "drain", from_ns: (columns - 2) * SECOND, to_ns: columns * SECOND, label: "drain" },
  ];
  const moments = [{ at_ns: (frozen[1] + 1) * SECOND, name: "connection lost", detail: "3, reopened" }];
  return { timeline, density, slow, series: all, lanes: hasLanes ? [lanesOf(columns)] : [], bands, moments };
}

/** What is declared of the series. */
const UNITS = { cpu_cores: ["cores", "number"], rss_bytes: ["", "bytes"], run_queue: ["", "number"], steal_percent: ["%", "number"] };

/** Pages that two nodes have turned: one is down for a while, then far behind, then near. */
function lanesOf(columns) {
  const states = Array.from({ length: columns }, (_, c) => (c < 10 ? 0 : c < 15 ? 3 : c < 20 ? 2 : c < 25 ? 1 : 0));
  const behind = states.map((state) => [0, 7, 70, null][state]);
  const reached = behind.map((less, c) => (less === null ? null : 1000 + 10 * c - less));
  const ahead = { source: "echo-0", state: states.map(() => 0), reached: states.map((_, c) => 1000 + 10 * c), behind: states.map(() => 0) };
  return { name: "turned", unit: "pages", near_max: 20, lanes: [ahead, { source: "echo-1", state: states, reached, behind }] };
}

function indexOf(packer, key, t, trial) {
  const { columns } = trial.timeline;
  const of = (name) => columns.map((c) => c[name]);
  const classes = [...new Set(columns.flatMap((c) => Object.keys(c.failed)))].sort();
  const slow = (name) => trial.slow.map((row) => row[name]);
  return {
    key, path: `settings/${key.replaceAll("/", "_")}/trial-${t}`, stream: "main",
    start_ns: trial.timeline.start_ns, width_ns: trial.timeline.width_ns, end_ns: columns.length * trial.timeline.width_ns, columns: columns.length,
    stages: ["accepted", "committed"], final_stage: 1,
    offered: packer.int(of("offered")), sent: packer.int(of("sent")), committed: packer.int(of("committed")),
    outstanding: packer.int(of("outstanding")),
    failed: Object.fromEntries(classes.map((name) => [name, packer.int(columns.map((c) => c.failed[name] ?? 0))])),
    reached: [0, 1].map((s) => packer.int(columns.map((c) => c.reached[s]))),
    ...Object.fromEntries(["p50_ns", "p99_ns", "p999_ns", "max_ns", "own_lag_p99_ns"].map((name) => [name, packer.maybe(of(name))])),
    density: { from_ns: 1000, per_decade: 24, cells: packer.int(trial.density.cells), bucket: packer.int(trial.density.bucket), count: packer.int(trial.density.count) },
    slow: {
      ...Object.fromEntries(["column", "tx", "due", "outcome", "error", "kind", "connection", "worker", "stream"].map((name) => [name, packer.int(slow(name))])),
      ...Object.fromEntries(["ready", "sent", "end", "code"].map((name) => [name, packer.maybe(slow(name))])),
      marks: [packer.maybe(slow("accepted")), packer.maybe(slow("committed"))],
    },
    outcomes: ["committed", "unknown"], errors: ["", "no answer within 5s"], kinds: ["GET /", "GET /slow"],
    bands: trial.bands, moments: trial.moments,
    lanes: trial.lanes.map((of) => ({ ...of, lanes: of.lanes.map((lane) => ({
      source: lane.source, state: packer.int(lane.state), reached: packer.maybe(lane.reached), behind: packer.maybe(lane.behind) })) })),
    series: trial.series.map((s) => ({ source: s.source, name: s.name, unit: UNITS[s.name][0], form: UNITS[s.name][1], min: packer.real(s.min), mean: packer.real(s.mean), max: packer.real(s.max) })),
  };
}

/** `{ html, summary }` of a run with these settings. */
export function fixture({ columns = 60, series = 8, settings = 3, perColumn = 400, hasLanes = true, font = "" } = {}) {
  const named = ["rate=60/s", "rate=110/s", "server=limited,rate=60/s"];
  const keys = Array.from({ length: settings }, (_, i) => named[i] ?? `rate=${60 + 50 * i}/s`);
  const packer = new Packer();
  const trials = keys.map((key, i) => trialOf(11 + i, { load: 1 + i * 0.5, limited: i === 2 }, { columns, series, perColumn, hasLanes }));
  const index = {
    form: "assay.page/1",
    runs: [{ name: "fixture", trials: keys.map((_, i) => i) }],
    trials: trials.map((trial, i) => indexOf(packer, keys[i], 0, trial)),
  };
  const summary = {
    schema: "assay.result/2", name: "fixture",
    settings: keys.map((key, i) => ({ key, trials: [{ path: index.trials[i].path, timeline: trials[i].timeline, ...totals(trials[i]) }] })),
  };
  // Pictures are compared across machines, whose system fonts differ.
  const fixed = font === "" ? "" : `:root{--font:"${font}"}`;
  const css = readFileSync(path.join(dist, "page.css"), "utf8") + fixed;
  const js = readFileSync(path.join(dist, "page.js"), "utf8");
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = `default-src 'none'; style-src ${hash(css)}; script-src ${hash(js)}; base-uri 'none'; form-action 'none'`;
  return { html: page({ css, js, policy, summary, index, trials, packed: packer.pack(index) }), summary };
}

function totals(trial) {
  const sum = (name) => trial.timeline.columns.reduce((a, c) => a + c[name], 0);
  const worst = Math.max(...trial.timeline.columns.map((c) => c.p99_ns ?? 0));
  return { counts: { due: sum("offered"), committed: sum("committed") }, worst_p99_ns: worst };
}
