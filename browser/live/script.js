// Records what happens on a page with rrweb and hands it over in batches. It
// runs before the page's own scripts, which never see rrweb nor the binding:
// both are known in here alone.
(() => {
  if (window.top !== window) return;
  const send = globalThis["BINDING"];
  if (typeof send !== "function") return;
  delete globalThis["BINDING"];
  const stringify = JSON.stringify,
    later = setTimeout.bind(globalThis),
    largest = 8 << 20,
    full = 256 << 10;
  let batch = [],
    size = 0,
    waiting = false;
  const flush = () => {
    waiting = false;
    if (batch.length > 0) send("[" + batch.join(",") + "]");
    batch = [];
    size = 0;
  };
  const emit = (event) => {
    let text = stringify(event);
    if (text.length > largest) {
      text = stringify({
        type: 5,
        timestamp: event.timestamp,
        data: { tag: "too-large", payload: { type: event.type, length: text.length } },
      });
    }
    batch.push(text);
    size += text.length;
    if (size >= full) flush();
    else if (!waiting) {
      waiting = true;
      later(flush, 200);
    }
  };
  addEventListener("pagehide", flush, true);
  const exports = {},
    module = { exports };
  RRWEB;
  module.exports.record({
    emit,
    checkoutEveryNth: 2000,
    inlineStylesheet: true,
    maskInputOptions: { password: true },
    sampling: { mousemove: 100, scroll: 150, media: 800 },
  });
})();
