package llm

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/agent/egress"
)

// Limits of one embeddings request.
const (
	embedTexts  = 64               // texts
	embedBytes  = 200 << 10        // of its texts together, unless one alone is longer
	embedTime   = 60 * time.Second // for one attempt
	embedAnswer = 32 << 20         // bytes
	embedTries  = 3
	embedWait   = time.Second

	// maxVector is the largest accepted number of dimensions.
	maxVector = 8192
)

// Embeddings requests embeddings of texts, with OpenAI's embeddings API:
// https://platform.openai.com/docs/api-reference/embeddings. It is safe for
// concurrent use.
type Embeddings struct {
	api   api
	check func(string) (*url.URL, error)
}

// NewEmbeddings returns Embeddings that may also reach the private ranges allow.
func NewEmbeddings(allow []agent.AddressRange) *Embeddings {
	out := egress.New(egress.Policy{Allow: allow})
	timed := *out.HTTP()
	timed.Timeout = embedTime
	return &Embeddings{
		api: api{
			http:     &timed,
			attempts: embedTries,
			backoff:  embedWait,
			sleep:    clock.Sleep,
		},
		check: out.CheckURL,
	}
}

// Check validates a provider's URL without network access. The error names the
// setting.
func (e *Embeddings) Check(to agent.Embedding) error {
	if _, err := e.check(to.BaseURL); err != nil {
		if egress.IsRefused(err) {
			return egress.Refusal("embedding_base_url", err)
		}
		return agent.Invalid("embedding_base_url", "must be a valid URL").Because(err)
	}
	return nil
}

// Embed returns a vector for each text, all with the same number of dimensions.
// Requests that fail temporarily are retried, as long as ctx allows. Errors are
// UPSTREAM_ERROR with the provider's status in details, or ctx's; they contain
// no text from the provider.
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
			return nil, agent.Errorf(agent.CodeUpstream, "the embedding provider returned vectors of different lengths")
		}
	}
	return vectors, nil
}

// batch makes one request and returns its vectors.
func (e *Embeddings) batch(ctx context.Context, to agent.Embedding, key string, texts []string) ([][]float32, error) {
	call, err := openAICallOf(Model{BaseURL: to.BaseURL, Key: key}, "/embeddings")
	if err != nil {
		return nil, agent.Invalid("embedding_base_url", "is not a URL that can be requested")
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

// readVectors decodes a response with count vectors, in any order.
func readVectors(raw []byte, count int) ([][]float32, error) {
	odd := func(why string) error {
		return agent.Errorf(agent.CodeUpstream, "the embedding provider's response cannot be used: %s", why)
	}
	if len(raw) > embedAnswer {
		return nil, odd(fmt.Sprintf("it is larger than %d MB", embedAnswer>>20))
	}
	var answer struct {
		Data []struct {
			Index     *float64 `json:"index"`
			Embedding vector   `json:"embedding"`
		} `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	switch err := json.Unmarshal(raw, &answer); {
	case err != nil:
		return nil, odd("it does not have the form of OpenAI's API")
	case isSet(answer.Error):
		return nil, embeddingStatusError(statusOf(errorInAnswer(raw)))
	}
	if len(answer.Data) != count {
		return nil, odd(fmt.Sprintf("it holds %d vectors for %d texts", len(answer.Data), count))
	}
	vectors := make([][]float32, count)
	for position, d := range answer.Data {
		index := float64(position) // some servers give none
		if d.Index != nil {
			index = *d.Index
		}
		if position = int(index); index < 0 || index >= float64(count) || vectors[position] != nil {
			return nil, odd("the indexes of its vectors do not match the texts")
		}
		if len(d.Embedding) == 0 ||
			len(d.Embedding) > maxVector ||
			len(d.Embedding) != len(answer.Data[0].Embedding) {
			return nil, odd(fmt.Sprintf("a vector has %d numbers", len(d.Embedding)))
		}
		for _, x := range d.Embedding {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return nil, odd("a vector contains an invalid number")
			}
		}
		vectors[position] = d.Embedding
	}
	return vectors, nil
}

// vector is a list of numbers, also as the only one of a list, or the bytes of its numbers
// in base64, as some servers send it whatever was asked for.
type vector []float32

// UnmarshalJSON decodes each of the forms.
func (v *vector) UnmarshalJSON(data []byte) error {
	var bytes []byte
	var list []json.RawMessage
	if data[0] == '"' {
		if err := json.Unmarshal(data, &bytes); err != nil || len(bytes)%4 != 0 {
			return errors.Join(err, errors.New("not a list of numbers"))
		}
		for ; len(bytes) > 0; bytes = bytes[4:] {
			*v = append(*v, math.Float32frombits(binary.LittleEndian.Uint32(bytes)))
		}
		return nil
	}
	if json.Unmarshal(data, &list) == nil && len(list) == 1 && list[0][0] == '[' {
		data = list[0]
	}
	return json.Unmarshal(data, (*[]float32)(v))
}

// embeddingStatusError returns the error for a status of the provider, in terms of the
// agent's settings.
func embeddingStatusError(status int) error {
	text := "the embedding provider rejected the request"
	switch {
	case status == 401 || status == 403:
		text = "the embedding provider rejected the credential; check embedding_api_key"
	case status == 404:
		text = "the embedding provider does not know the model or the address; " +
			"check embedding_model and embedding_base_url"
	case status == 429:
		text = "the embedding provider is overloaded, or the account's limit is reached"
	case status >= 500:
		text = "the embedding provider failed"
	}
	return agent.Errorf(agent.CodeUpstream, "%s (status %d)", text, status).With("status", status)
}

// explainEmbedding converts a provider's failure to an error that says what the
// agent's owner can do.
func explainEmbedding(ctx context.Context, err error) error {
	switch status := statusOf(err); {
	case status != 0:
		return embeddingStatusError(status)
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case egress.IsRefused(err):
		refused := egress.Refusal("embedding_base_url", err)
		refused.Code = agent.CodeUpstream
		return refused
	}
	return agent.Errorf(
		agent.CodeUpstream,
		"the embedding provider did not respond: %s",
		egress.Explain(err).Message,
	).Because(err)
}
