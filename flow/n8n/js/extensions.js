//@ .isEmpty
for (const [type, empty] of [
  [Array, (v) => v.length === 0],
  [String, (v) => v.length === 0],
  [Object, (v) => Object.keys(v).length === 0],
  [Number, () => false],
])
  Object.defineProperty(type.prototype, "isEmpty", {
    value() {
      return empty(this);
    },
    configurable: true,
  });
//@ .isNotEmpty
for (const [type, full] of [
  [Array, (v) => v.length > 0],
  [String, (v) => v.length > 0],
  [Object, (v) => Object.keys(v).length > 0],
  [Number, () => true],
])
  Object.defineProperty(type.prototype, "isNotEmpty", {
    value() {
      return full(this);
    },
    configurable: true,
  });
//@ .first
Array.prototype.first = function () {
  return this[0];
};
//@ .last
Array.prototype.last = function () {
  return this.at(-1);
};
//@ .unique
Array.prototype.unique = function () {
  const seen = new Set();
  return this.filter((v) => !seen.has(JSON.stringify(v)) && seen.add(JSON.stringify(v)));
};
//@ .removeDuplicates
Array.prototype.removeDuplicates = function () {
  const seen = new Set();
  return this.filter((v) => !seen.has(JSON.stringify(v)) && seen.add(JSON.stringify(v)));
};
//@ .sum
Array.prototype.sum = function () {
  return this.reduce((a, b) => a + Number(b), 0);
};
//@ .average
Array.prototype.average = function () {
  return this.length ? this.reduce((a, b) => a + Number(b), 0) / this.length : 0;
};
//@ .min
Array.prototype.min = function () {
  return Math.min(...this);
};
//@ .max
Array.prototype.max = function () {
  return Math.max(...this);
};
//@ .pluck
Array.prototype.pluck = function (...names) {
  return this.map((v) => (names.length === 1 ? v[names[0]] : Object.fromEntries(names.map((n) => [n, v[n]]))));
};
//@ .compact
Array.prototype.compact = function () {
  return this.filter((v) => v !== null && v !== undefined && v !== "");
};
//@ .chunk
Array.prototype.chunk = function (size) {
  return Array.from({ length: Math.ceil(this.length / size) }, (_, i) => this.slice(i * size, (i + 1) * size));
};
//@ .toJsonString
Object.defineProperty(Object.prototype, "toJsonString", {
  value() {
    return JSON.stringify(this.valueOf());
  },
  configurable: true,
});
//@ .hasField
Object.defineProperty(Object.prototype, "hasField", {
  value(name) {
    return name in this;
  },
  configurable: true,
});
//@ .round
Number.prototype.round = function (places = 0) {
  return Math.round(this * 10 ** places) / 10 ** places;
};
//@ .floor
Number.prototype.floor = function () {
  return Math.floor(this);
};
//@ .ceil
Number.prototype.ceil = function () {
  return Math.ceil(this);
};
//@ .abs
Number.prototype.abs = function () {
  return Math.abs(this);
};
//@ .isEven
Number.prototype.isEven = function () {
  return this % 2 === 0;
};
//@ .isOdd
Number.prototype.isOdd = function () {
  return Math.abs(this % 2) === 1;
};
//@ .toNumber
String.prototype.toNumber = function () {
  return Number(this);
};
//@ .toInt
String.prototype.toInt = function () {
  return parseInt(this, 10);
};
//@ .toFloat
String.prototype.toFloat = function () {
  return parseFloat(this);
};
//@ .toBoolean
String.prototype.toBoolean = function () {
  return !["", "false", "0", "no"].includes(this.toLowerCase());
};
//@ .toTitleCase
String.prototype.toTitleCase = function () {
  return this.replace(/\S+/g, (w) => w[0].toUpperCase() + w.slice(1).toLowerCase());
};
//@ .toSentenceCase
String.prototype.toSentenceCase = function () {
  return this.charAt(0).toUpperCase() + this.slice(1).toLowerCase();
};
//@ .toSnakeCase
String.prototype.toSnakeCase = function () {
  return this.trim()
    .toLowerCase()
    .replace(/[\s-]+/g, "_")
    .replace(/[^a-z0-9_]/g, "");
};
//@ .removeTags
String.prototype.removeTags = function () {
  return this.replace(/<[^>]*>/g, "");
};
//@ .removeMarkdown
String.prototype.removeMarkdown = function () {
  return this.replace(/[*_`#>~]+/g, "");
};
//@ .extractEmail
String.prototype.extractEmail = function () {
  return /[\w.+-]+@[\w-]+(\.[\w-]+)+/.exec(this)?.[0];
};
//@ .extractUrl
String.prototype.extractUrl = function () {
  return /https?:\/\/[^\s<>"']+/.exec(this)?.[0];
};
//@ .extractDomain
String.prototype.extractDomain = function () {
  return /(?:https?:\/\/|@)?([\w-]+(?:\.[\w-]+)+)/.exec(this)?.[1];
};
//@ .isEmail
String.prototype.isEmail = function () {
  return /^[\w.+-]+@[\w-]+(\.[\w-]+)+$/.test(this);
};
//@ .isUrl
String.prototype.isUrl = function () {
  return /^https?:\/\/[^\s]+$/.test(this);
};
//@ .isNumeric
String.prototype.isNumeric = function () {
  return this.trim() !== "" && !Number.isNaN(Number(this));
};
//@ .urlEncode
String.prototype.urlEncode = function () {
  return encodeURIComponent(this);
};
//@ .urlDecode
String.prototype.urlDecode = function () {
  return decodeURIComponent(this);
};
//@ .quote
String.prototype.quote = function (mark = '"') {
  return mark + this.replaceAll(mark, "\\" + mark) + mark;
};
//@ .parseJson
String.prototype.parseJson = function () {
  return JSON.parse(this);
};
//@ .toDateTime
String.prototype.toDateTime = function () {
  return $date(String(this));
};
Number.prototype.toDateTime = function () {
  return $date(Number(this));
};
