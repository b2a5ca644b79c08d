//! The packed data, read by src/packed.ts and written by another hand.

import { test } from "node:test";
import assert from "node:assert/strict";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";
import esbuild from "esbuild";
import { Packer } from "./pack.mjs";

const source = path.join(path.dirname(fileURLToPath(import.meta.url)), "../src/packed.ts");
const built = await esbuild.build({ entryPoints: [source], bundle: true, format: "esm", write: false });
const { Packed } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`);

const most = Number.MAX_SAFE_INTEGER;

/** Claim: integers come back exactly, up to 2^53 − 1 and down from there in one step, and missing ones as NaN. */
test("integers survive", async () => {
  const packer = new Packer();
  const values = [0, -1, 1, 63, 64, -64, -65, 2 ** 31, 2 ** 32 + 1, -(2 ** 33), 0, most, 0, most, 5, 0, -most];
  const maybe = [null, 0, 1, null, 2 ** 40, -7, null, most - 1, null];
  const index = { a: packer.int(values), b: packer.maybe(maybe), empty: packer.int([]) };
  const packed = await Packed.open(packer.pack(index));
  assert.deepEqual([...packed.values(packed.index.a)], values);
  assert.deepEqual([...packed.values(packed.index.b)].map((v) => (Number.isNaN(v) ? null : v)), maybe);
  assert.equal(packed.values(packed.index.empty).length, 0);
});

/** Claim: numbers of a picture come back to a thousandth of their range. */
test("reals survive", async () => {
  const packer = new Packer();
  const values = [0.25, null, 17.75, 3, null];
  const packed = await Packed.open(packer.pack({ r: packer.real(values) }));
  const back = packed.values(packed.index.r);
  values.forEach((v, i) => (v === null ? assert.ok(Number.isNaN(back[i])) : assert.ok(Math.abs(back[i] - v) <= 0.0176)));
});

/** Claim: damaged data are refused with words: too short, cut off, endless varints, arrays outside. */
test("damage is refused", async () => {
  const text = (bytes) => deflateRawSync(bytes).toString("base64");
  await assert.rejects(Packed.open(text(Buffer.from([1]))), /too short/);
  await assert.rejects(Packed.open(text(Buffer.from([255, 255, 255, 255, 1]))), /cut off/);
  await assert.rejects(Packed.open("AAAA"));
  const head = Buffer.from([2, 0, 0, 0, 0x7b, 0x7d]);
  const endless = await Packed.open(text(Buffer.concat([head, Buffer.alloc(100, 0xff)])));
  assert.throws(() => endless.values({ at: 0, n: 1, as: "int" }), /cut off/);
  assert.throws(() => endless.values({ at: 1e9, n: 1, as: "int" }), /outside/);
  assert.throws(() => endless.values({ at: -1, n: 1, as: "int" }), /outside/);
  assert.throws(() => endless.values({ at: 0, n: 1e9, as: "int" }), /outside/);
  assert.throws(() => endless.values({ at: 100, n: 1, as: "int" }), /cut off/);
});
