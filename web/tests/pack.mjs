//! Packs data as PAGE.md says, independently of the Rust writer, so that reader and writer are each tested by a second
//! opinion. It must never share code with src/packed.ts.

import { deflateRawSync } from "node:zlib";

/** Collects arrays behind an index. */
export class Packer {
  constructor() {
    this.chunks = [];
    this.length = 0;
  }

  #add(buffer, n, as) {
    const at = this.length;
    this.chunks.push(buffer);
    this.length += buffer.length;
    return { at, n, as };
  }

  int(values) {
    return this.#add(varints(values), values.length, "int");
  }

  /** null is missing. */
  maybe(values) {
    const stored = values.map((v) => (v === null ? 0 : v >= 0 ? v + 1 : v));
    return this.#add(varints(stored), values.length, "int?");
  }

  /** To a thousandth of the range. */
  real(values) {
    const known = values.filter((v) => v !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const step = (high - low) / 1000 || 1;
    const stored = values.map((v) => (v === null ? 0 : Math.round((v - low) / step) + 1));
    return { ...this.#add(varints(stored), values.length, "real"), from: low, step };
  }

  pack(index) {
    const text = Buffer.from(JSON.stringify(index));
    const head = Buffer.alloc(4);
    head.writeUInt32LE(text.length);
    return deflateRawSync(Buffer.concat([head, text, ...this.chunks]), { level: 9 }).toString("base64");
  }
}

function varints(values) {
  const bytes = [];
  let last = 0n;
  for (const value of values) {
    const next = BigInt(value);
    const difference = next - last;
    last = next;
    let zigzag = difference >= 0n ? difference * 2n : -difference * 2n - 1n;
    do {
      const rest = zigzag >> 7n;
      bytes.push(Number(zigzag & 127n) | (rest > 0n ? 128 : 0));
      zigzag = rest;
    } while (zigzag > 0n);
  }
  return Buffer.from(bytes);
}
