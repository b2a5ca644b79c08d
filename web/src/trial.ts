//! One trial of the packed data: its index as Rust writes it, and its columns, decoded when a chart first asks.
//! It must never compute a figure of the result; rates are counts by the length of a column, and that is all.

import type { ArrayRef, Packed } from "./packed";

export interface PageIndex {
  form: string;
  runs: { name: string; trials: number[] }[];
  trials: TrialIndex[];
}

export interface Band {
  kind: "warm-up" | "drain" | "step" | "fault";
  from_ns: number;
  to_ns: number;
  label: string;
}

export interface Moment {
  at_ns: number;
  name: string;
  detail: string;
}

export interface SeriesIndex {
  source: string;
  name: string;
  /** The word of its unit, for the axis, and how its values are written: as they are declared. */
  unit: string;
  form: "bytes" | "duration" | "number";
  min: ArrayRef;
  mean: ArrayRef;
  max: ArrayRef;
}

/** One series of progress: how each of several nodes stands. */
export interface LanesIndex {
  name: string;
  unit: string;
  near_max: number;
  lanes: LaneIndex[];
}

/** States are 0 with the highest, 1 near it, 2 far behind, 3 absent. */
export interface LaneIndex {
  source: string;
  state: ArrayRef;
  reached: ArrayRef;
  behind: ArrayRef;
}

type ColumnName = "offered" | "sent" | "committed" | "outstanding" | QuantileName | "own_lag_p99_ns";
export type QuantileName = "p50_ns" | "p99_ns" | "p999_ns" | "max_ns";

type SlowArray =
  | "column" | "tx" | "due" | "ready" | "sent" | "end" | "outcome" | "code" | "error" | "kind"
  | "connection" | "worker" | "stream";

export interface TrialIndex extends Partial<Record<ColumnName, ArrayRef>> {
  key: string;
  path: string;
  stream: string;
  start_ns: number;
  width_ns: number;
  end_ns: number;
  columns: number;
  stages: string[];
  final_stage: number;
  failed: Record<string, ArrayRef>;
  reached: ArrayRef[];
  density?: { from_ns: number; per_decade: number; cells: ArrayRef; bucket: ArrayRef; count: ArrayRef };
  slow?: Partial<Record<SlowArray, ArrayRef>> & { marks: ArrayRef[] };
  outcomes: string[];
  errors: string[];
  kinds: string[];
  bands: Band[];
  moments: Moment[];
  series: SeriesIndex[];
  lanes: LanesIndex[];
}

/** Densities in the order of columns. */
export interface Density {
  from_ns: number;
  per_decade: number;
  cells: Float64Array;
  bucket: Float64Array;
  count: Float64Array;
}

/** One of a second's slowest; times are nanoseconds, missing ones null. All but `due` count from it. */
export interface SlowTransaction {
  column: number;
  tx: number;
  due: number;
  ready: number | null;
  sent: number | null;
  marks: { stage: string; after_due: number | null }[];
  end: number | null;
  /** To the final stage; null if it never got there. */
  response: number | null;
  service: number | null;
  outcome: string;
  code: number | null;
  error: string;
  kind: string;
  connection: number | null;
  worker: number | null;
  stream: number | null;
}

export class Trial {
  private readonly decoded = new Map<ArrayRef, Float64Array>();
  private slowRows: SlowTransaction[] | undefined;

  constructor(
    readonly number: number,
    readonly index: TrialIndex,
    private readonly packed: Packed<PageIndex>,
  ) {}

  /** The middle of each column, seconds after the trial's start. */
  get seconds(): Float64Array {
    const { start_ns, width_ns, columns } = this.index;
    return Float64Array.from({ length: columns }, (_, i) => (start_ns + (i + 0.5) * width_ns) / 1e9);
  }

  /** Start and end of the whole trial, seconds. */
  get span(): [number, number] {
    return [this.index.start_ns / 1e9, this.index.end_ns / 1e9];
  }

  /** Start and end of a column, nanoseconds; the last reaches to the end of the trial. */
  columnSpan(column: number): [number, number] {
    const { start_ns, width_ns, columns, end_ns } = this.index;
    const from = start_ns + column * width_ns;
    return [from, column + 1 < columns ? from + width_ns : end_ns];
  }

  get column_s(): number {
    return this.index.width_ns / 1e9;
  }

  /** The column that a moment lies in. */
  columnAt(ns: number): number {
    return Math.min(Math.floor((ns - this.index.start_ns) / this.index.width_ns), this.index.columns - 1);
  }

  array(ref: ArrayRef | undefined): Float64Array {
    if (ref === undefined) return new Float64Array(this.index.columns).fill(NaN);
    let values = this.decoded.get(ref);
    if (values === undefined) {
      values = this.packed.values(ref);
      this.decoded.set(ref, values);
    }
    return values;
  }

  column(name: ColumnName): Float64Array {
    return this.array(this.index[name]);
  }

  density(): Density | null {
    const density = this.index.density;
    if (density === undefined || density.count.n === 0) return null;
    return {
      from_ns: density.from_ns,
      per_decade: density.per_decade,
      cells: this.array(density.cells),
      bucket: this.array(density.bucket),
      count: this.array(density.count),
    };
  }

  slow(): SlowTransaction[] {
    this.slowRows ??= this.readSlow();
    return this.slowRows;
  }

  private readSlow(): SlowTransaction[] {
    const { slow, stages, final_stage, outcomes, errors, kinds } = this.index;
    if (slow?.column === undefined) return [];
    const columns = this.array(slow.column);
    const of = (name: SlowArray) => {
      const ref = slow[name];
      const values = ref === undefined ? undefined : this.array(ref);
      return (i: number) => number(values?.[i]);
    };
    const [tx, due, ready, sent, end] = [of("tx"), of("due"), of("ready"), of("sent"), of("end")];
    const [outcome, code, error, kind] = [of("outcome"), of("code"), of("error"), of("kind")];
    const [connection, worker, stream] = [of("connection"), of("worker"), of("stream")];
    const marks = slow.marks.map((ref) => this.array(ref));
    const rows = Array.from(columns, (column, i): SlowTransaction => {
      const response = number(marks[final_stage]?.[i]);
      const after = sent(i);
      return {
        column,
        tx: tx(i) ?? 0,
        due: due(i) ?? 0,
        ready: ready(i),
        sent: after,
        marks: stages.map((stage, s) => ({ stage, after_due: number(marks[s]?.[i]) })),
        end: end(i),
        response,
        service: response === null || after === null ? null : response - after,
        outcome: outcomes[outcome(i) ?? -1] ?? "",
        code: code(i),
        error: errors[error(i) ?? 0] ?? "",
        kind: kinds[kind(i) ?? -1] ?? "",
        connection: connection(i),
        worker: worker(i),
        stream: stream(i),
      };
    });
    // Slowest first; those that got no answer are the slowest of all.
    return rows.sort((a, b) => a.column - b.column || (b.response ?? Infinity) - (a.response ?? Infinity) || a.tx - b.tx);
  }
}

function number(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}
