package cluster

import (
	"bytes"
	"net/http/httptest"
	"testing"
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
	if rotated.Verify(r) {
		t.Error("a request without a signature is accepted")
	}
	sign(old).Sign(r)
	if !rotated.Verify(r) {
		t.Error("a request that was signed with an earlier key is refused")
	}
	if sign(now).Verify(r) {
		t.Error("a request that was signed with another key is accepted")
	}
	r.Header.Set("X-Forwarded-For", "127.0.0.1")
	if rotated.Verify(r) {
		t.Error("a request whose client was changed is accepted")
	}
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	r.URL.Path = "/api/agents/b/sql"
	if rotated.Verify(r) {
		t.Error("a request whose path was changed is accepted")
	}
	r.Header.Set(Header, "x.y")
	if rotated.Verify(r) {
		t.Error("a broken signature is accepted")
	}
}
