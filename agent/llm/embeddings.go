package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/agent/egress"
)

// The bounds of one request for embeddings.
const (
	embedTexts  = 64               // texts
	embedBytes  = 200 << 10        // of its texts together, unless one alone is longer
	embedTime   = 60 * time.Second // for one attempt
	embedAnswer = 32 << 20         // bytes
	embedTries  = 3
	embedWait   = time.Second

	// maxVector is the longest vector that is taken, in numbers.
	maxVector = 8192
)

// Embeddings asks providers for the vectors of texts, over the protocol that
// OpenAI's embeddings have: https://platform.openai.com/docs/api-reference/embeddings.
// It may be used by many goroutines.
type Embeddings struct {
	api   api
	check func(string) (*url.URL, error)
}

// NewEmbeddings makes Embeddings over a guarded client. check reports an
// address what that client would say of it without the network.
func NewEmbeddings(client *http.Client, check func(string) (*url.URL, error)) *Embeddings {
	timed := *client
	timed.Timeout = embedTime
	return &Embeddings{api: api{http: &timed, attempts: embedTries, backoff: embedWait, sleep: clock.Sleep}, check: check}
}

// Check says whether a provider's address may be called, as far as that shows
// without the network. The error names the setting.
func (e *Embeddings) Check(to agent.Embedding) error {
	if _, err := e.check(to.BaseURL); err != nil {
		var refused interface {
			error
			Refused() bool
		}
		if errors.As(err, &refused) && refused.Refused() {
			return agent.Invalid("embedding_base_url", "names an address that this server does not call; the operator opens private ones with SATCHEL_OUTBOUND_ALLOW").Because(err)
		}
		return agent.Invalid("embedding_base_url", "is no address that can be called").Because(err)
	}
	return nil
}

// Embed returns a vector for each text, all of one length. Requests that fail
// for a reason that may pass are tried again, as long as ctx allows. Errors are
// UPSTREAM_ERROR with the provider's status in details, or ctx's; no text of
// the provider is in them.
func (e *Embeddings) Embed(ctx context.Context, to agent.Embedding, key string, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n, size := 0, 0
		for n < len(texts) && n < embedTexts && (n == 0 || size+len(texts[n]) <= embedBytes) {
			size += len(texts[n])
			n++
		}
		batch, err := e.batch(ctx, to, key, texts[:n])
		if err != nil {
			return nil, err
		}
		vectors, texts = append(vectors, batch...), texts[n:]
		if len(vectors[0]) != len(batch[0]) {
			return nil, agent.Errorf(agent.CodeUpstream, "the embedding provider answers vectors of different lengths")
		}
	}
	return vectors, nil
}

// batch has one request answered.
func (e *Embeddings) batch(ctx context.Context, to agent.Embedding, key string, texts []string) ([][]float32, error) {
	call, err := openAICallOf(Model{BaseURL: to.BaseURL, Key: key}, "/embeddings")
	if err != nil {
		return nil, agent.Invalid("embedding_base_url", "is no address that can be called")
	}
	resp, err := e.api.do(ctx, call, map[string]any{"model": to.Model, "input": texts})
	if err != nil {
		return nil, explainEmbedding(ctx, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, embedAnswer+1))
	if err != nil {
		return nil, explainEmbedding(ctx, err)
	}
	return readVectors(raw, len(texts))
}

// readVectors reads an answer with n vectors, in whatever order it has them.
func readVectors(raw []byte, n int) ([][]float32, error) {
	odd := func(why string) error {
		return agent.Errorf(agent.CodeUpstream, "the embedding provider's answer cannot be used: %s", why)
	}
	if len(raw) > embedAnswer {
		return nil, odd(fmt.Sprintf("it is larger than %d MB", embedAnswer>>20))
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, odd("it is not of OpenAI's form")
	}
	if len(answer.Data) != n {
		return nil, odd(fmt.Sprintf("it holds %d vectors for %d texts", len(answer.Data), n))
	}
	vectors := make([][]float32, n)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= n || vectors[d.Index] != nil {
			return nil, odd("its vectors are not numbered as the texts")
		}
		if len(d.Embedding) == 0 || len(d.Embedding) > maxVector || len(d.Embedding) != len(answer.Data[0].Embedding) {
			return nil, odd(fmt.Sprintf("a vector has %d numbers", len(d.Embedding)))
		}
		for _, x := range d.Embedding {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return nil, odd("a vector holds what is no number")
			}
		}
		vectors[d.Index] = d.Embedding
	}
	return vectors, nil
}

// refusedBy says what a status of the provider means for the agent's owner.
func refusedBy(status int) error {
	text := "the embedding provider refuses the request"
	switch {
	case status == 401 || status == 403:
		text = "the embedding provider refuses the credential; check embedding_api_key"
	case status == 404:
		text = "the embedding provider does not know the model or the address; check embedding_model and embedding_base_url"
	case status == 429:
		text = "the embedding provider is too busy, or the account's limit is reached"
	case status >= 500:
		text = "the embedding provider has failed"
	}
	return agent.Errorf(agent.CodeUpstream, "%s (status %d)", text, status).With("status", status)
}

// explainEmbedding turns what went wrong with a provider into an error that
// says what the agent's owner can do.
func explainEmbedding(ctx context.Context, err error) error {
	switch status := statusOf(err); {
	case status != 0:
		return refusedBy(status)
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case egress.IsRefused(err):
		return agent.Errorf(agent.CodeUpstream, "embedding_base_url leads to an address that this server does not call").Because(err)
	}
	return agent.Errorf(agent.CodeUpstream, "the embedding provider gave no answer: %s", egress.Explain(err).Message).Because(err)
}
