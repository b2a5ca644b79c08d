//! Starts the page: what is in sight first, the rest when it comes near. It must never send a request, and whatever
//! fails must leave the page as it was without a script.

import { TimeChart } from "./chart";
import { addDownload } from "./download";
import { announce, element } from "./element";
import { addFilter } from "./filter";
import { Packed } from "./packed";
import { onSchemeChange } from "./palette";
import { printable } from "./print";
import { addSelectors, showSelected } from "./selector";
import { BUILDERS } from "./specs";
import { enrich } from "./table";
import { SlowTail } from "./tail";
import { placeTerms } from "./terms";
import { fillWhenOpened } from "./timetable";
import { addNavigation } from "./toc";
import { type PageIndex, Trial } from "./trial";
import { View } from "./view";

/** Charts are drawn this far before they come into sight. */
const AHEAD = "300px";

const charts: TimeChart[] = [];

async function start(): Promise<void> {
  const data = document.getElementById("assay-data")?.textContent;
  const packed = await Packed.open<PageIndex>(data ?? "");
  const { runs, trials } = packed.index;
  const view = new View(runs.map((run) => run.trials.map((number) => ({ number, key: trials[number]?.key ?? "" }))));
  addNavigation(view);
  addSelectors(packed.index, view);
  showSelected(view);
  const opened = new Map<number, Trial>();
  const trialOf = (number: number): Trial | undefined => {
    const index = trials[number];
    if (index === undefined) return undefined;
    const trial = opened.get(number) ?? new Trial(number, index, packed);
    opened.set(number, trial);
    return trial;
  };
  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((entry) => entry.isIntersecting)) {
        near.unobserve(entry.target);
        attempt(() => open(entry.target as HTMLElement, trialOf, view));
      }
      performance.mark("assay-drawn");
    },
    { rootMargin: AHEAD },
  );
  const figures = Array.from(document.querySelectorAll<HTMLElement>("figure.chart.time"));
  figures.forEach((figure) => near.observe(figure));
  if (figures.length === 0) performance.mark("assay-drawn");
  view.onChange(() => {
    showSelected(view);
    charts.forEach((chart) => (chart.resize(), chart.follow()));
  });
  onSchemeChange(() => charts.forEach((chart) => chart.redraw()));
  resizing();
  // A chart whose table was opened takes a row of its own.
  document.addEventListener("toggle", () => requestAnimationFrame(() => charts.forEach((chart) => chart.resize())), true);
  // Every time chart of the selected trials is printed, also those that nobody scrolled to.
  const openAll = () =>
    figures
      .filter((figure) => !isOpen(figure) && figure.closest("[hidden], details:not([open])") === null)
      .forEach((figure) => open(figure, trialOf, view));
  printable(() => charts, openAll);
  const nav = document.getElementById("toc");
  if (nav !== null) addFilter(nav, () => charts);
}

const isOpen = (figure: HTMLElement) => charts.some((chart) => chart.figure === figure);

function open(figure: HTMLElement, trialOf: (number: number) => Trial | undefined, view: View): void {
  const holder = figure.querySelector<HTMLElement>(".plot");
  const trial = trialOf(Number(figure.closest<HTMLElement>(".trial")?.dataset.trial ?? NaN));
  const build = BUILDERS[figure.dataset.chart ?? ""];
  if (holder === null || trial === undefined || build === undefined || isOpen(figure)) return;
  const drawing = holder.querySelector("svg");
  const chart = new TimeChart(figure, holder, trial, build(trial, figure), view);
  charts.push(chart);
  if (chart.spec.tail === true) chart.tail = new SlowTail(trial, holder);
  chart.draw();
  fillWhenOpened(figure, trial, chart.spec, chart.title());
  if (drawing !== null) addDownload(figure, drawing);
}

function resizing(): void {
  const observer = new ResizeObserver(() => {
    // Not within the observer's own turn: a chart's new height would be reported as a loop.
    requestAnimationFrame(() => charts.forEach((chart) => chart.resize()));
  });
  observer.observe(document.querySelector("main") ?? document.body);
}

/** What needs no data. */
function dress(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>("table.data")) {
    // Tables in a closed disclosure are dressed when they are opened: a page has hundreds of them.
    const details = table.closest("details");
    if (details === null || details.open) enrich(table);
    else if (table.closest("figure.time") === null) details.addEventListener("toggle", () => enrich(table), { once: true });
  }
  for (const figure of document.querySelectorAll<HTMLElement>("figure.chart:not(.time)")) {
    const drawing = figure.querySelector("svg");
    if (drawing !== null) addDownload(figure, drawing);
  }
  placeTerms();
}

function attempt(action: () => void): void {
  try {
    action();
  } catch (error) {
    failed(error);
  }
}

function failed(error: unknown): void {
  const words = `The interactive charts could not be drawn: ${error instanceof Error ? error.message : String(error)}`;
  console.error(words);
  document.documentElement.classList.add("script-failed");
  announce(words);
  if (document.getElementById("script-failed") === null)
    document.querySelector("main")?.prepend(element("p", { id: "script-failed", class: "warning" }, words));
}

attempt(dress);
start().catch(failed);
