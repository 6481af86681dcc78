"""Makes golden.json: what PyTorch computes for small models.

python3 make.py, with Debian's python3-torch. Weights come from a generator of
integers that the tests have too, so that no weights are stored; they have few
bits and are the same in float32, float16 and bfloat16.
"""
import json, os, torch

WIDTH, HEADS, INNER, VOCABULARY, POSITIONS, TOKENS = 32, 2, 64, 120, 48, 40
torch.set_default_dtype(torch.float64)


def values(name, shape):
    state, out, n = 0xCBF29CE484222325, [], 1
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    for size in shape:
        n *= size
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        k = (state >> 33) % 255 - 127
        norm = ("LayerNorm" in name and (name.endswith("weight") or name.endswith("gamma")))
        out.append(1 + (k // 4) / 128 if norm else k / 512)
    return torch.tensor(out).reshape(shape)


class Model:
    def __init__(self, prefix="", types=2, offset=0, legacy=False):
        self.tensors, self.prefix, self.offset, self.types = {}, prefix, offset, types
        self.scale, self.shift = ("gamma", "beta") if legacy else ("weight", "bias")
        self.layers = [self.layer(f"{prefix}encoder.layer.{i}.") for i in range(2)]

    def get(self, name, *shape):
        self.tensors[name] = list(shape)
        return values(name, shape)

    def dense(self, name, n, out):
        return self.get(name + ".weight", out, n), self.get(name + ".bias", out)

    def norm(self, name):
        return self.get(f"{name}.{self.scale}", WIDTH), self.get(f"{name}.{self.shift}", WIDTH)

    def layer(self, at):
        one = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0, activation="gelu", layer_norm_eps=1e-12, batch_first=True, norm_first=False)
        parts = [self.dense(f"{at}attention.self.{p}", WIDTH, WIDTH) for p in ("query", "key", "value")]
        out, inner, outer = self.dense(at + "attention.output.dense", WIDTH, WIDTH), self.dense(at + "intermediate.dense", WIDTH, INNER), self.dense(at + "output.dense", INNER, WIDTH)
        first, second = self.norm(at + "attention.output.LayerNorm"), self.norm(at + "output.LayerNorm")
        one.load_state_dict({
            "self_attn.in_proj_weight": torch.cat([w for w, _ in parts]), "self_attn.in_proj_bias": torch.cat([b for _, b in parts]),
            "self_attn.out_proj.weight": out[0], "self_attn.out_proj.bias": out[1], "linear1.weight": inner[0], "linear1.bias": inner[1],
            "linear2.weight": outer[0], "linear2.bias": outer[1], "norm1.weight": first[0], "norm1.bias": first[1], "norm2.weight": second[0], "norm2.bias": second[1]})
        return one.train()  # not eval: the fast path of PyTorch 1.13 is another implementation; there is no dropout

    def run(self, ids, types):
        at = self.prefix + "embeddings."
        x = self.get(at + "word_embeddings.weight", VOCABULARY, WIDTH)[ids]
        x = x + self.get(at + "position_embeddings.weight", POSITIONS, WIDTH)[[self.offset + i for i in range(len(ids))]]
        x = x + self.get(at + "token_type_embeddings.weight", self.types, WIDTH)[types]
        scale, shift = self.norm(at + "LayerNorm")
        x = torch.nn.functional.layer_norm(x, (WIDTH,), scale, shift, 1e-12)[None]
        for one in self.layers:
            x = one(x)
        return x[0]


unit = lambda v: v / v.norm()
texts = ["", "w5", "w9 w8 w7 w100 w6", " ".join(f"w{5 + i * 7 % 110}" for i in range(30)), " ".join(f"w{5 + i * 11 % 110}" for i in range(90))]
pairs = [("w5 w6", "w7 w8 w9"), ("w20", ""), (" ".join(f"w{5 + i * 3 % 110}" for i in range(8)), " ".join(f"w{5 + i * 13 % 110}" for i in range(25)))]
words = lambda text: [int(w[1:]) for w in text.split()]
CLS, SEP = 2, 3


def embedder(m, pool, finish=lambda v: v):
    def one(ids):
        ids = [CLS] + ids + [SEP]
        x = m.run(ids, [0] * len(ids))
        return unit(finish(x[0] if pool == "cls" else x.mean(0)))

    def text(t):
        ids, room = words(t), TOKENS - 2
        count = max(1, -(-len(ids) // room))
        return unit(sum(one(ids[len(ids) * i // count:len(ids) * (i + 1) // count]) for i in range(count)))

    return [[t, [round(float(x), 8) for x in text(t)]] for t in texts]


def reranker(m, finish, roberta):
    out = []
    for a, b in pairs:
        a_, b_ = words(a), words(b)
        ids = [CLS] + a_ + [SEP] * (2 if roberta else 1) + b_ + [SEP]
        types = [0] * len(ids) if roberta else [0] * (len(a_) + 2) + [1] * (len(b_) + 1)
        out.append([a, b, round(float(torch.sigmoid(finish(m.run(ids, types)[0]))), 8)])
    return out


variants = []


def add(name, m, cases, **more):
    variants.append({"name": name, "tensors": dict(m.tensors), "cases": cases, **more})


with torch.no_grad():
    m = Model()
    add("mean", m, embedder(m, "mean"), pooling="mean")
    m = Model(types=1, legacy=True)
    add("cls", m, embedder(m, "cls"), pooling="cls", types=1)
    m = Model()
    linear = (values("linear.weight", (16, WIDTH)), values("linear.bias", (16,)))
    add("dense", m, embedder(m, "mean", lambda v: torch.tanh(linear[0] @ v + linear[1])), pooling="mean", dense=16)
    m = Model(types=1, offset=2)
    add("xlm-roberta", m, embedder(m, "mean"), pooling="mean", types=1, type="xlm-roberta")
    m = Model(prefix="bert.")
    pool, last = m.dense("bert.pooler.dense", WIDTH, WIDTH), m.dense("classifier", WIDTH, 1)
    add("pair", m, reranker(m, lambda v: last[0] @ torch.tanh(pool[0] @ v + pool[1]) + last[1], False), classifier="BertForSequenceClassification")
    m = Model(prefix="roberta.", types=1, offset=2)
    pool2, last2 = m.dense("classifier.dense", WIDTH, WIDTH), m.dense("classifier.out_proj", WIDTH, 1)
    add("xlm-roberta pair", m, reranker(m, lambda v: last2[0] @ torch.tanh(pool2[0] @ v + pool2[1]) + last2[1], True),
        classifier="XLMRobertaForSequenceClassification", types=1, type="xlm-roberta")

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"), "w") as f:
    f.write(json.dumps(variants, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
