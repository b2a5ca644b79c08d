//! What is checked in is what the sources build, and what is vendored is what was published.

import { test } from "node:test";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const web = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");

/** Claim: dist/ is byte for byte what src/ and vendor/ build, and small. */
test("the built page is the source's", () => {
  const run = spawnSync(process.execPath, ["build.mjs", "--check"], { cwd: web, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
});

/** Claim: each vendored file has the sum that vendor/README.md states, and none is left out. */
test("vendored files are as published", () => {
  const stated = [...readFileSync(path.join(web, "vendor/README.md"), "utf8").matchAll(/^([0-9a-f]{64})  (\S+)$/gm)];
  assert.equal(stated.length, 4);
  for (const [, sum, name] of stated)
    assert.equal(createHash("sha256").update(readFileSync(path.join(web, "vendor", name))).digest("hex"), sum, name);
});

/** Claim: the lock file names no registry's address, so that a mirror serves as well. */
test("the lock file is of no registry", () => {
  assert.doesNotMatch(readFileSync(path.join(web, "package-lock.json"), "utf8"), /"resolved"/);
});
