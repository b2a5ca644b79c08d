//! The distribution's Chromium, started so that it does nothing but show a page.

import { accessSync, constants } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";

/** `$CHROMIUM`, or what stands on the path. */
export function executable() {
  const named = process.env.CHROMIUM;
  if (named) return named;
  for (const folder of (process.env.PATH ?? "").split(path.delimiter))
    for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
      const file = path.join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // Not here.
      }
    }
  throw new Error("looking for chromium on the PATH: not found; install the distribution's package or set CHROMIUM");
}

export function browser() {
  return chromium.launch({
    executablePath: executable(),
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
      "--disable-default-apps", "--disable-extensions", "--disable-sync", "--no-first-run", "--force-color-profile=srgb",
      "--font-render-hinting=none", "--disable-lcd-text", "--hide-scrollbars",
    ],
  });
}
