//@ $bytes
// A text as bytes of UTF-8.
const $bytes = (text) => Array.from(unescape(encodeURIComponent(String(text))), (c) => c.charCodeAt(0));
//@ $utf8
// Bytes of UTF-8 as a text. What is no UTF-8 is read as Latin-1.
const $utf8 = (bytes) => {
  let raw = "";
  for (let i = 0; i < bytes.length; i += 4096) raw += String.fromCharCode(...bytes.slice(i, i + 4096));
  try {
    return decodeURIComponent(escape(raw)).replace(/^\uFEFF/, "");
  } catch {
    return raw;
  }
};
//@ $base64
const $base64 = (v) => {
  const bytes = typeof v === "string" ? $bytes(v) : v,
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    out = [];
  for (let i = 0; i < bytes.length; i += 3) {
    const n = (bytes[i] << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    out.push(
      letters[n >> 18],
      letters[(n >> 12) & 63],
      i + 1 < bytes.length ? letters[(n >> 6) & 63] : "=",
      i + 2 < bytes.length ? letters[n & 63] : "=",
    );
  }
  return out.join("");
};
//@ $unbase64
const $unbase64 = (text) => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    out = [];
  let n = 0,
    bits = 0;
  for (const c of String(text ?? "")
    .replaceAll("-", "+")
    .replaceAll("_", "/")) {
    const v = letters.indexOf(c);
    if (v < 0) continue;
    n = ((n << 6) | v) & 0xffffff;
    if ((bits += 6) >= 8) out.push((n >> (bits -= 8)) & 255);
  }
  return out;
};
//@ $hex
const $hex = (bytes) => bytes.map((b) => b.toString(16).padStart(2, "0")).join("");
//@ $unhex
const $unhex = (text) => (String(text).match(/[0-9a-f]{2}/gi) ?? []).map((v) => parseInt(v, 16));
//@ Buffer
// The common part of Node's Buffer.
class Buffer extends Uint8Array {
  static from(v, encoding = "utf8") {
    if (typeof v !== "string")
      return Uint8Array.from.call(
        Buffer,
        v?.type === "Buffer" ? v.data : v instanceof ArrayBuffer ? new Uint8Array(v) : v,
      );
    const read = {
      base64: $unbase64,
      base64url: $unbase64,
      hex: $unhex,
      latin1: (s) => Array.from(s, (c) => c.charCodeAt(0) & 255),
    };
    read.binary = read.ascii = read.latin1;
    return Uint8Array.from.call(Buffer, (read[encoding] ?? $bytes)(v));
  }
  static alloc(size) {
    return new Buffer(size);
  }
  static concat(list) {
    return Buffer.from(list.flatMap((b) => [...b]));
  }
  static isBuffer(v) {
    return v instanceof Buffer;
  }
  static byteLength(v, encoding) {
    return Buffer.from(v, encoding).length;
  }
  toString(encoding = "utf8") {
    const bytes = [...this];
    switch (encoding) {
      case "base64":
        return $base64(bytes);
      case "base64url":
        return $base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
      case "hex":
        return $hex(bytes);
      case "latin1":
      case "binary":
      case "ascii":
        return bytes.map((b) => String.fromCharCode(b)).join("");
    }
    return $utf8(bytes);
  }
  toJSON() {
    return { type: "Buffer", data: [...this] };
  }
}
//@ $words
// The words of 32 or 64 bits of a padded message, most significant byte first.
const $words = (bytes, size, little) => {
  const block = size * 16,
    length = bytes.length,
    padded = [...bytes, 128];
  while (padded.length % block !== block - size * 2) padded.push(0);
  const count = Array.from({ length: size * 2 }, (_, i) => Number((BigInt(length * 8) >> BigInt(8 * i)) & 255n));
  padded.push(...(little ? count : count.reverse()));
  return Array.from({ length: padded.length / size }, (_, i) => {
    const word = padded.slice(i * size, (i + 1) * size);
    return (little ? word.reverse() : word).reduce((n, b) => (n << 8n) | BigInt(b), 0n);
  });
};
//@ $primes
// The fractional parts of the roots of the first primes, in bits.
const $primes = (count, root, bits) => {
  const primes = [];
  for (let n = 2n; primes.length < count; n++) if (primes.every((p) => n % p !== 0n)) primes.push(n);
  return primes.map((p) => {
    const target = p << BigInt(bits * root);
    let low = 0n,
      high = target;
    while (low < high) {
      const mid = (low + high + 1n) >> 1n;
      if (mid ** BigInt(root) <= target) low = mid;
      else high = mid - 1n;
    }
    return low & ((1n << BigInt(bits)) - 1n);
  });
};
//@ $sha2
const $sha2 = (bytes, bits, start) => {
  const size = BigInt(bits),
    mask = (1n << size) - 1n,
    rounds = bits === 32 ? 64 : 80;
  const [a1, a2, a3, e1, e2, e3, s1, s2, s3, t1, t2, t3] =
    bits === 32
      ? [2n, 13n, 22n, 6n, 11n, 25n, 7n, 18n, 3n, 17n, 19n, 10n]
      : [28n, 34n, 39n, 14n, 18n, 41n, 1n, 8n, 7n, 19n, 61n, 6n];
  const turn = (v, n) => ((v >> n) | (v << (size - n))) & mask,
    k = $primes(rounds, 3, bits),
    words = $words(bytes, bits / 8, false);
  let h = start;
  for (let at = 0; at < words.length; at += 16) {
    const w = words.slice(at, at + 16);
    for (let i = 16; i < rounds; i++)
      w[i] =
        (w[i - 16] +
          (turn(w[i - 15], s1) ^ turn(w[i - 15], s2) ^ (w[i - 15] >> s3)) +
          w[i - 7] +
          (turn(w[i - 2], t1) ^ turn(w[i - 2], t2) ^ (w[i - 2] >> t3))) &
        mask;
    let [a, b, c, d, e, f, g, z] = h;
    for (let i = 0; i < rounds; i++) {
      const one = z + (turn(e, e1) ^ turn(e, e2) ^ turn(e, e3)) + ((e & f) ^ (~e & mask & g)) + k[i] + w[i];
      const two = (turn(a, a1) ^ turn(a, a2) ^ turn(a, a3)) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, z] = [(one + two) & mask, a, b, c, (d + one) & mask, e, f, g];
    }
    h = h.map((v, i) => (v + [a, b, c, d, e, f, g, z][i]) & mask);
  }
  return h.flatMap((v) => $unhex(v.toString(16).padStart(bits / 4, "0")));
};
//@ $sha1
const $sha1 = (bytes) => {
  const words = $words(bytes, 4, false).map(Number),
    turn = (v, n) => (v << n) | (v >>> (32 - n));
  let h = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  for (let at = 0; at < words.length; at += 16) {
    const w = words.slice(at, at + 16);
    for (let i = 16; i < 80; i++) w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    let [a, b, c, d, e] = h;
    for (let i = 0; i < 80; i++) {
      const [f, k] =
        i < 20
          ? [(b & c) | (~b & d), 0x5a827999]
          : i < 40
            ? [b ^ c ^ d, 0x6ed9eba1]
            : i < 60
              ? [(b & c) | (b & d) | (c & d), 0x8f1bbcdc]
              : [b ^ c ^ d, 0xca62c1d6];
      [a, b, c, d, e] = [(turn(a, 5) + f + e + k + w[i]) | 0, a, turn(b, 30), c, d];
    }
    h = h.map((v, i) => (v + [a, b, c, d, e][i]) | 0);
  }
  return h.flatMap((v) => [24, 16, 8, 0].map((n) => (v >>> n) & 255));
};
//@ $md5
const $md5 = (bytes) => {
  const words = $words(bytes, 4, true).map(Number),
    k = Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));
  const turns = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
  ];
  let h = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
  for (let at = 0; at < words.length; at += 16) {
    let [a, b, c, d] = h;
    for (let i = 0; i < 64; i++) {
      const round = i >> 4,
        [f, g] = [
          [(b & c) | (~b & d), i],
          [(d & b) | (~d & c), 5 * i + 1],
          [b ^ c ^ d, 3 * i + 5],
          [c ^ (b | ~d), 7 * i],
        ][round];
      const v = (a + f + k[i] + words[at + (g % 16)]) | 0,
        n = turns[round][i % 4];
      [a, b, c, d] = [d, (b + ((v << n) | (v >>> (32 - n)))) | 0, b, c];
    }
    h = h.map((v, i) => (v + [a, b, c, d][i]) | 0);
  }
  return h.flatMap((v) => [0, 8, 16, 24].map((n) => (v >>> n) & 255));
};
//@ $hash
// The hash of bytes, by its name in Node.
const $hash = (name, bytes) => {
  switch (name) {
    case "MD5":
      return $md5(bytes);
    case "SHA1":
      return $sha1(bytes);
    case "SHA256":
      return $sha2(bytes, 32, $primes(8, 2, 32));
    case "SHA512":
      return $sha2(bytes, 64, $primes(8, 2, 64));
    case "SHA384":
      return $sha2(bytes, 64, $primes(16, 2, 64).slice(8)).slice(0, 48);
  }
  throw new Error(`the hash ${name} is not known here`);
};
//@ $hmac
const $hmac = (name, key, bytes) => {
  const size = name === "SHA384" || name === "SHA512" ? 128 : 64;
  if (key.length > size) key = $hash(name, key);
  const padded = [...key, ...Array(size - key.length).fill(0)];
  return $hash(name, [...padded.map((b) => b ^ 0x5c), ...$hash(name, [...padded.map((b) => b ^ 0x36), ...bytes])]);
};
//@ $random
// Random characters, of hex, base64 or ascii, or a UUID. They are not fit for
// secrets.
const $random = (kind, length) => {
  const any = (text, n) => Array.from({ length: n }, () => text[Math.floor(Math.random() * text.length)]).join("");
  const hex = "0123456789abcdef";
  if (kind === "uuid")
    return `${any(hex, 8)}-${any(hex, 4)}-4${any(hex, 3)}-${any("89ab", 1)}${any(hex, 3)}-${any(hex, 12)}`;
  return any(kind === "hex" ? hex : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", length);
};
//@ $mime
// An email as Gmail's API takes it.
const $mime = ({ to, cc, bcc, subject, text, html }) => {
  const word = (v) => (/^[\x20-\x7e]*$/.test(v) ? v : `=?UTF-8?B?${$base64(v)}?=`);
  const lines = [
    ["To", to],
    ["Cc", cc],
    ["Bcc", bcc],
    ["Subject", word($text(subject))],
  ]
    .filter(([, v]) => v)
    .map(([name, v]) => `${name}: ${String(v).replace(/[\r\n]+/g, " ")}`);
  lines.push(
    "MIME-Version: 1.0",
    `Content-Type: text/${html ? "html" : "plain"}; charset=utf-8`,
    "Content-Transfer-Encoding: base64",
    "",
    $base64($text(text)).replace(/.{76}/g, "$&\r\n"),
  );
  return $base64(lines.join("\r\n")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};
//@ $related
// A file and its metadata as one body, as Google Drive takes it.
const $related = (metadata, type, data) =>
  `--part\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n${JSON.stringify(metadata)}\r\n--part\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${data}\r\n--part--`;
//@ $fileText
// The text of a file, which a field of an item holds as base64.
const $fileText = (json, name) => {
  const v = $get(json, name);
  if (v === undefined) throw new Error(`the item has no file in the field ${name}`);
  return $utf8($unbase64(v?.data ?? v));
};
//@ $csv
// The rows of a CSV text, by its first row or by numbers.
const $csv = (text, delimiter = ",", header = true) => {
  const rows = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i],
      row = rows.at(-1);
    if (quoted) {
      if (c !== '"') row[row.length - 1] += c;
      else if (text[i + 1] === '"') {
        row[row.length - 1] += '"';
        i++;
      } else quoted = false;
    } else if (c === '"' && row.at(-1) === "") quoted = true;
    else if (c === delimiter) row.push("");
    else if (c === "\n") rows.push([""]);
    else if (c !== "\r" || text[i + 1] !== "\n") row[row.length - 1] += c;
  }
  const filled = rows.filter((row) => row.length > 1 || row[0] !== "");
  if (!header) return filled.map((row) => ({ row }));
  const [names = [], ...rest] = filled;
  return rest.map((row) => Object.fromEntries(names.map((name, i) => [name.trim(), row[i] ?? ""])));
};
//@ $toCSV
const $toCSV = (items, delimiter = ",", header = true) => {
  const names = [...new Set(items.flatMap((json) => Object.keys(json)))],
    cell = (v) => {
      const s = $text(v);
      return s.includes(delimiter) || /["\r\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
    };
  return [...(header ? [names] : []), ...items.map((json) => names.map((name) => json[name]))]
    .map((row) => row.map(cell).join(delimiter))
    .join("\n");
};
