// What stands between a script and the Go code of the child: console, fetch,
// and the end of the script. It is evaluated in a fresh engine before each
// script, and holds on to the built-ins it needs, so that a script which
// changes them changes nothing here but what it would see itself.
(() => {
  "use strict";
  const { $log, $fetch, $done, $fail, $limits } = globalThis;
  for (const name of ["$log", "$fetch", "$done", "$fail", "$limits"]) delete globalThis[name];
  const limits = $limits();
  const { apply, ownKeys } = Reflect;
  const { parse, stringify } = JSON;
  const { defineProperty, freeze, create, entries } = Object;
  const { slice, toLowerCase, toUpperCase } = String.prototype;
  const { then } = Promise.prototype;
  const P = Promise, S = String, E = Error, T = TypeError, isArray = Array.isArray;
  const clip = (text, n) => (text.length > n ? apply(slice, text, [0, n]) + "…" : text);

  // show writes a value for a log line or a message.
  const show = (v) => {
    if (typeof v === "string") return v;
    try {
      if (v instanceof E) return S(v);
      if (typeof v === "object" && v !== null) {
        const text = stringify(v);
        if (text !== undefined) return text;
      }
      return typeof v === "function" ? "[function]" : S(v);
    } catch {
      return "[" + typeof v + "]";
    }
  };

  let room = true;
  const log = (level) => (...values) => {
    if (!room) return;
    let line = "";
    for (let i = 0; i < values.length && line.length <= limits.line; i++) {
      line += (i > 0 ? " " : "") + clip(show(values[i]), limits.line);
    }
    room = $log(level, clip(line, limits.line));
  };
  const console = {};
  for (const level of ["log", "info", "warn", "error", "debug"]) console[level] = log(level);

  const fail = (e, kind) => {
    let name = "", message = "", stack = "";
    try {
      if (e instanceof E) {
        name = S(e.name);
        message = S(e.message);
        stack = S(e.stack);
      } else {
        message = show(e);
      }
    } catch {
      message = "the script threw a value that cannot be shown";
    }
    $fail(kind, clip(name, 100), clip(message, limits.message), clip(stack, 4000));
  };

  const done = (value) => {
    let text;
    try {
      text = stringify(value);
    } catch (e) {
      fail(e, "result");
      return;
    }
    if (text === undefined) text = "null";
    if (text.length > limits.result) {
      fail(null, "size");
      return;
    }
    $done(text);
  };

  const list = (headers) => {
    const out = [];
    const add = (name, value) => { out[out.length] = [S(name), S(value)]; };
    if (headers === undefined || headers === null) return out;
    if (isArray(headers)) {
      for (let i = 0; i < headers.length; i++) add(headers[i][0], headers[i][1]);
    } else if (typeof headers.forEach === "function") {
      headers.forEach((value, name) => add(name, value));
    } else {
      const pairs = entries(headers);
      for (let i = 0; i < pairs.length; i++) add(pairs[i][0], pairs[i][1]);
    }
    return out;
  };

  // Headers of a response: names in lower case, one value each.
  const responseHeaders = (pairs) => {
    const key = (name) => apply(toLowerCase, S(name), []);
    const values = create(null);
    for (let i = 0; i < pairs.length; i++) values[pairs[i][0]] = pairs[i][1];
    return freeze({
      get: (name) => values[key(name)] ?? null,
      has: (name) => values[key(name)] !== undefined,
      forEach: (call) => { for (let i = 0; i < pairs.length; i++) call(pairs[i][1], pairs[i][0]); },
      keys: () => ownKeys(values).values(),
      values: () => ownKeys(values).map((name) => values[name]).values(),
      entries: () => entries(values).values(),
      [Symbol.iterator]: () => entries(values).values(),
    });
  };

  const waiting = create(null);
  let last = 0;
  const fetch = (resource, init) => new P((resolve, reject) => {
    const options = init ?? {};
    const method = options.method === undefined ? "GET" : apply(toUpperCase, S(options.method), []);
    const body = options.body === undefined || options.body === null ? "" : S(options.body);
    const problem = $fetch(++last, method, S(resource), stringify(list(options.headers)), body);
    if (problem !== "") throw new T(problem);
    waiting[last] = [resolve, reject];
  });

  // settle ends a fetch: problem is empty, or why there is no response.
  const settle = (id, problem, status, statusText, url, headers, body) => {
    const [resolve, reject] = waiting[id];
    delete waiting[id];
    if (problem !== "") {
      reject(new T(problem));
      return;
    }
    resolve(freeze({
      ok: status >= 200 && status < 300, status, statusText, url,
      headers: responseHeaders(parse(headers)),
      text: () => new P((ok) => ok(body)),
      json: () => new P((ok) => ok(parse(body))),
    }));
  };

  for (const [name, value] of [["console", console], ["fetch", fetch]]) {
    defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }

  // run starts a script: a function that gives an async function when it is
  // called with the values of its variables, which come as JSON.
  const run = (script, values) => {
    try {
      apply(then, apply(script, undefined, parse(values)), [done, (e) => fail(e, "thrown")]);
    } catch (e) {
      fail(e, "thrown");
    }
  };
  return { run, settle };
})()
