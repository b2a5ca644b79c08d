//! The pages that the browser tests look at: the fixture, and a real one where `ASSAY_PAGE` and `ASSAY_SUMMARY` name
//! a report.html and the summary.json beside it. A page is always opened from its file, and must ask for nothing else.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";
import { fixture } from "./fixture.mjs";

/** `[{ name, file, summary }]`; remove what was made with `clean`. */
export function subjects() {
  const folder = mkdtempSync(path.join(tmpdir(), "assay-page-"));
  const made = fixture();
  const file = path.join(folder, "fixture.html");
  writeFileSync(file, made.html);
  const all = [{ name: "fixture", file, summary: made.summary }];
  const { ASSAY_PAGE, ASSAY_SUMMARY } = process.env;
  if (ASSAY_PAGE && ASSAY_SUMMARY)
    all.push({ name: "report", file: path.resolve(ASSAY_PAGE), summary: JSON.parse(readFileSync(ASSAY_SUMMARY, "utf8")) });
  return { all, folder, clean: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Opens a page in a context of its own; `done()` closes it and demands that it asked for nothing and said nothing. */
export async function open(browser, file, { fragment = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, colorScheme: "light", ...options });
  const page = await context.newPage();
  const said = [];
  page.on("console", (message) => said.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(`error: ${error.message}`));
  const url = pathToFileURL(file).href;
  page.on("request", (request) => {
    const isOwn = request.url().split("#")[0] === url || /^(data|blob):/.test(request.url());
    if (!isOwn) said.push(`request: ${request.url()}`);
  });
  await page.goto(url + fragment);
  if (options.javaScriptEnabled !== false)
    await page.waitForFunction(() => performance.getEntriesByName("assay-drawn").length > 0);
  const done = async () => {
    await context.close();
    assert.deepEqual(said, [], "the page said something or asked for something");
  };
  return { page, done };
}

/** Trials of a result document in the order in which the page counts them. */
export const trials = (summary) => summary.settings.flatMap((setting) => setting.trials.map((trial) => ({ key: setting.key, ...trial })));

/** A figure of the first trial, in sight and drawn. */
export async function chart(page, kind, trial = 0) {
  const figure = page.locator(`.trial[data-trial="${trial}"] figure.time[data-chart="${kind}"]`).first();
  await figure.evaluate((of) => {
    for (let parent = of.parentElement; parent !== null; parent = parent.parentElement)
      if (parent instanceof HTMLDetailsElement) parent.open = true;
  });
  await figure.scrollIntoViewIfNeeded();
  await figure.locator(".u-over").waitFor();
  // It is higher now that it is drawn.
  await settled(figure);
  await figure.scrollIntoViewIfNeeded();
  await settled(figure);
  return figure;
}

/** Waits until a figure stays where it is: what is unfolded or drawn above it moves it. */
async function settled(figure) {
  const isStill = await figure.evaluate(async (of) => {
    const frame = () => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
    for (let [last, turn] = ["", 0]; turn < 200; turn++) {
      await frame();
      const { x, y, width, height } = of.getBoundingClientRect();
      const place = [x, y, width, height].join();
      if (place === last) return true;
      last = place;
    }
    return false;
  });
  assert.ok(isStill, "the figure comes to rest");
}

/** How many columns' lengths a timeline has: its last may be longer than the others. */
export const lengths = ({ columns, width_ns, last_ns }) => columns.length - 1 + (last_ns || width_ns) / width_ns;

/** Puts the pointer on the middle of a column, of a chart that is so many columns' lengths wide. */
export async function pointAt(page, figure, column, wide, down = 0.5) {
  const box = await figure.locator(".u-over").boundingBox();
  const at = { x: box.x + ((column + 0.5) / wide) * box.width, y: box.y + down * box.height };
  await page.mouse.move(at.x, at.y);
  return at;
}
