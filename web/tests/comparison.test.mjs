//! The page of a comparison, on a laptop and a telephone: verdict, what changed most, and both sides on the same axes.
//! `ASSAY_COMPARISON` names a real one.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { browser } from "./browser.mjs";
import { open } from "./subject.mjs";

const WINDOWS = { laptop: { width: 1280, height: 800 }, telephone: { width: 390, height: 844 } };
const file = process.env.ASSAY_COMPARISON;

let launched;
before(async () => (launched = await browser()));
after(() => launched.close());

describe("comparison", { skip: file === undefined ? "ASSAY_COMPARISON names no page" : false }, () => {
  for (const [device, viewport] of Object.entries(WINDOWS)) {
    /** Claim: the verdict is in sight, each number has an answer, each side a curve, and nothing is wider than the window. */
    test(`on a ${device}`, async () => {
      // The page has no script.
      const { page, done } = await open(launched, file, { viewport, javaScriptEnabled: false });
      await page.waitForTimeout(200);
      await page.screenshot({ path: file.replace(/\.html$/, `-${viewport.width}.png`) });
      const verdict = await page.locator(".banner .word").first().boundingBox();
      assert.ok(verdict !== null && verdict.y + verdict.height <= viewport.height, "the verdict is in sight");
      const rows = await page.locator("table tbody tr", { hasText: /better|worse|equivalent|inconclusive/ }).count();
      assert.ok(rows >= 3, `${rows} numbers with an answer`);
      const legend = await page.locator("figure").allTextContents();
      assert.ok(legend.some((text) => text.includes("50/s") && text.includes("100/s")), "both sides in one figure");
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `the page is ${over} px wider than its window`);
      await done();
    });
  }
});
