//! Paper: canvases are drawn again in the colours of paper, at its width, with three pixels where a screen has one.

import { setPixelRatio } from "uplot";
import type { TimeChart } from "./chart";
import { forgetColours } from "./palette";

/** 288 dots an inch. */
const PRINT_RATIO = 3;
/** The width of A4 and Letter within page.css's margins, CSS pixels, rounded down. */
const PAPER_PX = 680;

export function printable(charts: () => TimeChart[], openAll: () => void): void {
  addEventListener("beforeprint", () => {
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
    document.documentElement.classList.remove("printing");
    forgetColours();
    setPixelRatio(0);
    for (const chart of charts()) {
      chart.resize();
      chart.redraw();
    }
  });
}
