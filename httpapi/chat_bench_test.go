package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/cputime"
	"satchel/store"
	"satchel/vector/encoder"
)

// fastProvider is a provider that streams two words, the first at once and the second
// once it is released, and reports when it has sent the first.
type fastProvider struct {
	*httptest.Server
	sent atomic.Int64  // when, in nanoseconds
	hold chan struct{} // nil: the second word is sent at once
	held sync.WaitGroup
}

func newFastProvider(b *testing.B) *fastProvider {
	b.Helper()
	p := &fastProvider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		p.sent.Store(time.Now().UnixNano())
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"On \"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		if p.hold != nil {
			p.held.Done()
			<-p.hold
		}
		_, _ = io.WriteString(
			w,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"time.\"},"+
				"\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		)
	}))
	b.Cleanup(p.Close)
	return p
}

// addChunks gives an agent n generated chunks with vectors. The frequencies of words
// follow Zipf's law; each of the shop's own words is in 3 of 100 chunks.
func addChunks(b *testing.B, db *store.DB, model string, n int) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.07, 2.7, 400_000)
	words := strings.Fields("order parcel refund bread harbour invoice late courier address weekend shop cake " +
		"window ticket answer price door number letter name")
	ctx := b.Context()
	for range n / 1000 {
		file, err := db.ReceiveFile(ctx, "notes.txt", "", strings.NewReader("x"), 1<<20)
		must(err)
		source, err := db.CreateFileSource(ctx, "Notes", agent.DefaultChunking, file)
		must(err)
		chunks := make([]store.NewChunk, 1000)
		for i := range chunks {
			text := make([]string, 100)
			for j := range text {
				if text[j] = fmt.Sprintf("w%d", zipf.Uint64()); random.IntN(150) == 0 {
					text[j] = words[random.IntN(len(words))]
				}
			}
			chunks[i] = store.NewChunk{Content: strings.Join(text, " ")}
		}
		must(db.AppendChunks(ctx, source.ID, 0, chunks))
		must(db.EndChunks(ctx, source.ID, model))
		empty, err := db.Unembedded(ctx, source.ID, len(chunks))
		must(err)
		vectors := map[int64][]float32{}
		for _, u := range empty {
			v := make([]float32, encoder.Dims)
			for j := range v {
				v[j] = float32(random.NormFloat64()) + 1
			}
			vectors[u.Seq] = v
		}
		must(db.PutVectors(ctx, vectors))
		must(db.FinishSource(ctx, source.ID, nil))
	}
}

// BenchmarkChatTurn measures a streamed turn over HTTP, in a conversation of 1,000
// messages of an agent with 10,000 chunks of knowledge, with a provider that responds at
// once: "p50-ms" and "p99-ms" are the whole turn, "cpu-ms" its CPU time, including the
// client's and the provider's, and "token-ms" the time from the provider's first word to
// the client's.
func BenchmarkChatTurn(b *testing.B) {
	for _, size := range []struct{ messages, chunks int }{{0, 0}, {1000, 0}, {1000, 10_000}} {
		b.Run(fmt.Sprintf("messages=%d/chunks=%d", size.messages, size.chunks), func(b *testing.B) {
			p := newFastProvider(b)
			c := newOwnClient(b)
			db := c.folder.Default()
			c.must(
				b,
				200,
				"PUT",
				"/api/agents/default/settings",
				`{"llm_provider":"openai-compatible","llm_model":"m","llm_base_url":"`+p.URL+`/v1"}`,
			)
			embedded := c.must(b, 200, "POST", "/api/agents/default/v1/embeddings", `{"input":"x"}`)
			addChunks(b, db, fmt.Sprint(embedded["model"]), size.chunks)
			conversation := fmt.Sprint(c.must(b, 201, "POST", "/api/agents/default/conversations", `{}`)["id"])
			for n := range size.messages {
				m := agent.Message{
					ConversationID: conversation,
					Role:           agent.MessageUser,
					Content:        fmt.Sprintf("This is message %d of a long talk about many things.", n),
					Metadata:       json.RawMessage("{}"),
				}
				if _, err := db.AppendReply(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
			turn := func() (whole, token time.Duration) {
				began := time.Now()
				resp, err := http.Post(
					c.url+"/api/agents/default/chat",
					"application/json",
					strings.NewReader(`{"message":"Where is the parcel that I ordered last weekend?",`+
						`"stream":true,"conversation_id":"`+conversation+`"}`),
				)
				if err != nil {
					b.Fatal(err)
				}
				defer resp.Body.Close()
				for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
					if line := lines.Text(); token == 0 && line == "event: delta" {
						token = time.Duration(time.Now().UnixNano() - p.sent.Load())
					} else if line == "event: error" {
						b.Fatal("the turn fails")
					}
				}
				return time.Since(began), token
			}
			for range 5 {
				turn()
			}
			var wholes, tokens []time.Duration
			spent := cpuTime(b)
			for b.Loop() {
				whole, token := turn()
				wholes, tokens = append(wholes, whole), append(tokens, token)
			}
			b.ReportMetric((cpuTime(b)-spent).Seconds()*1000/float64(b.N), "cpu-ms")
			slices.Sort(wholes)
			slices.Sort(tokens)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(ms(wholes[len(wholes)/2]), "p50-ms")
			b.ReportMetric(ms(wholes[len(wholes)*99/100]), "p99-ms")
			b.ReportMetric(ms(tokens[len(tokens)/2]), "token-ms")
		})
	}
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	used, err := cputime.Used()
	if err != nil {
		b.Fatal(err)
	}
	return used
}

// BenchmarkStreams reports the memory of the process while 200 conversations stream at
// once, each after its first word and before its second.
func BenchmarkStreams(b *testing.B) {
	if b.N > 1 {
		return // one round is enough
	}
	const streams = 200
	provider := newFastProvider(b)
	provider.hold = make(chan struct{})
	provider.held.Add(streams)
	p := spawn(b, build(b), filepath.Join(b.TempDir(), "data"), "--outbound-allow", "127.0.0.0/8")
	defer p.stop(b)
	req, err := http.NewRequestWithContext(
		b.Context(),
		http.MethodPut,
		p.url+"/api/agents/default/settings",
		strings.NewReader(`{"llm_provider":"openai-compatible","llm_model":"m","llm_base_url":"`+provider.URL+`/v1"}`),
	)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	p.post(b, "/api/agents/default/contacts", `{"name":"Ada"}`)
	before := p.resident(b)
	var running sync.WaitGroup
	var done atomic.Int64
	for range streams {
		running.Go(func() {
			resp, err := http.Post(
				p.url+"/api/agents/default/chat",
				"application/json",
				strings.NewReader(`{"message":"Where is my parcel?","stream":true}`),
			)
			if err != nil {
				b.Error(err)
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(text), "event: done") {
				b.Errorf("%v %s", err, text)
			}
			done.Add(1)
		})
	}
	all := make(chan struct{})
	go func() {
		provider.held.Wait()
		close(all)
	}()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	select {
	case <-all:
	case <-ctx.Done():
		b.Fatal("not all streams began")
	}
	at := p.resident(b)
	close(provider.hold)
	running.Wait()
	b.ReportMetric(before, "MB-before")
	b.ReportMetric(at, "MB-streaming")
	b.ReportMetric(float64(done.Load()), "streams")
}
