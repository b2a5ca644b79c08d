//! How soon a page is drawn: `node tests/time_to_picture.mjs PAGE TRIES` prints, as JSON, the milliseconds of each try
//! until the first complete picture. It fails if the page says or asks for anything.

import path from "node:path";
import { browser } from "./browser.mjs";
import { open } from "./subject.mjs";

const [file, tries] = process.argv.slice(2);
const launched = await browser();
const took = [];
for (let i = 0; i < Number(tries); i++) {
  const { page, done } = await open(launched, path.resolve(file));
  took.push(await page.evaluate(() => performance.getEntriesByName("assay-drawn").at(-1).startTime));
  await done();
}
await launched.close();
console.log(JSON.stringify(took));
