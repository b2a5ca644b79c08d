//! Pictures of the fixture page against checked-in ones. `UPDATE_SCREENSHOTS=1 npm test` writes them anew: look at them
//! before they are committed.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { PNG } from "pngjs";
import { browser } from "./browser.mjs";
import { fixture } from "./fixture.mjs";
import { chart, open, pointAt } from "./subject.mjs";

const kept = path.join(path.dirname(fileURLToPath(import.meta.url)), "screenshots");
/** A pixel is different when a channel is by more than this, of 255: below lies what another version's smoothing does. */
const CHANNEL_MAX = 48;
/** So many pixels in a thousand may be different: a letter's edge here and there, but no line, label or colour. */
const PER_MILLE_MAX = 4;

const folder = mkdtempSync(path.join(tmpdir(), "assay-look-"));
const file = path.join(folder, "fixture.html");
writeFileSync(file, fixture({ font: "DejaVu Sans" }).html);
let launched;
before(async () => (launched = await browser()));
after(async () => {
  await launched.close();
  rmSync(folder, { recursive: true, force: true });
});

function compare(name, taken) {
  const stored = path.join(kept, `${name}.png`);
  if (process.env.UPDATE_SCREENSHOTS) {
    mkdirSync(kept, { recursive: true });
    writeFileSync(stored, taken);
    return;
  }
  const [a, b] = [PNG.sync.read(readFileSync(stored)), PNG.sync.read(taken)];
  assert.deepEqual([b.width, b.height], [a.width, a.height], `${name} has another size`);
  let different = 0;
  for (let i = 0; i < a.data.length; i += 4)
    if ([0, 1, 2].some((channel) => Math.abs(a.data[i + channel] - b.data[i + channel]) > CHANNEL_MAX)) different++;
  const share = (1000 * different) / (a.width * a.height);
  if (share > PER_MILLE_MAX) writeFileSync(path.join(tmpdir(), `assay-${name}.png`), taken);
  assert.ok(share <= PER_MILLE_MAX, `${name}: ${share.toFixed(1)} of 1,000 pixels differ (taken: ${tmpdir()}/assay-${name}.png)`);
}

for (const scheme of ["light", "dark"]) {
  /** Claim: the head, the latency chart with its cursor, the panel and the small multiples look as they did. */
  test(`looks as it did, ${scheme}`, async () => {
    const { page, done } = await open(launched, file, { colorScheme: scheme, viewport: { width: 1000, height: 640 } });
    compare(`head-${scheme}`, await page.screenshot());
    const latency = await chart(page, "latency");
    await pointAt(page, latency, 20, 60, 0.1);
    await page.waitForTimeout(50);
    compare(`latency-${scheme}`, await latency.screenshot());
    compare(`rates-${scheme}`, await (await chart(page, "rates")).screenshot());
    await page.mouse.move(0, 0);
    await latency.locator(".plot").focus();
    await page.keyboard.press("Enter");
    compare(`panel-${scheme}`, await latency.locator(".slow").screenshot());
    await chart(page, "series");
    await page.waitForTimeout(200);
    compare(`nodes-${scheme}`, await page.locator("#r0-nodes").screenshot());
    await done();
  });

  /** Claim: so does the page on a telephone. */
  test(`looks as it did, narrow, ${scheme}`, async () => {
    const { page, done } = await open(launched, file, { colorScheme: scheme, viewport: { width: 360, height: 1500 } });
    await page.waitForTimeout(200);
    compare(`narrow-${scheme}`, await page.screenshot());
    await done();
  });
}
