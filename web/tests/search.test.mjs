//! The pages of a search, of a history and of two reports, on a laptop and a telephone. `ASSAY_PAGES` names the folder that
//! has them.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { browser } from "./browser.mjs";
import { open } from "./subject.mjs";

const WINDOWS = { laptop: { width: 1280, height: 800 }, telephone: { width: 390, height: 844 } };
const folder = process.env.ASSAY_PAGES;
const skip = folder === undefined ? "ASSAY_PAGES names no folder" : false;
const file = (name) => path.join(folder, `${name}.html`);

let launched;
before(async () => (launched = await browser()));
after(() => launched.close());

/** A page without its script, with a picture of it beside its file, and no wider than its window. */
async function shown(name, viewport, look) {
  const { page, done } = await open(launched, file(name), { viewport, javaScriptEnabled: false });
  await page.waitForTimeout(200);
  await page.screenshot({ path: path.join(folder, `${name}-${viewport.width}.png`), fullPage: true });
  await look(page);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `the page is ${over} px wider than its window`);
  await done();
}

for (const [device, viewport] of Object.entries(WINDOWS)) {
  describe(`on a ${device}`, { skip }, () => {
    /** Claim: who has only the page reads the rate or why there is none, how sure it is, and every trial with its purpose. */
    test("search", () =>
      shown("search", viewport, async (page) => {
        const { search, reason } = JSON.parse(readFileSync(path.join(folder, "search.json"), "utf8"));
        const text = (await page.locator("body").innerText()).replaceAll(/\s+/g, " ");
        assert.ok(text.includes(reason), `the page does not say: ${reason}`);
        const heading = page.getByText(reason.split(";")[0]).first();
        const box = await heading.boundingBox();
        assert.ok(box !== null && box.y + box.height <= viewport.height, "the result is in sight");
        const table = page.locator("table", { hasText: "purpose" }).first();
        const rows = await table.locator("tbody tr").count();
        assert.equal(rows, search.trials.length, "each trial has a row");
        assert.ok((await page.locator("figure svg").count()) > 0, "the curve is drawn");
      }));

    /** Claim: a history shows each number over its runs: the median, of which two seconds have enough samples. */
    test("trend", () =>
      shown("trend", viewport, async (page) => {
        assert.ok((await page.locator("figure svg").count()) > 0, "a chart over the runs");
        assert.ok((await page.locator("body").innerText()).includes("p50"), "p50 is named");
      }));

    /** Claim: two reports on one page fit the window, and no two landmarks have one name. */
    test("two reports", () =>
      shown("two", viewport, async (page) => {
        const names = await page.locator("nav, section[aria-label], section[aria-labelledby]").evaluateAll((all) =>
          all.map((it) => {
            const by = (it.getAttribute("aria-labelledby") ?? "").split(" ").filter((id) => id !== "");
            const labels = by.map((id) => document.getElementById(id)?.textContent);
            return `${it.tagName} ${it.getAttribute("aria-label") ?? labels.join(" ")}`;
          }),
        );
        assert.deepEqual(names, [...new Set(names)], "landmarks of one name");
      }));
  });
}
