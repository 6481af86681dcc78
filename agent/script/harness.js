// What stands between a script and the Go code of the child: console, fetch,
// and the end of the script. It holds on to the built-ins it needs, so that a
// script which changes them changes nothing here but what it would see itself.
(() => {
  "use strict";
  const { $log, $fetch, $read, $done, $fail, $limits } = globalThis;
  for (const name of ["$log", "$fetch", "$read", "$done", "$fail", "$limits"]) delete globalThis[name];
  const limits = JSON.parse($limits());
  const { apply, ownKeys, get, has } = Reflect;
  const { set, deleteProperty, defineProperty: define, getOwnPropertyDescriptor, preventExtensions } = Reflect;
  const changes = [
    ["set", set],
    ["deleteProperty", deleteProperty],
    ["defineProperty", define],
    ["ownKeys", ownKeys],
    ["getOwnPropertyDescriptor", getOwnPropertyDescriptor],
    ["preventExtensions", preventExtensions],
  ];
  const { parse, stringify } = JSON;
  const { defineProperty, freeze, create, entries } = Object;
  const { slice, toLowerCase, toUpperCase } = String.prototype;
  const { then } = Promise.prototype;
  const P = Promise,
    S = String,
    E = Error,
    T = TypeError,
    R = RangeError,
    A = Array,
    X = Proxy,
    isArray = Array.isArray;
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
  const log =
    (level) =>
    (...values) => {
      if (!room) return;
      let line = "";
      for (let i = 0; i < values.length && line.length <= limits.line; i++) {
        line += (i > 0 ? " " : "") + clip(show(values[i]), limits.line);
      }
      room = $log(level, clip(line, limits.line));
    };
  const warn = log("warn");
  const console = {};
  for (const level of ["log", "info", "warn", "error", "debug"]) console[level] = log(level);

  const fail = (e, kind) => {
    let name = "",
      message = "",
      stack = "";
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
    const add = (name, value) => {
      out[out.length] = [S(name), S(value)];
    };
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
      forEach: (call) => {
        for (let i = 0; i < pairs.length; i++) call(pairs[i][1], pairs[i][0]);
      },
      keys: () => ownKeys(values).values(),
      values: () =>
        ownKeys(values)
          .map((name) => values[name])
          .values(),
      entries: () => entries(values).values(),
      [Symbol.iterator]: () => entries(values).values(),
    });
  };

  const waiting = create(null);
  let last = 0;
  const fetch = (resource, init) =>
    new P((resolve, reject) => {
      const options = init ?? {};
      const method = options.method === undefined ? "GET" : apply(toUpperCase, S(options.method), []);
      const body = options.body === undefined || options.body === null ? "" : S(options.body);
      const credential = options.credential === undefined || options.credential === null ? "" : S(options.credential);
      const problem = $fetch(++last, method, S(resource), stringify(list(options.headers)), body, credential);
      if (problem !== "") throw new T(problem);
      waiting[last] = [resolve, reject];
    });

  // settle ends a fetch: problem is empty, or why there is no response. warning is
  // about a number in its body that changes when it is parsed.
  const settle = (id, problem, status, statusText, url, headers, body, warning) => {
    const [resolve, reject] = waiting[id];
    delete waiting[id];
    if (problem !== "") {
      reject(new T(problem));
      return;
    }
    resolve(
      freeze({
        ok: status >= 200 && status < 300,
        status,
        statusText,
        url,
        headers: responseHeaders(parse(headers)),
        text: () => new P((ok) => ok(body)),
        json: () =>
          new P((ok) => {
            if (warning !== "") warn(warning);
            ok(parse(body));
          }),
      }),
    );
  };

  for (const [name, value] of [
    ["console", console],
    ["fetch", fetch],
  ]) {
    defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }

  // received reads values that were sent. A large one among them, or among the
  // entries of an object there, is an object or a list that asks for what it
  // holds when that is read.
  const received = (text) => {
    const part = parse(text);
    if (part.problem) throw new R(part.problem);
    for (let i = 0; i < part.large.length; i++) {
      const at = part.large[i][0],
        number = part.large[i][1],
        length = part.large[i][2],
        key = part.large[i][3];
      const value = length < 0 ? largeObject(number) : largeList(number, length);
      if (key === null) part.values[at] = value;
      else own(part.values[at], key, value);
    }
    return part;
  };
  const own = (target, key, value) =>
    defineProperty(target, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

  // large is an object or a list whose entries are sent when they are read: one
  // by find, and all of them by load before anything else is done with it. From
  // then on it is as any other.
  const large = (target, find, load, reads) => {
    const handler = create(null);
    const whole = () => {
      if (!handler.get) return;
      load();
      handler.get = handler.has = undefined;
      for (let i = 0; i < changes.length; i++) handler[changes[i][0]] = undefined;
    };
    handler.get = (_, key, receiver) => {
      const found = find(key);
      if (found) return found[0];
      if (reads(key)) whole();
      return get(target, key, receiver);
    };
    handler.has = (_, key) => find(key) !== undefined || has(target, key);
    for (let i = 0; i < changes.length; i++) {
      handler[changes[i][0]] = (...args) => {
        whole();
        return apply(changes[i][1], undefined, args);
      };
    }
    return new X(target, handler);
  };

  const largeObject = (number) => {
    const target = {};
    const known = create(null);
    const find = (key) => {
      if (typeof key !== "string") return undefined;
      if (!(key in known)) {
        const { values } = received($read(number, key, 0, false));
        known[key] = values.length > 0 ? values : undefined;
      }
      return known[key];
    };
    const load = () => {
      const { keys, values } = received($read(number, "", 0, true));
      for (let i = 0; i < keys.length; i++) own(target, keys[i], known[keys[i]] ? known[keys[i]][0] : values[i]);
    };
    return large(target, find, load, () => false);
  };

  // What a list has that reads few of its entries.
  const sparing = { __proto__: null, length: true, at: true, slice: true, constructor: true };
  const listProto = A.prototype;
  const largeList = (number, length) => {
    const target = new A(length);
    const known = create(null);
    const find = (key) => {
      const i = typeof key === "string" ? key | 0 : -1;
      if (!(i >= 0 && i < length && S(i) === key)) return undefined;
      if (!(key in known)) {
        const { values } = received($read(number, "", i, false));
        for (let j = 0; j < values.length; j++) if (!(i + j in known)) known[i + j] = [values[j]];
      }
      return known[key];
    };
    const load = () => {
      const { values } = received($read(number, "", 0, true));
      for (let i = 0; i < length; i++) own(target, i, i in known ? known[i][0] : values[i]);
    };
    return large(target, find, load, (key) => key in listProto && !(key in sparing));
  };

  // run starts a script: a function that gives an async function when it is
  // called with the values of its variables.
  const run = (script, values) => {
    try {
      apply(then, apply(script, undefined, received(values).values), [done, (e) => fail(e, "thrown")]);
    } catch (e) {
      fail(e, "thrown");
    }
  };
  return { run, settle };
})();
