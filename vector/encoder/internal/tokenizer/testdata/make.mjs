// See make.py. The ids are those with the special tokens, of each line and of
// each line paired with the next.
import fs from "node:fs";
import { createRequire } from "node:module";

const { Tokenizer } = createRequire(process.cwd() + "/")("@huggingface/tokenizers");
const here = new URL(".", import.meta.url).pathname;
const read = (name) => JSON.parse(fs.readFileSync(here + name, "utf8"));
const lines = read("lines.json");
for (const name of ["wordpiece", "cased"]) {
  const t = new Tokenizer(read(name + ".json"), {});
  const golden = lines.map((line, i) => {
    const pair = t.encode(line, { text_pair: lines[(i + 1) % lines.length], return_token_type_ids: true });
    return [line, t.encode(line).ids, pair.ids, pair.token_type_ids];
  });
  fs.writeFileSync(here + name + ".golden.json", JSON.stringify(golden).replaceAll('],["', '],\n["') + "\n");
}
