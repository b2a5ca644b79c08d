//! Builds the scripts and styles of dist/ from src/ and vendor/, byte for byte the same everywhere; with `--check` it
//! compares instead of writing. It must never put a time, a path or a version of the machine into what it builds.

import { readFile, mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";
import esbuild from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
/** page.js with uPlot must stay small: it is in every report, which may have 1 MB. Lanes took the last 2 kB. */
const SCRIPT_BYTES_MAX = 93_000;

// uPlot keeps its pixel ratio to itself; printing needs more pixels than the screen has. The vendored file stays as
// published; what is bundled of it differs in these lines.
const appended = `
export function setPixelRatio(ratio) {
	forcedRatio = ratio;
	setPxRatio();
}
`;
const CHANGES = [
  ["let pxRatio;", "let pxRatio, forcedRatio = 0;"],
  ["let _pxRatio = devicePixelRatio;", "let _pxRatio = forcedRatio || devicePixelRatio;"],
  // Ways of drawing lines that no chart here uses: the functions behind them are left out.
  ["(paths.stepped = stepped);", ""],
  ["(paths.bars    = bars);", ""],
  ["(paths.spline  = monotoneCubic);", ""],
];

/** The vendored text as it is bundled. */
async function uplot(file) {
  let text = await readFile(file, "utf8");
  for (const [from, to] of CHANGES) {
    if (!text.includes(from)) throw new Error(`looking for \`${from}\` in ${path.basename(file)}: not there; is it another version?`);
    text = text.replace(from, to);
  }
  return text + appended;
}

const vendored = {
  name: "vendored",
  setup(build) {
    build.onResolve({ filter: /^uplot$/ }, () => ({ path: path.join(here, "vendor/uplot/uPlot.esm.js") }));
    build.onLoad({ filter: /uPlot\.esm\.js$/ }, async (file) => ({
      contents: await uplot(file.path),
      loader: "js",
    }));
  },
};

const licence =
  "/* uPlot 1.6.32, copyright (c) 2025 Leon Sorokin, MIT licence. The rest: Assay, Apache-2.0. */";

async function bundle(entry, extra) {
  const result = await esbuild.build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
    target: ["chrome109", "firefox115", "safari16.4"],
    plugins: [vendored],
    ...extra,
  });
  return result.outputFiles[0].text;
}

const built = {
  "page.js": await bundle("src/main.ts", { format: "iife", banner: { js: licence } }),
  "page.css": await bundle("src/page.css", { banner: { css: licence } }),
  "live.js": await bundle("src/live.ts", { format: "iife" }),
  "live.css": await bundle("src/live.css", {}),
};

const failures = [];
for (const [name, text] of Object.entries(built)) {
  // Inside <script> and <style> these would end the element.
  if (/<\/(script|style)|<!--/i.test(text)) failures.push(`${name} holds text that would end its element in the page`);
}
if (built["page.js"].length > SCRIPT_BYTES_MAX)
  failures.push(`page.js has ${built["page.js"].length} bytes; at most ${SCRIPT_BYTES_MAX} are allowed`);

if (process.argv.includes("--check")) {
  for (const [name, text] of Object.entries(built)) {
    const found = await readFile(path.join(here, "dist", name), "utf8").catch(() => "");
    if (found !== text) failures.push(`dist/${name} is not what src/ builds: run \`npm run build\` in web/ and commit it`);
  }
} else {
  await mkdir(path.join(here, "dist"), { recursive: true });
  for (const [name, text] of Object.entries(built)) await writeFile(path.join(here, "dist", name), text);
}
for (const failure of failures) console.error(`web: ${failure}`);
if (failures.length > 0) process.exit(1);
console.log(Object.entries(built).map(([name, text]) => `${name} ${text.length} bytes`).join(", "));
