//! How soon the first complete picture is there, of pages as large as they get, beside a small page in the same run:
//! what a millisecond is worth here is the machine's. `cargo xtask bench page` measures real pages.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { browser } from "./browser.mjs";
import { fixture } from "./fixture.mjs";
import { open } from "./subject.mjs";

/** The best of so many counts: what else the machine does is not the page's. */
const TRIES = 3;
/** A page of a hundred million rows may take this many times what one of two minutes takes. */
const RATIO_MAX = 6;

const folder = mkdtempSync(path.join(tmpdir(), "assay-speed-"));
let launched;
before(async () => (launched = await browser()));
after(async () => {
  await launched.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Milliseconds until the picture is complete. */
async function drawn(file, fragment) {
  const { page, done } = await open(launched, file, { fragment });
  const took = await page.evaluate(() => performance.getEntriesByName("assay-drawn").at(-1).startTime);
  await done();
  return took;
}

function written(name, size) {
  const { html } = fixture({ perColumn: 600, hasLanes: false, ...size });
  const file = path.join(folder, `${name}.html`);
  writeFileSync(file, html);
  return { file, bytes: html.length };
}

for (const [name, size, bytes_max] of [
  ["10 million rows: 4 trials of 900 columns, 16 series", { settings: 4, columns: 900, series: 16 }, 1.6e6],
  ["100 million rows: 8 trials of 1,200 columns, 16 series", { settings: 8, columns: 1200, series: 16 }, 4e6],
])
  /** Claim: a page of this size is drawn in a small multiple of the time of a small one, whatever is in sight. */
  test(name, async () => {
    const large = written("large", size);
    const small = written("small", { settings: 1, columns: 120, series: 4 });
    assert.ok(large.bytes < bytes_max, `${large.bytes} bytes`);
    for (const fragment of ["", "#r0-time"]) {
      const took = { large: [], small: [] };
      for (let i = 0; i < TRIES; i++) {
        took.small.push(await drawn(small.file, fragment));
        took.large.push(await drawn(large.file, fragment));
      }
      const ratio = Math.min(...took.large) / Math.min(...took.small);
      const shown = (of) => of.map(Math.round).join(", ");
      console.log(
        `${name} ${fragment || "at its top"}: ${large.bytes} bytes, drawn after ${shown(took.large)} ms; ` +
          `small page ${shown(took.small)} ms; ratio of the best ${ratio.toFixed(1)}`,
      );
      assert.ok(ratio < RATIO_MAX, `${ratio.toFixed(1)} times a small page`);
    }
  });
