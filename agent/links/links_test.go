package links

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

const takeoverID = "takeover-06f1q2s3t4v5a6b7c8d9"

func newSigner(key string) *Signer {
	s := New([]byte(key))
	s.Serve("https://satchel.example:8443/base")
	return s
}

func takeover() *agent.Takeover {
	return &agent.Takeover{
		ID:        takeoverID,
		SessionID: "session-06f1q2s3t4v5a6b7c8d9",
		ExpiresAt: agent.At(time.Now().Add(time.Minute)),
	}
}

func TestTakeoverLink(t *testing.T) {
	s, other, of := newSigner("key"), newSigner("another key"), takeover()
	link := s.Takeover(of)
	if again := newSigner("key").Takeover(of); again != link {
		t.Errorf("another link: %s, %s", link, again)
	}
	later := *of
	later.ExpiresAt = agent.At(of.ExpiresAt.Add(time.Second))
	if s.Takeover(&later) == link || other.Takeover(of) == link {
		t.Error("the link does not depend on the expiry and the key")
	}
	_, token, _ := strings.Cut(link, "token=")
	g, err := s.Grant(token)
	if err != nil || g.Takeover != of.ID || g.SessionID != of.SessionID || !g.Control || len(g.Nonce) < 22 {
		t.Errorf("%+v, %v", g, err)
	}
	if _, err := other.Grant(token); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("another server's: %v", err)
	}
	later.ExpiresAt = agent.At(time.Now().Add(-2 * takeoverGrace))
	_, expired, _ := strings.Cut(s.Takeover(&later), "token=")
	if _, err := s.Grant(expired); agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Errorf("expired: %v", err)
	}
	if hidden := s.Hide(expired); hidden != agent.Mask {
		t.Errorf("an expired token is not hidden: %s", hidden)
	}
}

// TestHide hides links in the forms in which hosts repeat them.
func TestHide(t *testing.T) {
	s := newSigner("key")
	link, view := s.Takeover(takeover()), s.Link(Grant{SessionID: "session-1", Control: true, Expires: 1})
	_, token, _ := strings.Cut(link, "token=")
	reference := Reference(takeoverID)
	inJSON, err := json.Marshal(map[string]string{"a<b": link + "&x"})
	if err != nil {
		t.Fatal(err)
	}
	foreign := newSigner("another key").Takeover(takeover())
	cdp := "wss://a.example/v1/sessions/session-06f1q2s3t4v5a6b7c8d9/cdp?token=ABCDEF234567"
	for text, want := range map[string]string{
		"":                          "",
		link:                        reference,
		"Open " + link + ". Thanks": "Open " + reference + ". Thanks",
		link + "\n" + link:          reference + "\n" + reference,
		string(inJSON):              `{"a\u003cb":"` + reference + `\u0026x"}`,
		"a=1&to=" + url.QueryEscape(link) + "&b=2": "a=1&to=" + reference + "&b=2",
		strings.ReplaceAll(link, "/", `\/`):        reference,
		`<a href="` + link + `">x</a>`:             `<a href="` + reference + `">x</a>`,
		"/live/session-1?token=" + token:           "/live/session-1?token=" + agent.Mask,
		"wss://a/cast?sessionId=1&token=" + token:  "wss://a/cast?sessionId=1&token=" + agent.Mask,
		"see " + view:                    "see satchel-link:session-1",
		foreign:                          foreign,
		token[:len(token)-1] + "_" + "x": token[:len(token)-1] + "_" + "x",
		tokenStart.text:                  tokenStart.text,
		"at " + cdp + " now": "at wss://a.example/v1/sessions/session-06f1q2s3t4v5a6b7c8d9/cdp?token=" +
			agent.Mask + " now",
		"https://other/cdp?token=ABC": "https://other/cdp?token=ABC",
	} {
		if got := s.Hide(text); got != want {
			t.Errorf("%s\nis %s\nwant %s", text, got, want)
		}
		if got := s.Hide(want); got != want {
			t.Errorf("hidden again, %s is %s", want, got)
		}
		if got := string(s.HideBytes([]byte(text))); got != want {
			t.Errorf("bytes of %s: %s", text, got)
		}
	}
}

func TestFill(t *testing.T) {
	link := func(id string) string {
		if id == takeoverID {
			return "http://a/live?token=t.s"
		}
		return ""
	}
	escaped := url.QueryEscape(link(takeoverID))
	for text, want := range map[string]string{
		"":                                  "",
		"Hello":                             "Hello",
		Reference(takeoverID):               link(takeoverID),
		"<" + Reference(takeoverID) + ">, ": "<" + link(takeoverID) + ">, ",
		"?a=" + url.QueryEscape(Reference(takeoverID)) + "&b": "?a=" + escaped + "&b",
		Reference("takeover-06f1q2s3t4v5a6b7c800"):            Reference("takeover-06f1q2s3t4v5a6b7c800"),
		Reference("takeover-short"):                           Reference("takeover-short"),
		Reference(takeoverID + "x"):                           link(takeoverID) + "x",
		"satchel-link:session-1 satchel-link: satchel-link":   "satchel-link:session-1 satchel-link: satchel-link",
		Reference(takeoverID) + Reference(takeoverID):         link(takeoverID) + link(takeoverID),
	} {
		if got := Fill(text, link); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := Fill(Disarm(text), link); strings.Contains(got, "token=") {
			t.Errorf("disarmed %q becomes %q", text, got)
		}
	}
}

func FuzzHide(f *testing.F) {
	s := newSigner("key")
	link := s.Takeover(takeover())
	_, token, _ := strings.Cut(link, "token=")
	f.Add("", "")
	f.Add("http://a/live?", "/cdp?token=")
	f.Fuzz(func(t *testing.T, before, after string) {
		if hidden := s.Hide(before + " " + link + " " + after); strings.Contains(hidden, token) {
			t.Errorf("not hidden between %q and %q: %s", before, after, hidden)
		}
	})
}

// BenchmarkHide measures what storing a text without links costs.
func BenchmarkHide(b *testing.B) {
	s := newSigner("key")
	for name, size := range map[string]int{"100 B": 100, "10 KB": 10_000, "1 MB": 1_000_000} {
		text := strings.Repeat("The quick brown fox. ", size/21+1)[:size]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			for range b.N {
				_ = s.Hide(text)
			}
		})
	}
}
