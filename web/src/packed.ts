//! Decodes the packed data of the page: base64, raw deflate, an index in JSON, arrays of varints.
//! It must never trust a length or an offset: what lies outside the bytes is an error with a name, never a hang.

/** An array in the index. */
export interface ArrayRef {
  at: number;
  n: number;
  as: "int" | "int?" | "real";
  /** Of `real`: the value is `from + step × stored`. */
  from?: number;
  step?: number;
}

/** More elements than this are not in a page: 1,200 columns of 240 buckets, with room. */
const ELEMENTS_MAX = 4_000_000;
/** Bytes of a varint of 54 bits (zigzag of 2^53): 54 / 7, rounded up. */
const VARINT_BYTES_MAX = 8;

/** The inflated data: the index, and arrays that are decoded when they are asked for. */
export class Packed<Index> {
  private constructor(
    readonly index: Index,
    private readonly bytes: Uint8Array,
  ) {}

  /** Decodes the text of the data element. */
  static async open<Index>(base64: string): Promise<Packed<Index>> {
    const bytes = await inflate(unbase64(base64.trim()));
    if (bytes.length < 4) throw new Error("the page's data are too short to hold their index");
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    if (4 + length > bytes.length) throw new Error("the page's data are cut off within their index");
    const index = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Index;
    return new Packed(index, bytes.subarray(4 + length));
  }

  /** Any array; what is missing is NaN. */
  values(ref: ArrayRef): Float64Array {
    if (!(ref.n >= 0 && ref.n <= ELEMENTS_MAX && ref.at >= 0 && ref.at <= this.bytes.length))
      throw new Error(`an array of the page's data lies outside of them: ${JSON.stringify(ref)}`);
    const stored = this.integers(ref);
    const { from = 0, step = 1 } = ref;
    return ref.as === "real" ? stored.map((value) => from + step * value) : stored;
  }

  private integers(ref: ArrayRef): Float64Array {
    const out = new Float64Array(ref.n);
    const bytes = this.bytes;
    let at = ref.at;
    let value = 0;
    for (let i = 0; i < ref.n; i++) {
      // Bitwise operators end at 32 bits, and doubling 2^53 would lose the sign's bit: the sign is taken from the
      // first byte, and the magnitude grows by multiplication.
      let byte = bytes[at++] ?? 0;
      const negative = (byte & 1) === 1;
      let magnitude = (byte & 0x7f) >> 1;
      let unit = 64;
      for (let read = 1; byte >= 0x80; read++) {
        if (read > VARINT_BYTES_MAX || at >= bytes.length)
          throw new Error("the page's data are cut off within integers");
        byte = bytes[at++] ?? 0;
        magnitude += (byte & 0x7f) * unit;
        unit *= 128;
      }
      value += negative ? -magnitude - 1 : magnitude;
      out[i] = ref.as === "int" ? value : present(value);
    }
    if (at > bytes.length) throw new Error("the page's data are cut off within integers");
    return out;
  }
}

/** 0 is missing, v ≥ 0 is stored as v + 1, and what is below zero as it is. */
function present(stored: number): number {
  if (stored === 0) return NaN;
  return stored > 0 ? stored - 1 : stored;
}

function unbase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
