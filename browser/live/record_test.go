package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// recorded is an event of rrweb.
type recorded struct {
	PageID    string `json:"pageId"`
	Type      int    `json:"type"`
	Timestamp int64  `json:"timestamp"`
	Data      struct {
		Source int    `json:"source"`
		Type   int    `json:"type"`
		Href   string `json:"href"`
		Text   string `json:"text"`
	} `json:"data"`
}

func (r *Recording) waitFor(t *testing.T, what string, wanted func(recorded) bool) []recorded {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var all []recorded
	for {
		raw, err := r.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for %s: %v after %d events", what, err, len(all))
		}
		var some []recorded
		if err := json.Unmarshal(raw, &some); err != nil {
			t.Fatal(err)
		}
		for _, e := range some {
			if all = append(all, e); wanted(e) {
				return all
			}
		}
	}
}

func TestRecording(t *testing.T) {
	ts := newTestServer(t, pages)
	s := ts.openSession(t, "/")
	r, err := ts.live.Recording(s, "")
	if err != nil {
		t.Fatal(err)
	}
	first := r.waitFor(t, "a snapshot", func(e recorded) bool { return e.Type == 2 })
	if first[0].PageID != s.ActivePage().ID() || first[0].Timestamp == 0 {
		t.Errorf("got %+v", first[0])
	}
	h := ts.live.Controller(s, "")
	defer h.Close()
	h.send(
		t,
		`{"type":"mouseEvent","event":"mousePressed","x":50,"y":25}`,
		`{"type":"mouseEvent","event":"mouseReleased","x":50,"y":25}`,
		`{"type":"keyEvent","event":"keyDown","key":"a","code":"KeyA"}`,
	)
	r.waitFor(t, "the typed text", func(e recorded) bool {
		return e.Type == 3 && e.Data.Source == 5 && e.Data.Text == "a"
	})
	h.send(t, `{"type":"navigation","url":"`+ts.site.URL+`/two"}`)
	r.waitFor(t, "the next page", func(e recorded) bool {
		return e.Type == metaEvent && strings.HasSuffix(e.Data.Href, "/two")
	})

	// A reader that comes later receives everything.
	late, err := ts.live.Recording(s, "")
	if err != nil {
		t.Fatal(err)
	}
	all := late.waitFor(t, "the replay", func(e recorded) bool {
		return e.Type == metaEvent && strings.HasSuffix(e.Data.Href, "/two")
	})
	if all[0] != first[0] {
		t.Errorf("the replay starts with %+v", all[0])
	}
	none, err := ts.live.Recording(s, "page-of-another-session")
	if err != nil {
		t.Fatal(err)
	}
	if err := ts.browser.Delete(t.Context(), ts.db, s.ID()); err != nil {
		t.Fatal(err)
	}
	for _, reading := range []*Recording{r, late, none} {
		for err = nil; err == nil; {
			_, err = reading.Next(t.Context())
		}
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
}

// The limits hold, and the kept events can be replayed: they start with a snapshot.
func TestRecordingBounds(t *testing.T) {
	r := &recording{added: make(chan struct{})}
	batch := func(kind, n, size int) string {
		one := fmt.Sprintf(`{"type":%d,"timestamp":1,"data":%q}`, kind, strings.Repeat("x", size))
		return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
	}
	for range 6 {
		r.add(payload{"page-1", batch(metaEvent, 1, 1)})
		r.add(payload{"page-1", batch(3, 2999, 1)})
	}
	if len(r.events) > maxEvents || r.events[0].kind != metaEvent || r.first+int64(len(r.events)) != 18_000 {
		t.Errorf("%d events kept, starting at %d, the first of type %d", len(r.events), r.first, r.events[0].kind)
	}
	slow := &Recording{recording: r}
	raw, err := slow.Next(t.Context())
	if err != nil || slow.next < r.first || len(raw) > maxReplayPiece {
		t.Errorf("%d bytes up to %d, %v", len(raw), slow.next, err)
	}
	for range 20 {
		r.add(payload{"page-1", batch(3, 2, 2<<20)})
	}
	if r.bytes > maxEventBytes {
		t.Errorf("%d bytes are kept", r.bytes)
	}
	sum := 0
	for _, e := range r.events {
		sum += len(e.raw)
	}
	if sum != r.bytes {
		t.Errorf("%d bytes counted, %d kept", r.bytes, sum)
	}
}

// rrweb/README.md names the file that is embedded.
func TestRRWeb(t *testing.T) {
	sum := sha256.Sum256([]byte(rrweb))
	readme, err := os.ReadFile("rrweb/README.md")
	if err != nil || !strings.Contains(string(readme), hex.EncodeToString(sum[:])) {
		t.Errorf("rrweb/README.md does not have the SHA-256 %x (%v)", sum, err)
	}
}

func FuzzParseEvents(f *testing.F) {
	f.Add(`[{"type":4,"timestamp":1.5,"data":{}},{"type":2}]`)
	f.Add(`[1,null,[],{"type":null,"timestamp":null}, {"type":1,"timestamp":2}]`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range parseEvents(payload{"page-1", text}) {
			if !json.Valid(e.raw) {
				t.Fatalf("%s parsed from %q", e.raw, text)
			}
		}
	})
}

// rrweb's own player shows what was recorded.
func TestReplay(t *testing.T) {
	ts := newTestServer(t, pages)
	s := ts.openSession(t, "/")
	r, err := ts.live.Recording(s, s.ActivePage().ID())
	if err != nil {
		t.Fatal(err)
	}
	r.waitFor(t, "a snapshot", func(e recorded) bool { return e.Type == 2 })
	h := ts.live.Controller(s, "")
	defer h.Close()
	h.send(
		t,
		`{"type":"mouseEvent","event":"mousePressed","x":50,"y":25}`,
		`{"type":"mouseEvent","event":"mouseReleased","x":50,"y":25}`,
		`{"type":"insertText","text":"replayed text"}`,
	)
	r.waitFor(t, "the typed text", func(e recorded) bool {
		return e.Type == 3 && e.Data.Source == 5 && e.Data.Text == "replayed text"
	})
	again, err := ts.live.Recording(s, s.ActivePage().ID())
	if err != nil {
		t.Fatal(err)
	}
	events, err := again.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	player, err := os.ReadFile("testdata/replay.min.js")
	if err != nil {
		t.Fatal(err)
	}
	cdp, err := ts.openSession(t, "/two").ActivePage().CDP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := call(t.Context(), cdp, "Runtime.evaluate", map[string]any{"returnByValue": true, "awaitPromise": true, "expression": string(player) + `;
		(async () => {
			const events = ` + string(events) + `;
			const replayer = new rrwebReplay.Replayer(events, { root: document.body });
			replayer.pause(events[events.length - 1].timestamp - events[0].timestamp);
			for (let tries = 0; tries < 300; tries++) {
				const field = replayer.iframe.contentDocument.querySelector("#a");
				if (field && field.value) return field.value;
				await new Promise(requestAnimationFrame);
			}
			return replayer.iframe.contentDocument.documentElement.outerHTML;
		})()`})
	if err != nil {
		t.Fatal(err)
	}
	if result, _ := answer["result"].(map[string]any); result["value"] != "replayed text" {
		t.Errorf("the player shows %v %v", result["value"], answer["exceptionDetails"])
	}
}
