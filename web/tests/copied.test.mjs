//! Tables as text, without a browser.

import { test } from "node:test";
import assert from "node:assert/strict";
import path from "node:path";
import { build } from "esbuild";

/** Claim: copied as CSV no text of others is computed by a spreadsheet, and numbers stay numbers. */
test("no formula is copied", async () => {
  const entry = path.join(import.meta.dirname, "../src/copied.ts");
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: "esm", write: false });
  const { csv } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
  const cell = (text, raw = null) => ({ text, raw });
  const rows = [[cell('=HYPERLINK("http://x/","y")'), cell("@x"), cell("-1+x"), cell("+3.5 %"), cell("-2", "-2.25")]];
  const lines = csv(["=a", "b", "c", "d", "e"], rows).split("\r\n");
  assert.deepEqual(lines, ["'=a,b,c,d,e", `"'=HYPERLINK(""http://x/"",""y"")",'@x,'-1+x,+3.5 %,-2.25`, ""]);
});
