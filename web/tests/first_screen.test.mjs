//! What a reader sees before anything is scrolled, on the five typical pages: verdict, answer, numbers and the chart, by
//! their positions on a laptop and a telephone, light and dark. `ASSAY_TYPICAL` names a folder of reports; pictures of
//! them are written beside them to be looked at, those of whole pages only if `ASSAY_WHOLE_PAGES` is set: one takes ten seconds.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import { browser } from "./browser.mjs";
import { open } from "./subject.mjs";

const NAMES = ["one", "ramp", "rates", "network", "demo"];
const LAPTOP = { width: 1280, height: 800 };
const TELEPHONE = { width: 390, height: 844 };
const folder = process.env.ASSAY_TYPICAL;

let launched;
before(async () => (launched = await browser()));
after(() => launched.close());

/** Boxes of all elements of a selector that are shown. */
const boxes = (page, selector) =>
  page.locator(selector).evaluateAll((all) =>
    all.map((it) => it.getBoundingClientRect()).filter((box) => box.width > 0).map(({ left, top, right, bottom }) => ({ left, top, right, bottom })),
  );

const isInside = (box, { width, height }) => box.left >= 0 && box.top >= 0 && box.right <= width && box.bottom <= height;

/** Opens everything that is folded. */
const unfold = (page) => page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));

describe("typical pages", { skip: folder === undefined ? "ASSAY_TYPICAL names no folder of reports" : false }, () => {
  for (const name of NAMES) {
    const file = path.join(folder ?? "", `${name}.html`);
    for (const colorScheme of ["light", "dark"]) {
      /** Claim: on a laptop verdict, answer, numbers and the chart that answers are in sight before anything is scrolled. */
      test(`${name} on a laptop, ${colorScheme}`, async () => {
        assert.ok(existsSync(file), `${file} was made`);
        const { page, done } = await open(launched, file, { viewport: LAPTOP, colorScheme });
        await page.waitForTimeout(200);
        await page.screenshot({ path: path.join(folder, `${name}-1280-${colorScheme}.png`) });
        for (const [what, selector, least] of [
          ["the verdict", ".verdict .banner .word", 1],
          ["the answer", ".verdict .answer", 1],
          ["the tiles", ".verdict .card", 4],
          ["the chart", ".verdict .first figure :is(.uplot, svg.assay-figure)", 1],
        ]) {
          const found = await boxes(page, selector);
          assert.ok(found.length >= least, `${what}: ${found.length} of ${least}`);
          for (const box of found) assert.ok(isInside(box, LAPTOP), `${what} at ${JSON.stringify(box)}`);
        }
        const [verdict] = await boxes(page, ".verdict .banner .word");
        const [answer] = await boxes(page, ".verdict .answer");
        const [tile] = await boxes(page, ".verdict .card");
        const [chart] = await boxes(page, ".verdict .first figure");
        const tops = [verdict, answer, tile, chart].map((box) => box.top);
        assert.deepEqual(tops, tops.toSorted((a, b) => a - b), "in this order");
        const labels = await page.locator(".verdict .card dt").allTextContents();
        for (const wanted of ["p50", "p99", "goodput", "failed"])
          assert.ok(labels.some((label) => label.startsWith(wanted)), `${wanted} in ${labels.join(", ")}`);
        await done();
      });

      /** Claim: no table is cut on a laptop, however much is unfolded, and the page is no wider than its window. */
      test(`${name}: no table is cut, ${colorScheme}`, async () => {
        const { page, done } = await open(launched, file, { viewport: LAPTOP, colorScheme });
        await unfold(page);
        await page.waitForTimeout(200);
        const cut = await page.locator("div.table").evaluateAll((all) =>
          all.filter((it) => it.scrollWidth > it.clientWidth + 1).map((it) => `${it.getAttribute("aria-label")}: ${it.scrollWidth} in ${it.clientWidth} px`),
        );
        if (process.env.ASSAY_WHOLE_PAGES)
          await page.screenshot({ path: path.join(folder, `${name}-whole-${colorScheme}.png`), fullPage: true });
        assert.deepEqual(cut, []);
        assert.ok((await page.locator("div.table").count()) >= 3, "there are tables");
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `the page is ${over} px wider than its window`);
        await done();
      });

      /** Claim: on a telephone p50 and p99 are in sight: in the tiles before anything is scrolled, and in each row of the results, though each were a range. */
      test(`${name} on a telephone, ${colorScheme}`, async () => {
        const { page, done } = await open(launched, file, { viewport: TELEPHONE, colorScheme });
        await page.waitForTimeout(200);
        await page.screenshot({ path: path.join(folder, `${name}-390-${colorScheme}.png`) });
        const tiles = page.locator(".verdict .card", { has: page.locator("dt", { hasText: /^p(50|99)\b/ }) });
        assert.equal(await tiles.count(), 2);
        for (const box of await tiles.evaluateAll((all) => all.map((it) => it.getBoundingClientRect().toJSON())))
          assert.ok(isInside(box, TELEPHONE), JSON.stringify(box));
        const results = page.locator('table[data-name="results"]');
        await results.scrollIntoViewIfNeeded();
        const columns = await results.evaluate((table) => {
          const heads = [...table.tHead.rows[0].cells].map((cell) => cell.firstChild?.textContent);
          return ["p50", "p99"].map((head) => heads.indexOf(head));
        });
        assert.ok(columns.every((column) => column > 0), `columns of p50 and p99: ${columns}`);
        const places = await results.evaluate((table, wanted) => {
          const cells = [...table.tBodies[0].rows].flatMap((row) => wanted.map((column) => row.cells[column]));
          for (const cell of cells) {
            cell.textContent = "~49.5–50.7 ms";
            cell.classList.add("range");
          }
          return cells.map((cell) => cell.getBoundingClientRect().toJSON());
        }, columns);
        for (const { left, right } of places) assert.ok(left >= 0 && right <= TELEPHONE.width, `${left} to ${right}`);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `the page is ${over} px wider than its window`);
        await done();
      });
    }
  }

  /** Claim: one results table with a curve a row, and no time chart is on the page twice. */
  test("each thing once", async () => {
    for (const name of NAMES) {
      const { page, done } = await open(launched, path.join(folder, `${name}.html`), { viewport: LAPTOP });
      assert.equal(await page.locator('table[data-name="results"]').count(), 1, name);
      const [rows, curves] = [await page.locator('table[data-name="results"] tbody tr').count(), await page.locator('table[data-name="results"] .course').count()];
      assert.equal(curves, rows, `${name}: ${curves} curves in ${rows} rows`);
      const charts = await page.locator("figure.time").evaluateAll((all) => all.map((it) => it.dataset.name));
      assert.equal(new Set(charts).size, charts.length, `${name}: ${charts}`);
      const words = await page.locator("span.term").evaluateAll((all) => all.map((it) => it.textContent.toLowerCase()));
      assert.ok(words.length > 10 && new Set(words).size === words.length, `${name}: a word is explained once: ${words}`);
      await done();
    }
  });
});
