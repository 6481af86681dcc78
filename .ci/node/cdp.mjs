// Drives sessions with Playwright and Puppeteer, unchanged, while the API acts
// in them. The address of a Satchel server is the argument; it may reach
// 127.0.0.1 and nothing else of this machine.
import assert from "node:assert/strict";
import http from "node:http";
import { chromium } from "playwright-core";
import puppeteer from "puppeteer-core";

const api = process.argv[2] + "/api/agents/default/browser";
const rounds = Number(process.argv[3] ?? 2);

const site = http.createServer((request, response) => {
  if (request.url.startsWith("/file")) {
    response.setHeader("Content-Disposition", "attachment; filename=a.txt");
    return response.end("hello");
  }
  response.setHeader("Content-Type", "text/html");
  response.end(`<title>${request.url}</title><h1>${request.url}</h1><button id=b onclick="this.textContent='clicked'">x</button>
    <button id=d onclick="window.got=prompt('name?')">d</button><a id=f href=/file>f</a><a id=p target=_blank href=/popup>p</a>
    <input id=i><input id=u type=file><iframe src="about:blank"></iframe>`);
});
await new Promise((done) => site.listen(0, "127.0.0.1", done));
const base = `http://127.0.0.1:${site.address().port}`;

async function call(path, body, method = "POST") {
  const answer = await fetch(api + path, {
    method,
    headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${answer.ok || (await answer.text())} to ${JSON.stringify(body)}`);
  return answer.json();
}

// What both libraries do in the same way, in a page of their own, while the API reads and acts in it too.
async function walk(session, page, name, upload) {
  const execute = async (action) => (await call(`/${session.id}/execute`, action)).result;
  for (let n = 0; n < rounds; n++) {
    await page.goto(`${base}/${name}${n}`);
    assert.equal(await page.title(), `/${name}${n}`);
    assert.equal((await execute({ action: "extract", selector: "h1" })).value, `/${name}${n}`);
    await page.click("#b");
    assert.equal(await page.$eval("#b", (e) => e.textContent), "clicked");
    await page.type("#i", "hello");
    await execute({ action: "type", selector: "#i", text: "by the API", clear: true });
    assert.equal(await page.$eval("#i", (e) => e.value), "by the API");
    page.once("dialog", (dialog) => dialog.accept("Ada"));
    await page.click("#d");
    assert.equal(await page.evaluate(() => window.got), "Ada");
    assert.ok((await page.screenshot()).length > 1000);
  }
  await upload();
  await assert.rejects(page.goto("file:///etc/passwd"), /cannot be opened/);
  await assert.rejects(page.goto("http://169.254.169.254/"), /cannot be opened/);
  const reached = await page.evaluate(() =>
    Promise.all(
      ["http://127.0.0.2:8787/", "http://169.254.169.254/", "file:///etc/passwd"].map((u) =>
        fetch(u, { mode: "no-cors" }).then(
          (r) => r.type !== "opaque" && r.text(),
          () => "",
        ),
      ),
    ),
  );
  assert.ok(
    reached.every((text) => !text),
    String(reached),
  );
}

// The download was stored by the session.
async function downloaded(session, click) {
  const waited = call(`/${session.id}/execute`, { action: "wait", download: true });
  await click();
  const { download } = (await waited).result;
  assert.equal(download.name, "a.txt");
  assert.equal(await (await fetch(`${api.replace("/browser", "/downloads")}/${download.id}`)).text(), "hello");
}

async function withPlaywright() {
  const session = await call("", { cdp: true });
  const browser = await chromium.connectOverCDP(session.cdp_url);
  const [context] = browser.contexts();
  const [page] = context.pages();
  await walk(session, page, "playwright", async () => {
    await page.setInputFiles("#u", { name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("content") });
    assert.equal(await page.$eval("#u", (e) => e.files[0].text()), "content");
  });
  await page.goto(base);
  const [popup] = await Promise.all([page.waitForEvent("popup"), page.click("#p")]);
  await popup.waitForLoadState();
  assert.equal(await popup.title(), "/popup");
  await popup.close();
  const [download] = await Promise.all([page.waitForEvent("download"), downloaded(session, () => page.click("#f"))]);
  assert.equal(download.suggestedFilename(), "a.txt");
  await context.addCookies([{ name: "who", value: "playwright", url: base }]);
  await page.route("**/mocked", (route) => route.fulfill({ contentType: "text/html", body: "<title>mocked</title>" }));
  await page.goto(base + "/mocked");
  assert.equal(await page.title(), "mocked");
  const second = await context.newPage();
  await second.goto(base + "/second");
  await second.close();
  await assert.rejects(browser.newContext(), /does not allow/);
  return async () => {
    assert.deepEqual(
      (await context.cookies()).map((c) => c.value),
      ["playwright"],
    );
    await browser.close();
    await call(`/${session.id}/execute`, { action: "navigate", url: base }); // the session goes on
    const again = await chromium.connectOverCDP(session.cdp_url);
    assert.equal(await again.contexts()[0].pages()[0].title(), "/");
    await again.close();
    await call(`?id=${session.id}`, undefined, "DELETE");
    await assert.rejects(chromium.connectOverCDP(session.cdp_url), /404/);
  };
}

async function withPuppeteer() {
  const session = await call("", { cdp: true });
  const browser = await puppeteer.connect({ browserWSEndpoint: session.cdp_url, defaultViewport: null });
  const [page] = await browser.pages();
  await walk(session, page, "puppeteer", async () => {
    const input = await page.$("#u");
    await assert.rejects(input.uploadFile("/etc/passwd"), /does not allow/);
  });
  await page.goto(base);
  const popup = await new Promise((done, failed) => {
    page.once("popup", done);
    page.click("#p").catch(failed);
  });
  await popup.waitForSelector("h1");
  assert.equal(await popup.title(), "/popup");
  await popup.close();
  await downloaded(session, () => page.click("#f"));
  await browser.setCookie({ name: "who", value: "puppeteer", domain: "127.0.0.1", path: "/" });
  await page.setRequestInterception(true);
  const mock = (request) =>
    request.url().endsWith("/mocked")
      ? request.respond({ contentType: "text/html", body: "<title>mocked</title>" })
      : request.continue();
  page.on("request", mock);
  await page.goto(base + "/mocked");
  assert.equal(await page.title(), "mocked");
  const second = await browser.newPage();
  await second.goto(base + "/second");
  await second.close();
  await assert.rejects(browser.createBrowserContext(), /does not allow/);
  return async () => {
    assert.deepEqual(
      (await browser.cookies()).map((c) => c.value),
      ["puppeteer"],
    );
    await browser.close(); // which closes the session
    for (let status = ""; status !== "closed";) ({ status } = await call(`/${session.id}`, undefined, "GET"));
  };
}

const ends = await Promise.all([withPlaywright(), withPuppeteer()]); // at the same time
for (const end of ends) await end();
site.close();
console.log("Playwright and Puppeteer drive sessions");
