//! Which trial is shown: a choice at the head of each run's section on time, repeated where its charts go on.

import { element } from "./element";
import type { PageIndex } from "./trial";
import type { View } from "./view";

/** Sections whose charts are of one trial. */
const SECTIONS = ["time", "stages", "nodes"];

/** What the charts do, where they begin. */
const HINT =
  "Drag across response times or rates to zoom them, double-click to see all of it again; with the keyboard: arrows, + and −, Escape.";

export function addSelectors(index: PageIndex, view: View): void {
  index.runs.forEach((run, r) => {
    const hinted = ["verdict", "time"].map((key) => document.querySelector(`#r${r}-${key} .trial`));
    const [first, time] = hinted;
    if (first !== null && first !== undefined) first.after(element("p", { class: "hint" }, HINT));
    else time?.before(element("p", { class: "hint" }, HINT));
    if (run.trials.length < 2) return;
    const choices: HTMLSelectElement[] = [];
    for (const key of SECTIONS) {
      const section = document.getElementById(`r${r}-${key}`);
      const first = section?.querySelector(".trial");
      if (section === null || first === null || first === undefined) continue;
      const id = choices.length === 0 && r === 0 ? "setting" : `setting-${r}-${key}`;
      const options = run.trials.map((number) => element("option", { value: number }, label(index, run.trials, number)));
      const choice = element("select", { id, change: () => view.select(r, Number(choice.value)) }, ...options);
      choices.push(choice);
      first.before(element("div", { class: "choice" }, element("label", { for: id }, "Setting "), choice));
    }
    const follow = () => choices.forEach((choice) => (choice.value = String(view.trialOf(r))));
    follow();
    view.onChange(follow);
  });
}

function label(index: PageIndex, trials: number[], number: number): string {
  const key = index.trials[number]?.key || "the only setting";
  const same = trials.filter((other) => index.trials[other]?.key === index.trials[number]?.key);
  return same.length > 1 ? `${key} · trial ${same.indexOf(number)}` : key;
}

/** Hides every trial that was not chosen. */
export function showSelected(view: View): void {
  for (const trial of document.querySelectorAll<HTMLElement>(".trial")) {
    const isShown = view.isShown(Number(trial.dataset.trial));
    trial.hidden = !isShown;
    trial.classList.toggle("shown", isShown);
  }
}
