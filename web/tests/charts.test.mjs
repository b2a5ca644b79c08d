//! Time charts in the browser: exact values under the cursor, one cursor, one zoom, the link, the keyboard, the panel.

import { after, before, describe, test } from "node:test";
import assert from "node:assert/strict";
import { browser } from "./browser.mjs";
import { chart, open, lengths, pointAt, subjects, trials } from "./subject.mjs";

const { all, clean } = subjects();
let launched;
before(async () => (launched = await browser()));
after(async () => {
  await launched.close();
  clean();
});

const raw = (figure, name) => figure.locator(`.entry[data-line="${name}"] b`).getAttribute("data-v");
/** The number, or null where a column has too few samples for it. */
const number = async (figure, name) => { const found = await raw(figure, name); return found === null ? null : Number(found); };
const shownRange = (page) => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("from"));

for (const { name, file, summary } of all)
  describe(name, () => {
    const { timeline } = trials(summary)[0];
    const { columns } = timeline;
    /** Some columns with latencies, the slowest of all among them. */
    const some = () => {
      const known = columns.flatMap((column, i) => (column.max_ns === null ? [] : [i]));
      const slowest = known.reduce((a, b) => (columns[a].max_ns > columns[b].max_ns ? a : b));
      return [known[0], slowest, known[Math.floor(known.length / 2)], known.at(-1)];
    };

    /** Claim: what stands above a chart is the result document's number, of every column asked for, in all charts at once. */
    test("values under the cursor are summary.json's", async () => {
      const { page, done } = await open(launched, file);
      const [latency, rates] = [await chart(page, "latency"), await chart(page, "rates")];
      for (const column of some()) {
        await latency.scrollIntoViewIfNeeded();
        await pointAt(page, latency, column, lengths(timeline));
        const expected = columns[column];
        for (const [line, key] of [["p50", "p50_ns"], ["p99", "p99_ns"], ["p99.9", "p999_ns"], ["max", "max_ns"]])
          assert.equal(await number(latency, line), expected[key], `${line} of column ${column}`);
        assert.equal(Number(await raw(rates, "offered")), expected.offered, "the other chart shows the same column");
        assert.equal(Number(await raw(rates, "goodput")), expected.committed);
        const failures = Object.keys(expected.failed);
        for (const kind of failures) assert.equal(Number(await raw(rates, kind)), expected.failed[kind], kind);
      }
      await done();
    });

    /** Claim: the exact text of a duration has every nanosecond of the document. */
    test("durations lose no digit", async () => {
      const { page, done } = await open(launched, file);
      const latency = await chart(page, "latency");
      const column = some()[1];
      await pointAt(page, latency, column, lengths(timeline));
      const text = await latency.locator('.entry[data-line="max"] b').textContent();
      const [, digits, unit] = text.match(/^([\d.,]+) (s|ms|µs|ns)$/);
      const scale = { s: 9, ms: 6, µs: 3, ns: 0 }[unit];
      const [whole, part = ""] = digits.replaceAll(",", "").split(".");
      assert.equal(BigInt(whole + part.padEnd(scale, "0")), BigInt(columns[column].max_ns));
      await done();
    });

    /** Claim: a drag zooms every time chart and the link; a double click, back and forward, and a new tab agree. */
    test("zoom, link, back and forward", async () => {
      const { page, done } = await open(launched, file);
      const latency = await chart(page, "latency");
      const rates = await chart(page, "rates");
      await latency.scrollIntoViewIfNeeded();
      const from = await pointAt(page, latency, Math.floor(columns.length * 0.25), lengths(timeline));
      await page.mouse.down();
      const box = await latency.locator(".u-over").boundingBox();
      await page.mouse.move(from.x + box.width / 4, from.y, { steps: 4 });
      await page.mouse.up();
      const zoomed = await page.evaluate(() => location.hash);
      assert.match(zoomed, /from=[\d.]+&to=[\d.]+/);
      const range = await page.evaluate(() => ["from", "to"].map((end) => Number(new URLSearchParams(location.hash.slice(1)).get(end))));
      /** What the column in the middle of the zoom says where the zoomed picture has it, in the chart that was not dragged. */
      const { start_ns, width_ns } = trials(summary)[0].timeline;
      const middle = Math.floor(((range[0] + range[1]) / 2 - start_ns / 1e9) / (width_ns / 1e9));
      const place = ((start_ns + (middle + 0.5) * width_ns) / 1e9 - range[0]) / (range[1] - range[0]);
      const says = async (on, figure) => {
        const over = await figure.locator(".u-over").boundingBox();
        await on.mouse.move(over.x + 2, over.y + 2);
        await on.mouse.move(over.x + place * over.width, over.y + over.height / 2);
        return [await figure.locator(".at").textContent(), Number(await raw(figure, "offered"))];
      };
      const first = await says(page, rates);
      assert.equal(first[1], columns[middle].offered);
      await page.goBack();
      assert.equal(await shownRange(page), null);
      assert.notDeepEqual(await says(page, rates), first);
      await page.goForward();
      assert.equal(await page.evaluate(() => location.hash), zoomed);
      assert.deepEqual(await says(page, rates), first);
      const other = await open(launched, file, { fragment: zoomed });
      const there = await chart(other.page, "rates");
      assert.deepEqual(await says(other.page, there), first);
      await other.done();
      await rates.locator(".u-over").dblclick();
      assert.equal(await shownRange(page), null);
      await done();
    });

    /** Claim: a chart of anything but response times and rates stays whole when others zoom, and keeps its cursor. */
    test("what does not zoom stays whole", async () => {
      const { page, done } = await open(launched, file);
      const [latency, other] = [await chart(page, "latency"), await chart(page, "outstanding")];
      const last = columns.length - 1;
      const edges = async () => {
        const said = [];
        await other.scrollIntoViewIfNeeded();
        for (const column of [0, last]) {
          await pointAt(page, other, column, lengths(timeline));
          said.push(await other.locator(".at").textContent());
        }
        return said;
      };
      const whole = await edges();
      await latency.locator(".plot").focus();
      await page.keyboard.press("+");
      const zoomed = await shownRange(page);
      assert.notEqual(zoomed, null);
      assert.deepEqual(await edges(), whole);
      await other.locator(".plot").focus();
      await page.keyboard.press("+");
      assert.deepEqual(await shownRange(page), zoomed);
      await done();
    });

    /** Claim: the link keeps the setting, and the browser's back button returns to the one before. */
    test("the setting is kept", { skip: trials(summary).length < 2 && "one setting" }, async () => {
      const { page, done } = await open(launched, file);
      await chart(page, "latency");
      assert.equal(await page.locator('.trial[data-trial="1"]:visible').count(), 0);
      await page.locator("#setting").selectOption("1");
      const hash = await page.evaluate(() => location.hash);
      assert.match(decodeURIComponent(hash), /setting=/);
      const second = await chart(page, "latency", 1);
      const { timeline: other } = trials(summary)[1];
      const known = other.columns.findIndex((column) => column.max_ns !== null);
      await pointAt(page, second, known, lengths(other));
      assert.equal(await number(second, "max"), other.columns[known].max_ns);
      await page.goBack();
      assert.equal(await page.locator("#setting").inputValue(), "0");
      const again = await open(launched, file, { fragment: hash });
      assert.equal(await again.page.locator("#setting").inputValue(), "1");
      await again.done();
      await done();
    });

    /** Claim: the keyboard moves the cursor, zooms and resets, and what it reaches is said in words with exact numbers. */
    test("keyboard", async () => {
      const { page, done } = await open(launched, file);
      const latency = await chart(page, "latency");
      await latency.locator(".plot").focus();
      await page.keyboard.press("Home");
      const start = await latency.locator(".at").textContent();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      assert.notEqual(await latency.locator(".at").textContent(), start);
      await page.keyboard.press("ArrowLeft");
      assert.equal(Number((await raw(latency, "p50")) ?? NaN), columns[1].p50_ns ?? NaN);
      // On a busy machine the places on the way are said, too.
      const at = await latency.locator(".at").textContent();
      const isSaid = (at) => ["p99", at].every((words) => document.getElementById("live")?.textContent?.includes(words));
      await page.waitForFunction(isSaid, at);
      await page.keyboard.press("+");
      assert.notEqual(await shownRange(page), null);
      await page.keyboard.press("End");
      await page.keyboard.press("Escape");
      assert.equal(await shownRange(page), null);
      await page.keyboard.press("End");
      await page.keyboard.press("Home");
      assert.equal(await latency.locator(".at").textContent(), start);
      await done();
    });

    /** Claim: Enter on a second lists its slowest, each of them reachable, and shows its row; Escape goes back. */
    test("the panel of the slowest", async () => {
      const { page, done } = await open(launched, file);
      const latency = await chart(page, "latency");
      await latency.locator(".plot").focus();
      await page.keyboard.press("Home");
      const [, slowest] = some();
      for (let i = 0; i < slowest; i++) await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
      const panel = latency.locator(".slow");
      await panel.waitFor();
      const picks = panel.locator(".picks button");
      assert.ok((await picks.count()) >= 1);
      assert.equal(await picks.first().evaluate((button) => button === document.activeElement), true);
      const field = (word) => panel.locator("dl > div", { has: page.locator("dt", { hasText: new RegExp(`^${word}$`) }) }).locator("dd").textContent();
      for (const word of ["transaction", "due", "ready", "sent", "end", "outcome", "code", "error", "target", "connection", "worker", "response time", "service time"])
        assert.ok((await field(word)).length > 0, word);
      if ((await picks.count()) > 1) {
        const before = await field("transaction");
        await page.keyboard.press("Tab");
        await page.keyboard.press("Enter");
        assert.notEqual(await field("transaction"), before);
      }
      await page.keyboard.press("Escape");
      assert.equal(await panel.isVisible(), false);
      assert.equal(await latency.locator(".plot").evaluate((plot) => plot === document.activeElement), true);
      await done();
    });

    /** Claim: opened, a chart's table has every column of the document with its raw numbers. */
    test("the table of a time chart", async () => {
      const { page, done } = await open(launched, file);
      const latency = await chart(page, "latency");
      await latency.locator("details.as-table > summary").click();
      // What the script makes from the packed data, not what Rust wrote for a reader without a script.
      const table = latency.locator("details.as-table > .built table.data").first();
      const found = await table.evaluate((element) => {
        const at = [...element.tHead.rows[0].cells].findIndex((cell) => cell.textContent.trim() === "p99");
        return [...element.tBodies[0].rows].map((row) => row.cells[at].dataset.v ?? null);
      });
      assert.deepEqual(found.map((v) => (v === null ? null : Number(v))), columns.map((column) => column.p99_ns));
      await done();
    });
  });

/** Claim: a click on a point shows that transaction and no other. */
test("a click on a point", async () => {
  const [{ file }] = all;
  const { page, done } = await open(launched, file);
  const latency = await chart(page, "latency");
  const over = latency.locator(".u-over");
  const box = await over.boundingBox();
  // Looks for a point as a person does: where the pointer says that there is one.
  let tip = "";
  for (let x = 0.1; x < 0.45 && tip === ""; x += 0.01)
    for (let y = 0.4; y < 0.6 && tip === ""; y += 0.02) {
      await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
      if (await latency.locator(".ring").isVisible()) tip = await latency.locator(".tip").textContent();
    }
  const [, tx] = tip.match(/^tx (\d+):/);
  await page.mouse.down();
  await page.mouse.up();
  assert.equal(await latency.locator(".slow dl dd").first().textContent(), tx);
  await done();
});

/** Claim: lanes are drawn by the states in the data, of a series that the script knows nothing of: what stands above them is
 * how far a node has come and is behind, and nothing where it did not answer. */
test("lanes say what the data says", async () => {
  const [{ file, summary }] = all;
  const { page, done } = await open(launched, file);
  const { timeline } = trials(summary)[0];
  const figure = await chart(page, "lanes");
  // The first touch makes room for readouts of two lines, in the charts above as well.
  await pointAt(page, figure, 5, lengths(timeline));
  await page.mouse.move(0, 0);
  for (const [column, ahead, other] of [[5, "1,050", "1,050"], [12, "1,120", "no answer"], [17, "1,170", "1,100 (70 behind)"], [22, "1,220", "1,213 (7 behind)"]]) {
    await figure.scrollIntoViewIfNeeded();
    await pointAt(page, figure, column, lengths(timeline));
    const said = async (node) => figure.locator(`.entry[data-line="${node}"] b`).textContent();
    assert.deepEqual([await said("echo-0"), await said("echo-1")], [ahead, other], `column ${column}`);
  }
  await done();
});
