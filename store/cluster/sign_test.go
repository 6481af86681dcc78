package cluster

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestOnlyServersOfTheClusterSign(t *testing.T) {
	old, now := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	if _, err := NewSigner(nil); err == nil {
		t.Error("there is a signer without a key")
	}
	sign := func(key []byte) Signer {
		s, err := NewSigner([][]byte{key})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	rotated, err := NewSigner([][]byte{now, old})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/api/agents/a/sql?x=1", nil)
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	verify := func(s Signer, want bool, what string) {
		t.Helper()
		if signed, err := s.Verify(r); signed != want || err != nil {
			t.Errorf("%s: %v %v", what, signed, err)
		}
	}
	verify(rotated, false, "without a signature")
	sign(old).Sign(r)
	verify(rotated, true, "signed with an earlier key")
	verify(sign(now), false, "signed with another key")
	r.Header.Set("X-Forwarded-For", "127.0.0.1")
	verify(rotated, false, "with another client")
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	r.URL.Path = "/api/agents/b/sql"
	verify(rotated, false, "with another path")
	r.Header.Set(Header, "x.y")
	verify(rotated, false, "with a broken signature")
}

// A copy of a signed request is worth nothing half a minute later, whichever clock of a
// server is wrong: they all use the database's.
func TestSignaturesEnd(t *testing.T) {
	signer, err := NewSigner([][]byte{bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for passed, want := range map[time.Duration]error{
		0:                                   nil,
		MaxSignatureAge:                     nil,
		-MaxSignatureAge:                    nil,
		time.Hour:                           ErrSignatureTime,
		MaxSignatureAge + time.Millisecond:  ErrSignatureTime,
		-MaxSignatureAge - time.Millisecond: ErrSignatureTime,
	} {
		r := httptest.NewRequest("POST", "/api/agents/a/sql", nil)
		signer.At(func() time.Time { return at }).Sign(r)
		signed, err := signer.At(func() time.Time { return at.Add(passed) }).Verify(r)
		if !errors.Is(err, want) || signed != (want == nil) {
			t.Errorf("after %v: %v %v", passed, signed, err)
		}
	}

	ahead, behind := &Cluster{}, &Cluster{}
	for c, by := range map[*Cluster]time.Duration{ahead: 3 * time.Hour, behind: -3 * time.Hour} {
		c.stats.Ahead = by
		c.Signer = signer.At(func() time.Time { return c.databaseTime().Add(by) }) // time.Now is right in tests
	}
	r := httptest.NewRequest("POST", "/api/agents/a/sql", nil)
	ahead.Sign(r)
	if signed, err := behind.Verify(r); !signed || err != nil {
		t.Errorf("with other clocks: %v %v", signed, err)
	}
}

// While servers of an earlier version are in the cluster, what they sign is accepted.
func TestSignaturesWithoutATime(t *testing.T) {
	signer, err := NewSigner([][]byte{bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/api/agents/a", nil)
	nonce := strings.Repeat("0a", 16)
	r.Header.Set(Header, nonce+"."+base64.RawURLEncoding.EncodeToString(mac(signer.keys[0], r, nonce)))
	for what, test := range map[string]struct {
		nodes map[string]*peer
		want  error
	}{
		"alone": {nil, ErrSignatureTime},
		"with one like it": {
			map[string]*peer{"a": {Node: Node{Alive: true}, fileVersion: timedSince}},
			ErrSignatureTime,
		},
		"with one that is gone": {map[string]*peer{"a": {fileVersion: timedSince - 1}}, ErrSignatureTime},
		"during an upgrade":     {map[string]*peer{"a": {Node: Node{Alive: true}, fileVersion: timedSince - 1}}, nil},
	} {
		signed, err := (&Cluster{Signer: signer, nodes: test.nodes}).Verify(r)
		if !errors.Is(err, test.want) || signed != (test.want == nil) {
			t.Errorf("%s: %v %v", what, signed, err)
		}
	}
}
