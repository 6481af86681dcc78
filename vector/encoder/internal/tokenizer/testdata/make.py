"""Makes the vocabularies and expected ids of the tests.

python3 make.py, with Debian's python3-sentencepiece and python3-protobuf, then
node make.mjs, with the npm package @huggingface/tokenizers 0.2.0. Unigram is
compared with SentencePiece itself, since that package has no precompiled maps.
"""
import base64, collections, glob, io, json, os, re, tempfile
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as pb

here = os.path.dirname(os.path.abspath(__file__))
nasty = json.load(open(os.path.join(here, "lines.json"), encoding="utf-8"))
text = []
for name in sorted(glob.glob(os.path.join(here, "../../../../../docs/*.md"))):
    text += [line.strip() for line in open(name, encoding="utf-8") if line.strip()]
text += nasty * 5


def special(id, content):
    return {"id": id, "content": content, "single_word": False, "lstrip": content == "<mask>", "rstrip": False, "normalized": False, "special": True}


def template(cls, sep, middle, second):
    one = lambda name, kind: {"SpecialToken": {"id": name, "type_id": kind}}
    seq = lambda name, kind: {"Sequence": {"id": name, "type_id": kind}}
    return {"type": "TemplateProcessing",
            "single": [one(cls[0], 0), seq("A", 0), one(sep[0], 0)],
            "pair": [one(cls[0], 0), seq("A", 0), one(sep[0], 0)] + [one(sep[0], 0)] * middle + [seq("B", second), one(sep[0], second)],
            "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for n, i in (cls, sep)}}


# Rules of normalization: characters as hexadecimal numbers, before and after.
rules = {"\ufb01": "fi", "\uff46": "f", "\uff55": "u", "\uff4c": "l", "\u2460": "1", "e\u0301": "\u00e9", "\u2026": "...",
         "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\u200b": " ", "a\u0308": "\u00e4", "\u0007": "", "\ufdfa": "a long text of several words"}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "rules.tsv")
    with open(path, "w") as f:
        for a, b in rules.items():
            f.write(" ".join("%X" % ord(c) for c in a) + "\t" + " ".join("%X" % ord(c) for c in b) + "\n")
    out = io.BytesIO()
    how = {"normalization_rule_tsv": path} if not os.environ.get("NMT") else {"normalization_rule_name": "nmt_nfkc"}
    spm.SentencePieceTrainer.train(sentence_iterator=iter(text), model_writer=out, vocab_size=400, model_type="unigram", character_coverage=0.98,
                                   num_threads=1, **how)
model = pb.ModelProto.FromString(out.getvalue())
sp = spm.SentencePieceProcessor(model_proto=out.getvalue())
pieces = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]] + [[p.piece, p.score] for p in model.pieces[3:]] + [["<mask>", 0.0]]
data = {"version": "1.0", "truncation": {"max_length": 512}, "padding": None,
        "added_tokens": [special(i, c) for i, c in ((0, "<s>"), (1, "<pad>"), (2, "</s>"), (3, "<unk>"), (len(pieces) - 1, "<mask>"))],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}]},
        "post_processor": template(("<s>", 0), ("</s>", 2), 1, 0), "decoder": {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True},
        "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces}}
json.dump(data, open(os.path.join(here, "unigram.json"), "w"), ensure_ascii=False, separators=(",", ":"))
ids = lambda line: [i + 1 if i else 3 for i in sp.encode(line)]
json.dump([[line, ids(line)] for line in nasty if "\u2581" not in line], open(os.path.join(here, "unigram.golden.json"), "w"), ensure_ascii=False)

words = collections.Counter(w for line in text for w in re.findall(r"[a-z]+", line.lower()))
vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + sorted({c for line in nasty[:12] for c in line.lower() if not c.isspace()} | set("abcdefghijklmnopqrstuvwxyz0123456789.,:;!?'\"()-/"))
vocab += ["##" + c for c in "abcdefghijklmnopqrstuvwxyz0123456789"] + [w for w, _ in words.most_common(260) if len(w) > 1]
tails = collections.Counter(w[i:] for w, n in words.items() for i in range(1, len(w) - 1) for _ in range(min(n, 5)))
vocab += ["##" + w for w, _ in tails.most_common(120)]
for name, options in {"wordpiece": {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
                      "cased": {"clean_text": True, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}}.items():
    data = {"version": "1.0", "truncation": None, "padding": {"strategy": "BatchLongest"}, "added_tokens": [special(i, c) for i, c in enumerate(vocab[:5])],
            "normalizer": {"type": "BertNormalizer", **options}, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": template(("[CLS]", 2), ("[SEP]", 3), 0, 1), "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": {w: i for i, w in enumerate(dict.fromkeys(vocab))}}}
    json.dump(data, open(os.path.join(here, name + ".json"), "w"), ensure_ascii=False, separators=(",", ":"))
