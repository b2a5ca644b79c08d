//! Paper: canvases are drawn again in the colours of paper, at its width, with three pixels where a screen has one.

import { setPixelRatio } from "uplot";
import type { TimeChart } from "./chart";
import { forgetColours } from "./palette";

/** 288 dots an inch. */
const PRINT_RATIO = 3;
/** The width of A4 and Letter within page.css's margins, CSS pixels, rounded down. */
const PAPER_PX = 680;

export function printable(charts: () => TimeChart[], openAll: () => void): void {
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    // On paper nothing can be unfolded.
    opened = Array.from(document.querySelectorAll<HTMLDetailsElement>("details.fold:not([open])"));
    for (const fold of opened) fold.open = true;
    document.documentElement.classList.add("printing");
    forgetColours();
    openAll();
    setPixelRatio(PRINT_RATIO);
    for (const chart of charts()) {
      const isHalf = chart.figure.closest(".multiples, .nodes") !== null;
      chart.resize(isHalf ? Math.floor(PAPER_PX / 2) - 12 : PAPER_PX);
      chart.redraw();
    }
  });
  addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
    opened = [];
    document.documentElement.classList.remove("printing");
    forgetColours();
    setPixelRatio(0);
    for (const chart of charts()) {
      chart.resize();
      chart.redraw();
    }
  });
}
