//! What a time chart shows, before anything is drawn: its lines, its axis, and the exact words for each column.

import type { Trial } from "./trial";

export interface Line {
  name: string;
  /** By column; NaN = missing. */
  values: Float64Array;
  /** CSS variable. */
  colour: string;
  /** Exact text of a column. */
  exact: (column: number) => string;
  width?: number;
  dash?: number[];
  /** Opacity of the area down to zero. */
  area?: number;
  /** A border in the page's colour, so that it stands out from a density. */
  halo?: boolean;
  /** Sampled more seldom than a column: a missing value says nothing, and the line goes on. */
  isSparse?: boolean;
  /** Lowest and highest of each column, as a band around the line. */
  band?: { low: Float64Array; high: Float64Array };
  /** Shown in the readout and the table, not drawn. */
  unseen?: boolean;
  /** Drawn, and neither in the readout nor in the table: another line has its numbers. */
  isDrawnOnly?: boolean;
  /** A name of its own for the filter. */
  key?: string;
  /** More columns of the table, between this line's and the next. */
  more?: { name: string; values: Float64Array }[];
}

export interface Spec {
  lines: Line[];
  height: number;
  logarithmic?: boolean;
  /** Lowest and highest of a fixed axis. */
  fixed?: [number, number];
  /** The axis has a number at each whole multiple of this. */
  every?: number;
  /** The unit, for the axis. */
  unit: string;
  axis: (value: number) => string;
  /** Steps of the axis are powers of two. */
  isBinary?: boolean;
  /** Shades what lies between neighbouring lines, as (upper, lower) indexes of lines. */
  between?: [number, number][];
  /** Zooms with the view; the others stay whole and show which stretch of them is looked at. */
  zooms?: boolean;
  /** With densities and slow transactions. */
  tail?: boolean;
  /** Labels of the bands, not only their shades. */
  labels?: boolean;
  /** The raw numbers of a table's column, if they are not the drawn ones. */
  raw?: (line: Line, column: number) => number;
}

/** Builds a chart's contents from a trial. */
export type Builder = (trial: Trial, figure: HTMLElement) => Spec;
