// How a script connects to a session that was opened for Playwright and Puppeteer.
import { useState } from "preact/hooks";

import { CopyButton, CopyField, Segments } from "../../ui";

const scripts: Record<string, (address: string) => string> = {
  playwright: (address) => `import { chromium } from "playwright";

const browser = await chromium.connectOverCDP("${address}");
const page = browser.contexts()[0].pages()[0];
await page.goto("https://example.com");`,
  puppeteer: (address) => `import puppeteer from "puppeteer-core";

const browser = await puppeteer.connect({
  browserWSEndpoint: "${address}",
  defaultViewport: null,
});
const [page] = await browser.pages();
await page.goto("https://example.com");`,
};

/** The address for a script, and how to use it. */
export function Connect({ address }: { address: string }) {
  const [library, setLibrary] = useState("playwright");
  const script = scripts[library];
  return (
    <div class="session-connect stack">
      <CopyField label="Script address" text={address} />
      <p class="muted">
        Anyone with this address controls the session while it's open. One script can connect at a time; while a person
        is in control, its commands wait.
      </p>
      <div class="row">
        <Segments
          label="Library"
          value={library}
          options={[
            ["playwright", "Playwright"],
            ["puppeteer", "Puppeteer"],
          ]}
          onChange={setLibrary}
        />
        <CopyButton text={() => script(address)}>Copy code</CopyButton>
      </div>
      <pre class="code" tabIndex={0} aria-label="Example">
        {script(address.replace(/token=.*/, "token=…"))}
      </pre>
    </div>
  );
}
