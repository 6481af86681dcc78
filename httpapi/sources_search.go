package httpapi

import (
	"encoding/json"
	"errors"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/httpapi/rest"
	"satchel/vector"
)

// searchIn is the parameters of a search, in the query or in the body.
type searchIn struct {
	Query    string    `query:"query" json:"query" required:"true" doc:"Search query." example:"how do I get my money back"`
	Limit    *int      `query:"limit" json:"limit,omitempty" doc:"Maximum number of results, 1 to 50. Default: 10." example:"10"`
	SourceID string    `query:"source_id" json:"source_id,omitempty" doc:"Only in this source."`
	MinScore float64   `query:"min_score" json:"min_score,omitempty" doc:"Minimum score, 0 to 1." example:"0"`
	Mode     string    `query:"mode" json:"mode,omitempty" enum:"hybrid,vector,keyword" doc:"Default: hybrid." example:"hybrid"`
	Expand   bool      `query:"expand" json:"expand,omitempty" doc:"Also search for rephrasings of the query by the agent's language model. Requires the role admin."`
	Rerank   reranking `query:"rerank" json:"rerank,omitempty" enum:"true,llm,false" types:"boolean,string" doc:"true: an installed reranker reads the first 20 results, for up to 3 seconds. llm: the agent's language model rates them, which requires the role admin. The ratings are the scores." example:"true"`
}

// reranking is how results are reranked: rerankByModel, rerankByLLM, or not at all.
type reranking string

const (
	rerankByModel reranking = "true"
	rerankByLLM   reranking = "llm"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *reranking) UnmarshalText(text []byte) error {
	switch given := reranking(text); given {
	case rerankByModel, rerankByLLM:
		*r = given
	case "", "false":
		*r = ""
	default:
		return errors.New("must be true, false or llm")
	}
	return nil
}

// UnmarshalJSON also accepts the booleans true and false.
func (r *reranking) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil { // not a string
		text = string(data)
	}
	return r.UnmarshalText([]byte(text))
}

type searchByBodyIn struct{ Body searchIn }

// searchHit is a result with the parts of its text that match the query.
type searchHit struct {
	vector.Result
	Highlights [][]int `json:"highlights" doc:"The same as matches." example:"[[11,17]]"`
}

type searchOut struct {
	Results []searchHit `json:"results"`
	Mode    vector.Mode `json:"mode" doc:"The mode used: the requested one, or keyword if the query could not be embedded." enum:"hybrid,vector,keyword" example:"hybrid"`
	Notice  string      `json:"notice,omitempty" doc:"A problem with the results, such as an embedding provider that does not respond."`

	Queries  []string  `json:"queries,omitempty" doc:"With expand: all queries, beginning with the original one."`
	Reranked bool      `json:"reranked,omitempty" doc:"With rerank: the scores are those of the reranker or the language model."`
	Meta     rest.Meta `json:"meta"`
}

// Limits of the number of results.
const (
	defaultResults = 10
	maxResults     = 50
)

func (s *Server) searchSources(call *rest.Call, in *searchIn) (searchOut, error) {
	limit, err := rest.CheckLimit(in.Limit, defaultResults, maxResults)
	if err != nil {
		return searchOut{}, err
	}
	how := chat.Assist{Expand: in.Expand, Rerank: in.Rerank == rerankByLLM}
	if how != (chat.Assist{}) && !call.Role.Covers(agent.RoleAdmin) {
		return searchOut{}, agent.Errorf(
			agent.CodeForbidden,
			"expand and rerank=llm use the agent's language model, which requires the role admin",
		)
	}
	answer, err := s.chat.Search(
		call,
		call.DB,
		vector.Query{
			Text:     in.Query,
			Limit:    limit,
			SourceID: in.SourceID,
			MinScore: in.MinScore,
			Mode:     vector.Mode(in.Mode),
			Rerank:   in.Rerank == rerankByModel,
		},
		how,
	)
	hits := make([]searchHit, len(answer.Results))
	for i, r := range answer.Results {
		hits[i] = searchHit{r, r.Matches}
	}
	return searchOut{
		Results:  hits,
		Mode:     answer.Mode,
		Notice:   answer.Notice,
		Queries:  answer.Queries,
		Reranked: answer.Reranked,
		Meta:     rest.Meta{Total: len(hits), Limit: limit},
	}, err
}

func (s *Server) searchSourcesByBody(c *rest.Call, in *searchByBodyIn) (searchOut, error) {
	return s.searchSources(c, &in.Body)
}
