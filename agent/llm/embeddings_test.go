package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// vectorsOf returns a vector of three numbers for each text, starting with its
// length.
func vectorsOf(w http.ResponseWriter, texts []string) {
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []item
	for i := range slices.Backward(texts) { // any order is allowed
		data = append(data, item{i, []float32{float32(len(texts[i])), 0, 1}})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

// embedServer is a fake provider. answer receives the texts and the number of
// the request, from 1.
func embedServer(
	t *testing.T,
	answer func(w http.ResponseWriter, texts []string, n int),
) (*Embeddings, agent.Embedding, *[]*http.Request, *[]time.Duration) {
	t.Helper()
	var requests []*http.Request
	var waits []time.Duration
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model != "m" {
			t.Errorf("requested %+v, %v", body, err)
		}
		requests = append(requests, r)
		answer(w, body.Input, len(requests))
	}))
	t.Cleanup(s.Close)
	e := NewEmbeddings(agent.MustAddressRanges("127.0.0.0/8"))
	e.api.sleep = func(ctx context.Context, d time.Duration) error {
		waits = append(waits, d)
		return ctx.Err()
	}
	return e, agent.Embedding{Provider: "openai-compatible", Model: "m", BaseURL: s.URL + "/v1/"}, &requests, &waits
}

func TestEmbedBatches(t *testing.T) {
	e, to, requests, _ := embedServer(t, func(w http.ResponseWriter, texts []string, _ int) { vectorsOf(w, texts) })
	texts := make([]string, 2*embedTexts+1)
	for i := range texts {
		texts[i] = strings.Repeat("x", i)
	}
	texts[5] = strings.Repeat("y", embedBytes+1) // needs its own request
	vectors, err := e.Embed(t.Context(), to, "s3cret", texts)
	if err != nil || len(vectors) != len(texts) {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for i, v := range vectors {
		if len(v) != 3 || v[0] != float32(len(texts[i])) {
			t.Fatalf("text %d has the vector %v", i, v)
		}
	}
	if len(*requests) != 4 {
		t.Errorf("%d requests", len(*requests))
	}
	if r := (*requests)[0]; r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer s3cret" {
		t.Errorf("requested %s with %v", r.URL, r.Header)
	}
}

func TestEmbedErrors(t *testing.T) {
	reply := func(status int, body string) func(http.ResponseWriter, []string, int) {
		return func(w http.ResponseWriter, _ []string, _ int) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for _, tc := range []struct {
		name     string
		answer   func(w http.ResponseWriter, texts []string, n int)
		requests int
		status   any
		says     string
	}{
		{"key", reply(401, `{"error":"s3cret is wrong"}`), 1, 401, "embedding_api_key"},
		{"model", reply(404, ""), 1, 404, "embedding_model"},
		{"text", reply(400, ""), 1, 400, "rejected the request"},
		{"busy", reply(429, ""), embedTries, 429, "overloaded"},
		{"down", reply(502, ""), embedTries, 502, "provider failed"},
		{"not JSON", reply(200, "hello"), 1, nil, "form of OpenAI's API"},
		{"too few", reply(200, `{"data":[]}`), 1, nil, "0 vectors for 2 texts"},
		{
			"a duplicate index",
			reply(200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`),
			1,
			nil,
			"do not match the texts",
		},
		{
			"an unknown index",
			reply(200, `{"data":[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]}`),
			1,
			nil,
			"do not match the texts",
		},
		{"empty", reply(200, `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`), 1, nil, "0 numbers"},
		{
			"uneven",
			reply(200, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`),
			1,
			nil,
			"2 numbers",
		},
		{
			"too long",
			reply(
				200,
				`{"data":[{"index":0,"embedding":[0`+strings.Repeat(",0", maxVector)+`]},{"index":1,"embedding":[0]}]}`,
			),
			1,
			nil,
			"8193 numbers",
		},
		{
			"an error with 200",
			reply(200, `{"error":{"message":"no","code":"model_not_found"}}`),
			1,
			404,
			"check embedding_model",
		},
		{
			"bytes that are no numbers",
			reply(200, `{"data":[{"embedding":"AAA="},{"embedding":"AAA="}]}`),
			1,
			nil,
			"form of OpenAI's API",
		},
		{
			"a list of several",
			reply(200, `{"data":[{"embedding":[[1],[2]]},{"embedding":[[1],[2]]}]}`),
			1,
			nil,
			"form of OpenAI's API",
		},
		{
			"huge number",
			reply(200, `{"data":[{"index":0,"embedding":[1e99]},{"index":1,"embedding":[1]}]}`),
			1,
			nil,
			"form of OpenAI's API",
		},
	} {
		e, to, requests, _ := embedServer(t, tc.answer)
		_, err := e.Embed(t.Context(), to, "s3cret", []string{"a", "b"})
		var known *agent.Error
		if !errors.As(err, &known) ||
			known.Code != agent.CodeUpstream ||
			known.Details["status"] != tc.status ||
			!strings.Contains(known.Message, tc.says) ||
			len(*requests) != tc.requests {
			t.Errorf("%s: %v after %d requests", tc.name, err, len(*requests))
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error contains the key: %v", tc.name, err)
		}
	}
}

func TestEmbedRetries(t *testing.T) {
	e, to, requests, waits := embedServer(t, func(w http.ResponseWriter, texts []string, n int) {
		switch n {
		case 1:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		case 2:
			w.WriteHeader(500)
		default:
			vectorsOf(w, texts)
		}
	})
	if v, err := e.Embed(t.Context(), to, "", []string{"abc"}); err != nil || v[0][0] != 3 {
		t.Errorf("got %v, %v", v, err)
	}
	if want := []time.Duration{7 * time.Second, 2 * time.Second}; !slices.Equal(*waits, want) {
		t.Errorf("waited %v, want %v", *waits, want)
	}
	if (*requests)[0].Header.Get("Authorization") != "" {
		t.Error("an empty key is sent")
	}
	// The retries do not wait beyond the caller's deadline.
	impatient, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	e, to, requests, waits = embedServer(t, func(w http.ResponseWriter, _ []string, _ int) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(503)
	})
	if _, err := e.Embed(impatient, to, "", []string{"abc"}); agent.ErrorCode(err) != agent.CodeUpstream ||
		len(*requests) != 1 ||
		len(*waits) != 0 {
		t.Errorf("%v after %d requests and %v", err, len(*requests), *waits)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := e.Embed(ended, to, "", []string{"abc"}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
	to.BaseURL = "http://127.0.0.1:1"
	if _, err := e.Embed(t.Context(), to, "", []string{"abc"}); agent.ErrorCode(err) != agent.CodeUpstream ||
		len(*waits) != embedTries-1 {
		t.Errorf("connection refused: %v", err)
	}
}

// TestVectors: the forms in which servers send vectors.
func TestVectors(t *testing.T) {
	for name, body := range map[string]string{
		"another order": `{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}`,
		"floats as indexes": `{"data":[{"index":1.0,"embedding":[3.0,4e0]},{"index":0.0,` +
			`"embedding":[1,2]}],"usage":null}`,
		"no index":    `{"data":[{"embedding":[1,2]},{"embedding":[3,4]}]}`,
		"base64":      `{"data":[{"index":0,"embedding":"AACAPwAAAEA="},{"index":1,"embedding":"AABAQAAAgEA="}]}`,
		"a list each": `{"data":[{"index":0,"embedding":[[1,2]]},{"index":1,"embedding":[[3,4]]}]}`,
	} {
		got, err := readVectors([]byte(body), 2)
		if err != nil ||
			len(got) != 2 ||
			!slices.Equal(got[0], []float32{1, 2}) ||
			!slices.Equal(got[1], []float32{3, 4}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzReadVectors(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[3,4]}]}`))
	f.Add([]byte(`{"data":[{"index":-1,"embedding":null},{}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		vectors, err := readVectors(raw, 2)
		if err == nil && (len(vectors) != 2 || len(vectors[0]) != len(vectors[1]) || len(vectors[0]) == 0) {
			t.Errorf("got %v", vectors)
		}
	})
}
