//! Which trial of each run is shown, and which stretch of time: what the URL's fragment keeps, so that a link opens
//! the same picture and the browser's back button undoes a zoom. It must never hold what cannot be put into a link.

/** A stretch of time, seconds after the trial's start. */
export type Range = [from: number, to: number];

/** A trial as the page names it. */
export interface TrialName {
  number: number;
  key: string;
}

/** Steps of the keyboard's zoom within this time are one step of the browser's history. */
const ONE_STEP_MS = 800;

export class View {
  range: Range | null = null;
  /** The run whose setting was chosen last: the one that a link names. */
  run = 0;
  /** The section that was gone to last, if any. */
  section = "";
  private readonly selected: number[];
  private readonly listeners: (() => void)[] = [];
  private changed_ms = 0;

  constructor(private readonly runs: TrialName[][]) {
    this.selected = runs.map((trials) => trials[0]?.number ?? -1);
    this.read();
    const again = () => {
      this.read();
      this.tell();
    };
    addEventListener("popstate", again);
    addEventListener("hashchange", again);
  }

  /** Calls back after every change. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  trialOf(run: number): number {
    return this.selected[run] ?? -1;
  }

  isShown(trial: number): boolean {
    return this.selected.includes(trial);
  }

  select(run: number, trial: number): void {
    if (this.selected[run] === trial) return;
    this.selected[run] = trial;
    this.run = run;
    this.write(false);
    this.tell();
  }

  zoom(range: Range | null, repeated = false): void {
    if (String(range) === String(this.range)) return;
    this.range = range;
    const now_ms = performance.now();
    this.write(repeated && now_ms - this.changed_ms < ONE_STEP_MS);
    this.changed_ms = now_ms;
    this.tell();
  }

  /** Remembers a section in the link without losing setting and zoom. */
  goTo(section: string): void {
    if (this.section === section) return;
    this.section = section;
    this.write(false);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }

  private write(inPlace: boolean): void {
    const words = new URLSearchParams();
    const trials = this.runs[this.run] ?? [];
    const shown = trials.findIndex((trial) => trial.number === this.selected[this.run]);
    const name = trials[shown];
    if (name !== undefined && (shown > 0 || this.run > 0)) {
      if (this.run > 0) words.set("run", String(this.run));
      words.set("setting", name.key);
      const nth = trials.slice(0, shown).filter((trial) => trial.key === name.key).length;
      if (nth > 0) words.set("trial", String(nth));
    }
    if (this.range !== null) {
      words.set("from", String(Number(this.range[0].toFixed(6))));
      words.set("to", String(Number(this.range[1].toFixed(6))));
    }
    let fragment = words.toString().replaceAll("%3D", "=").replaceAll("%2F", "/").replaceAll("%2C", ",");
    if (this.section !== "") fragment += fragment === "" ? this.section : `&at=${this.section}`;
    const target = `#${fragment}`;
    if (target === (location.hash || "#")) return;
    history[inPlace ? "replaceState" : "pushState"](null, "", target);
  }

  private read(): void {
    const text = location.hash.slice(1);
    const isState = text.includes("=");
    // "=" stays readable within a key, so only the first one of a word separates.
    const words = new Map<string, string>();
    for (const word of isState ? text.split("&") : []) {
      const at = word.indexOf("=");
      words.set(word.slice(0, at), decoded(word.slice(at + 1)));
    }
    this.section = isState ? (words.get("at") ?? "") : text;
    const run = Number(words.get("run") ?? 0);
    this.run = Number.isInteger(run) && run >= 0 && run < this.runs.length ? run : 0;
    const same = (this.runs[this.run] ?? []).filter((trial) => trial.key === words.get("setting"));
    const chosen = same[Number(words.get("trial") ?? 0)] ?? same[0] ?? this.runs[this.run]?.[0];
    if (chosen !== undefined) this.selected[this.run] = chosen.number;
    const [from, to] = [Number(words.get("from") ?? NaN), Number(words.get("to") ?? NaN)];
    this.range = Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : null;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}
