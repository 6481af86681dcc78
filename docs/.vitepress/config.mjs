// The documentation as a site: "task docs" builds it into bin/docs.
import { posix } from "node:path";

// repository is where files outside of docs are linked to; without it they are text.
const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = process.env;
const repository = server && name ? `${server}/${name}/blob/main/` : "";

const section = (text, pages) => ({ text, items: Object.entries(pages).map(([link, text]) => ({ text, link })) });

// GitHub's names of headings, so that links work there and here.
const slugify = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");

// outward links what lies outside of docs to the repository.
function outward(md) {
  md.core.ruler.push("outward", ({ tokens, env }) => {
    let end = "a"; // the tag of the link that is open
    for (const token of tokens.flatMap((t) => t.children ?? [])) {
      if (token.type === "link_close") token.tag = end;
      if (token.type !== "link_open") continue;
      end = "a";
      const href = token.attrGet("href");
      const path = posix.join("docs", posix.dirname(env.relativePath), href);
      if (!href.startsWith(".") || path.startsWith("docs/")) continue;
      if (repository) token.attrSet("href", repository + path);
      else Object.assign(token, { tag: (end = "span"), attrs: null });
    }
  });
}

// plain keeps braces in texts from being read as code of the site.
function plain(md) {
  for (const name of ["text", "code_inline"]) {
    const rule = md.renderer.rules[name];
    md.renderer.rules[name] = (...of) => rule(...of).replaceAll("{{", "&#123;&#123;");
  }
}

export default {
  title: "Satchel",
  description: "Self-hosted agent automation in one binary and one file for each agent",
  base: process.env.DOCS_BASE ?? "/",
  outDir: "../bin/docs",
  cacheDir: "../bin/docs-cache",
  cleanUrls: true,
  markdown: { html: false, anchor: { slugify }, config: (md) => md.use(outward).use(plain) },
  vite: { publicDir: false },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: [
      section("Step by step", {
        "/guides/first-steps": "First steps",
        "/guides/telegram": "Answer Telegram from a handbook",
        "/guides/sheet-to-slack": "A sheet to Slack",
        "/guides/invoices": "Log in with a person",
        "/guides/n8n": "Move a workflow from n8n",
        "/guides/ollama": "With a model on your own machine",
        "/guides/cloudflare-access": "Behind Cloudflare Access",
        "/guides/bucket": "Back up to a bucket",
      }),
      section("Run it", {
        "/operate": "Running Satchel",
        "/backup": "Backups",
        "/upgrade": "Upgrading",
        "/cluster": "Several servers",
        "/models": "Models from files",
        "/cli": "The command line",
      }),
      section("Use it", {
        "/console": "The console",
        "/chat": "Talking to an agent",
        "/knowledge": "Knowledge",
        "/tools": "Tools",
        "/apis": "APIs",
        "/credentials": "Credentials",
        "/mcp": "MCP",
        "/workflows": "Workflows",
        "/from-n8n": "From n8n",
        "/schedules": "Schedules and calendar",
        "/tables": "Tables and forms",
        "/gateways": "Gateways",
        "/widget": "The widget on your website",
        "/browser": "The browser",
        "/events": "Events and webhooks",
        "/api": "The API",
      }),
      section("How it is made", {
        "/figures": "Figures",
        "/architecture": "Architecture",
        "/internals": "How it works inside",
        "/decisions/": "Decisions",
      }),
    ],
  },
};
