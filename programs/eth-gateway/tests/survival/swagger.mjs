//! Opens Swagger UI of the gateway at the address that it is given, executes one request there and prints its answer.

import { browser } from "../../../../web/tests/browser.mjs";

const chromium = await browser();
try {
  const page = await chromium.newPage();
  const failed = [];
  page.on("pageerror", (error) => failed.push(String(error)));
  await page.goto(`${process.argv[2]}/swaggerui/`);
  const operation = page.locator("#operations-default-lastHeight");
  await operation.locator(".opblock-summary-control").click();
  const execute = operation.locator("button.execute");
  await execute.waitFor();
  await execute.click();
  const answer = operation.locator(".live-responses-table .response-col_description .highlight-code");
  await answer.first().waitFor();
  console.log(await answer.first().innerText());
  if (failed.length > 0) throw new Error(failed.join("\n"));
} finally {
  await chromium.close();
}
