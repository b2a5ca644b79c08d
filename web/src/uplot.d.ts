//! What the vendored uPlot exports, with the one function that build.mjs adds to it.
import uPlot from "../vendor/uplot/uPlot.js";
/** Makes every chart draw with this many canvas pixels a CSS pixel; 0 = as the screen has. */
export declare function setPixelRatio(ratio: number): void;
export default uPlot;
