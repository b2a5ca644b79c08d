//! The page of a run that goes on, in a browser: `ASSAY_PROGRAM` names the built program, which runs and watches here.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { browser } from "./browser.mjs";

const program = process.env.ASSAY_PROGRAM;
const skip = program === undefined ? "ASSAY_PROGRAM names no program" : false;
/** What is waited for comes within this, on the busiest machine. */
const timeout = 60_000;

const EXPERIMENT = `
name = "alive"
[system]
kind = "echo"
[load]
rate = "200/s"
duration = "5m"
timeout = "5s"
warmup = "0s"
`;

let launched;
let folder;
const children = [];
before(async () => {
  launched = await browser();
  folder = mkdtempSync(path.join(tmpdir(), "assay-live-"));
});
after(async () => {
  await launched.close();
  children.filter((child) => child.exitCode === null).forEach((child) => child.kill("SIGKILL"));
  rmSync(folder, { recursive: true, force: true });
});

function assay(...words) {
  // Its own variables name keys of an experiment.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ASSAY_")));
  const child = spawn(program, words, { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] });
  children.push(child);
  child.ended = new Promise((resolve) => child.once("exit", resolve));
  return child;
}

async function until(what, holds) {
  for (let waited = 0; waited < timeout; waited += 50) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`${what}: not within ${timeout} ms`);
}

/** Claim: figures change, the report's page stands below them and is followed by newer ones, unfolded and scrolled as it was; at
 * the end the report is there; and nothing is asked of anybody else, nor said on the console. */
test("a run that goes on", { skip }, async () => {
  writeFileSync(path.join(folder, "alive.toml"), EXPERIMENT);
  const run = assay("run", "alive.toml", "--progress=none", "--no-calibration");
  const runs = path.join(folder, "runs");
  await until("there is a run", () => existsSync(runs) && readdirSync(runs).some((it) => existsSync(path.join(runs, it, "plan.toml"))));
  const watch = assay("watch", "--web", "--progress=none");
  let said = "";
  watch.stderr.on("data", (text) => (said += text));
  await until("an address is printed", () => /http:\S+/.test(said));
  const url = said.match(/http:\S+/)[0];

  const page = await launched.newPage();
  const troubles = [];
  page.on("console", (message) => troubles.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob|about):/.test(request.url())) troubles.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById("live").textContent.includes("due and not ended"), null, { timeout });
  // The frame may be replaced by a newer one at any time: each look at it is one question to the page around it.
  const text = await page.waitForFunction(
    () => document.querySelector("iframe:not(.coming)")?.contentDocument.querySelector("article.run")?.innerText,
    null,
    { timeout },
  );
  assert.match(await text.jsonValue(), /the run goes on; nothing is judged before its end/);

  // Later pages have more sections: those that this one has stay as they are.
  const [unfolded, place] = await page.evaluate(() => {
    const { contentDocument: report, contentWindow: seen } = document.querySelector("iframe:not(.coming)");
    const sections = Array.from(report.querySelectorAll("section:has(> details.fold)"));
    sections.forEach((it) => (it.querySelector("details").open = true));
    seen.scrollTo(0, 300);
    report.documentElement.dataset.old = "yes";
    return [sections.map((it) => it.id), seen.scrollY];
  });
  assert.ok(unfolded.length > 0);
  await page.waitForFunction(
    () => document.querySelector("iframe:not(.coming)").contentDocument.documentElement.dataset.old !== "yes",
    null,
    { timeout },
  );
  const [scrolled, closed] = await page.evaluate((unfolded) => {
    const frame = document.querySelector("iframe:not(.coming)");
    const isClosed = (id) => frame.contentDocument.querySelector(`#${id} > details`)?.open === false;
    return [frame.contentWindow.scrollY, unfolded.filter(isClosed)];
  }, unfolded);
  assert.deepEqual(closed, [], "what was unfolded stays so");
  // Charts that are drawn meanwhile may move it a little.
  assert.ok(Math.abs(scrolled - place) < 200, `${scrolled} after ${place}`);

  run.kill("SIGINT");
  await page.waitForURL(/\/report/, { timeout });
  await page.locator(".banner.interrupted").waitFor({ timeout });
  assert.equal(await page.locator("iframe").count(), 0);
  assert.deepEqual(troubles, []);
  assert.equal(await watch.ended, 0);
});
