//! The document around the charts: complete and equal to summary.json without a script; sorting, copying, filtering,
//! glossary, download, print; and nothing that axe finds.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { writeFileSync } from "node:fs";
import { browser } from "./browser.mjs";
import { chart, open, subjects, trials } from "./subject.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const { all, folder, clean } = subjects();
let launched;
before(async () => (launched = await browser()));
after(async () => {
  await launched.close();
  clean();
});

/** The value at a JSON pointer. */
function at(document, pointer) {
  return pointer.split("/").slice(1).reduce((value, word) => value?.[word.replaceAll("~1", "/").replaceAll("~0", "~")], document);
}

async function violations(page) {
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const found = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
}

/** A table of numbers that is in sight, with rows to sort. */
const sortable = (page) => page.locator("table.data:visible", { has: page.locator("tbody tr:nth-child(2)") }).filter({ has: page.locator("tbody td[data-v]") }).first();

for (const { name, file, summary } of all)
  describe(name, () => {
    /** Claim: without a script the page has its tables and drawings, and every number that says where it comes from is summary.json's. */
    test("complete without a script, and equal to summary.json", async () => {
      const { page, done } = await open(launched, file, { javaScriptEnabled: false });
      const html = await page.content();
      const ofTime = [...html.matchAll(/<div class="plot">\s*<svg/g)].length;
      assert.ok(ofTime >= trials(summary).length, `${ofTime} static charts of time`);
      const elements = [...html.matchAll(/<(?:td|th|dd|span)\b[^>]*\bdata-(?:v|from)="[^"]*"[^>]*>/g)];
      let compared = 0;
      const wrong = [];
      const number = (pointer) => Number(at(summary, pointer) ?? NaN);
      const sum = (pointers) => pointers.trim().split(/\s+/).map(number).reduce((a, b) => a + b, 0);
      const compare = (what, shown, expected, tolerance = 0) => {
        compared++;
        const isSame = Math.abs(Number(shown) - expected) <= tolerance * Math.abs(expected);
        if (!isSame) wrong.push(`${what}: page ${shown}, summary.json ${expected}`);
      };
      for (const [tag] of elements) {
        const of = (attribute) => tag.match(new RegExp(`\\b${attribute}="([^"]*)"`))?.[1]?.replaceAll("&amp;", "&");
        const [shown, place, parts, share] = [of("data-v"), of("data-k"), of("data-sum"), of("data-share")];
        const [rate, between] = [of("data-per-second"), of("data-between")];
        if (place !== undefined) compare(place, shown, number(place));
        if (parts !== undefined) compare(parts, shown, sum(parts));
        if (share !== undefined) compare(share, shown, sum(share.split(" / ")[0]) / sum(share.split(" / ")[1]), 1e-12);
        if (rate !== undefined) compare(rate, shown, number(rate.split(" / ")[0]) / (number(rate.split(" / ")[1]) / 1e9), 1e-12);
        if (between !== undefined)
          ["data-from", "data-to"].forEach((end, i) => of(end) !== "" && compare(between, of(end), number(between.split(" ")[i])));
      }
      assert.deepEqual(wrong, []);
      assert.ok(compared >= 6, `${compared} numbers with a place in summary.json`);
      await done();
    });

    /** Claim: a click sorts by the raw numbers, another reverses, a third restores; aria-sort says which. */
    test("sorting", async () => {
      const { page, done } = await open(launched, file);
      const table = sortable(page);
      const column = await table.evaluate((t) => [...t.tBodies[0].rows[0].cells].findIndex((cell) => cell.tagName === "TD" && cell.dataset.v));
      const values = () => table.evaluate((t, i) => [...t.tBodies[0].rows].map((row) => row.cells[i].dataset.v ?? null), column);
      const original = await values();
      const head = table.locator("thead th").nth(column);
      const sorted = (sign) => {
        const known = original.filter((v) => v !== null).map(Number).sort((a, b) => sign * (a - b));
        return [...known, ...original.filter((v) => v === null)];
      };
      const numbers = async () => (await values()).map((v) => (v === null ? null : Number(v)));
      await head.locator("button.sort").click();
      assert.equal(await head.getAttribute("aria-sort"), "ascending");
      assert.deepEqual(await numbers(), sorted(1));
      await head.locator("button.sort").click();
      assert.equal(await head.getAttribute("aria-sort"), "descending");
      assert.deepEqual(await numbers(), sorted(-1));
      await head.locator("button.sort").click();
      assert.equal(await head.getAttribute("aria-sort"), null);
      assert.deepEqual(await values(), original);
      await done();
    });

    /** Claim: copied as CSV a table has its raw numbers, copied as Markdown what is shown. */
    test("copying", async () => {
      const { page, done } = await open(launched, file, { permissions: ["clipboard-read", "clipboard-write"] });
      const table = sortable(page);
      const cells = await table.evaluate((t) => [...t.tBodies[0].rows].map((row) => [...row.cells].map((c) => ({ text: c.textContent.trim(), raw: c.dataset.v ?? null }))));
      const bar = table.locator("xpath=ancestor::*[contains(@class,'table')][1]/following-sibling::*[1]");
      await bar.getByText("Copy as CSV").click();
      await page.getByText(`Copied ${cells.length} rows`).first().waitFor();
      const csv = (await page.evaluate(() => navigator.clipboard.readText())).replaceAll("\r\n", "\n").trimEnd().split("\n");
      assert.equal(csv.length, cells.length + 1);
      const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      assert.deepEqual(csv.slice(1), cells.map((row) => row.map((c) => quoted(c.raw ?? c.text)).join(",")));
      await bar.getByText("Copy as Markdown").click();
      await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("|"));
      const markdown = (await page.evaluate(() => navigator.clipboard.readText())).trimEnd().split("\n");
      assert.equal(markdown.length, cells.length + 2);
      assert.match(markdown[1], /---:/);
      assert.deepEqual(markdown.slice(2), cells.map((row) => `| ${row.map((c) => c.text.replaceAll("|", "\\|")).join(" | ")} |`));
      await done();
    });

    /** Claim: `/` goes to the filter, which hides what does not have the words, and Escape brings all back. */
    test("the filter", async () => {
      const { page, done } = await open(launched, file);
      const figures = () => page.locator("figure.chart:not([hidden])").count();
      const before = await figures();
      await page.keyboard.press("/");
      assert.equal(await page.evaluate(() => document.activeElement?.id), "filter");
      await page.keyboard.type("cpu_cores");
      const left = await figures();
      assert.ok(left >= 1 && left < before, `${left} of ${before} figures`);
      assert.match(await page.locator("#filter-told").textContent(), /^\d+ of \d+ /);
      await page.keyboard.press("Escape");
      assert.equal(await figures(), before);
      await done();
    });

    /** Claim: axe finds nothing in light, in dark, and with every disclosure and the panel open. */
    for (const [scheme, isOpen] of [["light", false], ["dark", false], ["light", true], ["dark", true]])
      test(`axe, ${scheme}${isOpen ? ", all open" : ""}`, async () => {
        const { page, done } = await open(launched, file, { colorScheme: scheme });
        const latency = await chart(page, "latency");
        if (isOpen) {
          await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
          await latency.locator(".plot").focus();
          await page.keyboard.press("Enter");
          await latency.locator(".slow").waitFor();
        }
        assert.deepEqual(await violations(page), []);
        await done();
      });

    /** Claim: a word of the glossary shows its meaning on focus, inside the window, however narrow it is. */
    test("glossary words", async () => {
      const { page, done } = await open(launched, file, { viewport: { width: 360, height: 700 } });
      const term = page.locator(".term:visible").first();
      await term.focus();
      const tip = page.locator(".term-tip");
      await tip.waitFor();
      const box = await tip.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
      assert.equal(await tip.textContent(), await page.evaluate((id) => document.getElementById(id).textContent, await term.getAttribute("aria-describedby")));
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `the page is ${overflow} px wider than its window`);
      await done();
    });

    /** Claim: the SVG button gives a file that stands alone: no class or variable is needed to see it. */
    test("SVG download", async () => {
      const { page, done } = await open(launched, file);
      const figure = page.locator("figure.chart:not(.time)").first();
      await figure.scrollIntoViewIfNeeded();
      await figure.hover();
      const [download] = await Promise.all([page.waitForEvent("download"), figure.getByRole("button", { name: /SVG/ }).click()]);
      const svg = readFileSync(await download.path(), "utf8");
      assert.match(download.suggestedFilename(), /\.svg$/);
      assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
      assert.match(svg, /<title/);
      assert.match(svg, /stroke="rgb\(/);
      assert.doesNotMatch(svg, /var\(|<style/);
      await done();
    });

    /** Claim: on paper the canvases are sharp, in light colours and all there, and the screen comes back as it was. */
    test("print", async () => {
      const { page, done } = await open(launched, file, { colorScheme: "dark" });
      const canvas = () => page.evaluate(() => [...document.querySelectorAll(".trial:not([hidden]) figure.time")].filter((figure) => figure.closest("details:not([open])") === null).map((figure) => {
        const canvas = figure.querySelector("canvas");
        return canvas === null ? 0 : canvas.width / canvas.getBoundingClientRect().width;
      }));
      await page.emulateMedia({ media: "print", colorScheme: "dark" });
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      const comes = async (holds) => {
        for (let turn = 0; !holds(await canvas()); turn++) {
          assert.ok(turn < 100, JSON.stringify(await canvas()));
          await page.waitForTimeout(50);
        }
      };
      await comes((ratios) => ratios.length >= 4 && ratios.every((ratio) => ratio > 2.5));
      assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--paper").trim()), "#ffffff");
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      await page.emulateMedia({ media: "screen", colorScheme: "dark" });
      await comes((ratios) => ratios.every((ratio) => ratio < 1.5));
      await page.evaluate(() => addEventListener("beforeprint", () => (globalThis.printed = document.querySelector(".trial:not([hidden]) canvas").width)));
      const pdf = await page.pdf({ format: "A4" });
      assert.ok((await page.evaluate(() => globalThis.printed)) > 0, "the browser says when it prints");
      const out = path.join(folder, `${name}.pdf`);
      writeFileSync(out, pdf);
      const pages = [...pdf.toString("latin1").matchAll(/\/Type\s*\/Page\b(?!s)/g)].length;
      assert.ok(pages > 0, `${pages} pages`);
      const text = spawnSync("pdftotext", ["-layout", out, "-"], { encoding: "utf8" });
      if (text.error === undefined) assert.ok(text.stdout.includes(summary.name), "the run's name is on paper");
      else assert.ok(pdf.length > 20_000, `${pdf.length} bytes`);
      await done();
    });
  });
