//! The numbers of a time chart as tables, made when their disclosure is first opened.

import type { CopiedCell } from "./copied";
import { element } from "./element";
import type { Spec } from "./lines";
import { clock, exactDuration, plain } from "./quantity";
import { build, row } from "./table";
import type { Trial } from "./trial";

/** Fills the figure's disclosure when it is opened; makes one if there is none. */
export function fillWhenOpened(figure: HTMLElement, trial: Trial, spec: Spec, title: string): void {
  let details = figure.querySelector<HTMLDetailsElement>("details.as-table");
  if (details === null) {
    details = element("details", { class: "as-table" }, element("summary", {}, "Table"));
    figure.append(details);
  }
  const found = details;
  found.addEventListener(
    "toggle",
    () => {
      const summary = found.querySelector("summary") ?? element("summary", {}, "Table");
      found.replaceChildren(summary, ...tables(trial, spec, title));
    },
    { once: true },
  );
}

function tables(trial: Trial, spec: Spec, title: string): HTMLElement[] {
  const out = [columns(trial, spec, title)];
  if (spec.labels !== true) return out;
  if (trial.slow().length > 0) out.push(slowest(trial));
  if (trial.index.bands.length + trial.index.moments.length > 0) out.push(happenings(trial));
  return out;
}

function columns(trial: Trial, spec: Spec, title: string): HTMLElement {
  const heads: [string, "number" | "text"][] = [["from", "number"]];
  const cells: ((column: number) => CopiedCell)[] = [(i) => timeCell(trial.index.start_ns + i * trial.index.width_ns, trial)];
  for (const line of spec.lines.filter((line) => line.isDrawnOnly !== true)) {
    heads.push([line.name, "number"]);
    const isSimple = line.more === undefined;
    cells.push((i) => cell(isSimple ? line.exact(i) : plain(line.values[i]), line.values[i]));
    for (const { name, values } of line.more ?? []) {
      heads.push([name, "number"]);
      cells.push((i) => cell(plain(values[i]), values[i]));
    }
  }
  const rows = Array.from({ length: trial.index.columns }, (_, i) => row(cells.map((make) => make(i))));
  return build(title, `${title}: columns of ${exactDuration(trial.index.width_ns)}`, heads, rows);
}

function slowest(trial: Trial): HTMLElement {
  const { stages, final_stage } = trial.index;
  const others = stages.filter((_, i) => i !== final_stage);
  const heads: [string, "number" | "text"][] = [
    ["due", "number"], ["transaction", "number"], ["response time", "number"], ["service time", "number"],
    ["outcome", "text"], ["ready after due", "number"], ["sent after due", "number"],
    ...others.map((stage): [string, "number"] => [`${stage} after due`, "number"]),
    ["end after due", "number"], ["code", "number"], ["error", "text"], ["target", "text"], ["connection", "number"],
    ["worker", "number"],
  ];
  const time = (ns: number | null) => cell(exactDuration(ns), ns);
  const number = (value: number | null) => cell(value === null ? "–" : String(value), value);
  const words = (text: string) => ({ text: text || "–", raw: null });
  const rows = trial.slow().map((tx) =>
    row([
      time(tx.due), number(tx.tx), time(tx.response), time(tx.service), words(tx.outcome), time(tx.ready), time(tx.sent),
      ...tx.marks.filter(({ stage }) => others.includes(stage)).map(({ after_due }) => time(after_due)),
      time(tx.end), number(tx.code), words(tx.error), words(tx.kind), number(tx.connection), number(tx.worker),
    ]),
  );
  return build("slowest transactions", "The slowest transactions of each column of time", heads, rows);
}

function happenings(trial: Trial): HTMLElement {
  const { bands, moments } = trial.index;
  const all = [
    ...bands.map((band) => ({ from: band.from_ns, to: band.to_ns, what: band.kind as string, words: band.label })),
    ...moments.map((moment) => ({ from: moment.at_ns, to: moment.at_ns, what: moment.name, words: moment.detail })),
  ].sort((a, b) => a.from - b.from);
  const rows = all.map(({ from, to, what, words }) =>
    row([timeCell(from, trial), timeCell(to, trial), { text: what, raw: null }, { text: words || "–", raw: null }]),
  );
  const heads: [string, "number" | "text"][] = [["from", "number"], ["to", "number"], ["what", "text"], ["in words", "text"]];
  return build("bands and moments", "What happened when", heads, rows);
}

function timeCell(ns: number, trial: Trial): CopiedCell {
  return { text: clock(ns / 1e9, trial.span[1]), raw: String(ns) };
}

function cell(text: string, value: number | null | undefined): CopiedCell {
  return { text, raw: value === null || value === undefined || Number.isNaN(value) ? null : String(value) };
}
