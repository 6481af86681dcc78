package vector

import "strings"

// prefixes are put before texts for a model that was trained with them.
type prefixes struct{ query, passage string }

const (
	retrieval = "Represent this sentence for searching relevant passages: "
	instruct  = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)

// knownPrefixes are those of models by a part of their names, from their authors'
// descriptions. The first that fits counts.
var knownPrefixes = []struct {
	name string
	prefixes
}{
	{"e5-mistral", prefixes{instruct, ""}},
	{"e5-large-instruct", prefixes{instruct, ""}},
	{"e5-", prefixes{"query: ", "passage: "}},
	{"bge-m3", prefixes{}},
	{"bge-multilingual", prefixes{}},
	{"bge-", prefixes{retrieval, ""}},
	{"arctic-embed-l-v2", prefixes{"query: ", ""}},
	{"arctic-embed-m-v2", prefixes{"query: ", ""}},
	{"arctic-embed2", prefixes{"query: ", ""}},
	{"arctic-embed", prefixes{retrieval, ""}},
	{"mxbai-embed", prefixes{retrieval, ""}},
	{"nomic-embed", prefixes{"search_query: ", "search_document: "}},
	{"embeddinggemma", prefixes{"task: search result | query: ", "title: none | text: "}},
	{"qwen3-embedding", prefixes{instruct, ""}},
}

// prefixesOf returns the prefixes of a model, by its name at a provider.
func prefixesOf(name string) prefixes {
	name = strings.ToLower(name)
	for _, k := range knownPrefixes {
		if strings.Contains(name, k.name) {
			return k.prefixes
		}
	}
	return prefixes{}
}

// mark is the part of a model's name that says that passages have a prefix, since
// their vectors cannot be compared with those of passages without one.
func (p prefixes) mark() string {
	if p.passage == "" {
		return ""
	}
	return "/prefixed"
}

// prefix is put before the passages of a model.
func (m model) prefix() string {
	if m.to.Local() {
		return ""
	}
	return prefixesOf(m.to.Model).passage
}
