//! What the vendored uPlot exports, with the one function that build.mjs appends to it.
import uPlot from "../vendor/uplot/uPlot.js";
/** Makes every chart draw with this many canvas pixels a CSS pixel. */
export declare function setPixelRatio(ratio: number): void;
export default uPlot;
