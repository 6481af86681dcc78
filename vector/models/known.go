package models

// pinnedModel is a model that can be installed by its name.
type pinnedModel struct {
	repository string            // on huggingface.co
	revision   string            // the commit
	sums       map[string]string // the SHA-256 of files
}

// knownModels are pinned to a commit. The hashes are the publishers' own, as
// several independent projects that pin the same commits have them too; files
// without one are small settings of the same commit.
var knownModels = map[string]pinnedModel{
	"all-MiniLM-L6-v2": {
		repository: "sentence-transformers/all-MiniLM-L6-v2",
		revision:   "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
		sums: map[string]string{
			"model.safetensors":         "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
			"tokenizer.json":            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
			"config.json":               "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
			"modules.json":              "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
			"1_Pooling/config.json":     "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
			"sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
		},
	},
	"arctic-embed-xs": {
		repository: "Snowflake/snowflake-arctic-embed-xs",
		revision:   "d8c86521100d3556476a063fc2342036d45c106f",
		sums: map[string]string{
			"model.safetensors": "ee789e0b1d6ecbbd5ce37b474af556cc1a1319cee4417d9e3b11f82e90300706",
			"tokenizer.json":    "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854",
			"config.json":       "d7d071046ab952af96b7abad788db7ab3fc997b465e1b9914ff39707092254ec",
		},
	},
	"bge-small-en-v1.5": {
		repository: "BAAI/bge-small-en-v1.5",
		revision:   "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a",
		sums: map[string]string{
			"model.safetensors": "3c9f31665447c8911517620762200d2245a2518d6e7208acc78cd9db317e21ad",
			"tokenizer.json":    "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
			"config.json":       "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750",
		},
	},
	"multilingual-e5-small": {
		repository: "intfloat/multilingual-e5-small",
		revision:   "614241f622f53c4eeff9890bdc4f31cfecc418b3",
		sums: map[string]string{
			"model.safetensors":         "1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477",
			"tokenizer.json":            "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
			"config.json":               "69137736cab8b8903a07fe8afaafdda25aac55415a12a55d1bffa9f581abf959",
			"modules.json":              "c6e29747481e8b5dd2b58401966aeac910de39092f90cda9a704b1545f902b04",
			"sentence_bert_config.json": "948201d8329907aae938fa62f9ceeed53f5694dacc2b87b9f3b78b37ee986529",
		},
	},
	"ms-marco-MiniLM-L6": {
		repository: "cross-encoder/ms-marco-MiniLM-L6-v2",
		revision:   "233902d25c440f23af6f7d6e94d2946bac0bee0a",
		sums: map[string]string{
			"model.safetensors": "821d1aa69520101d6e0737f78a042ae25b19e5cb9160701909d10434f4aeb0ae",
			"tokenizer.json":    "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
			"config.json":       "380e02c93f431831be65d99a4e7e5f67c133985bf2e77d9d4eba46847190bacc",
		},
	},
}
