package vector

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"satchel/agent"
)

// prefixes are prepended to texts, for a model that was trained with them.
type prefixes struct{ query, passage string }

const (
	retrievalPrefix = "Represent this sentence for searching relevant passages: "
	instructPrefix  = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)

// knownPrefixes maps parts of models' names to prefixes, as given by the models'
// authors. The first match applies.
var knownPrefixes = []struct {
	name string
	prefixes
}{
	{"e5-mistral", prefixes{instructPrefix, ""}},
	{"e5-large-instruct", prefixes{instructPrefix, ""}},
	{"e5-", prefixes{"query: ", "passage: "}},
	{"bge-m3", prefixes{}},
	{"bge-multilingual", prefixes{}},
	{"bge-", prefixes{retrievalPrefix, ""}},
	{"arctic-embed-l-v2", prefixes{"query: ", ""}},
	{"arctic-embed-m-v2", prefixes{"query: ", ""}},
	{"arctic-embed2", prefixes{"query: ", ""}},
	{"arctic-embed", prefixes{retrievalPrefix, ""}},
	{"mxbai-embed", prefixes{retrievalPrefix, ""}},
	{"nomic-embed", prefixes{"search_query: ", "search_document: "}},
	{"embeddinggemma", prefixes{"task: search result | query: ", "title: none | text: "}},
	{"qwen3-embedding", prefixes{instructPrefix, ""}},
}

// prefixesOf returns the prefixes of a model: those in the settings, or else those
// known for its name.
func prefixesOf(to agent.Embedding) prefixes {
	return knownPrefixesOf(to.Model).replaced(to)
}

// replaced returns the prefixes; those in the settings take precedence.
func (p prefixes) replaced(to agent.Embedding) prefixes {
	if to.QueryPrefix != nil {
		p.query = *to.QueryPrefix
	}
	if to.PassagePrefix != nil {
		p.passage = *to.PassagePrefix
	}
	return p
}

func knownPrefixesOf(name string) prefixes {
	name = strings.ToLower(name)
	for _, k := range knownPrefixes {
		if strings.Contains(name, k.name) {
			return k.prefixes
		}
	}
	return prefixes{}
}

// prefixMark returns the part of a model's name that identifies the prefix of
// its passages, since vectors of passages with different prefixes cannot be
// compared.
func prefixMark(to agent.Embedding) string {
	return knownPrefixesOf(to.Model).mark(prefixesOf(to).passage)
}

// mark is prefixMark for a model whose own prefixes are p.
func (p prefixes) mark(passage string) string {
	switch passage {
	case "":
		return ""
	case p.passage:
		return "/prefixed"
	default:
		sum := sha256.Sum256([]byte(passage))
		return "/prefixed-" + hex.EncodeToString(sum[:4])
	}
}

// prefix returns the prefix of the model's passages.
func (m model) prefix() string { return m.prefixes.passage }

// query returns a query in the form that the model expects.
func (m model) query(text string) string {
	if m.to.Local() {
		return asQuestion(text)
	}
	return m.prefixes.query + text
}
