//! `node tests/look.mjs OUT_DIR [PAGE]`: pictures of a page for people to look at, light and dark, wide and narrow.

import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { fixture } from "./fixture.mjs";
import { browser } from "./browser.mjs";

const [out, given] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const file = given ?? path.join(out, "fixture.html");
if (given === undefined) writeFileSync(file, fixture().html);
const launched = await browser();
for (const [name, width, scheme] of [["light", 1200, "light"], ["dark", 1200, "dark"], ["narrow", 360, "light"], ["narrow-dark", 360, "dark"]]) {
  const context = await launched.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
  const page = await context.newPage();
  page.on("console", (message) => console.log(name, message.text()));
  page.on("pageerror", (error) => console.log(name, error.message));
  await page.goto(pathToFileURL(path.resolve(file)).href);
  await page.waitForFunction(() => performance.getEntriesByName("assay-drawn").length > 0);
  // Charts are drawn when they come near; a full-page picture wants them all.
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let y = 0; y < height; y += 600) {
    await page.evaluate((to) => scrollTo(0, to), y);
    await page.waitForTimeout(60);
  }
  await page.evaluate(() => scrollTo(0, 0));
  await page.waitForTimeout(100);
  await page.screenshot({ path: path.join(out, `${name}.png`), fullPage: true });
  await context.close();
}
await launched.close();
