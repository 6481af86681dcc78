package egress

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	"satchel/agent"
)

// minMasked is the minimum length of a secret that is masked in an answer, in bytes:
// shorter texts occur by chance.
const minMasked = 12

// maskable returns the secrets that are masked, longer ones first: one may
// contain another.
func maskable(secrets []string) []string {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < minMasked })
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// Masker returns a Replacer that masks secrets in received text. Secrets shorter
// than 12 bytes are not masked.
func Masker(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range maskable(secrets) {
		pairs = append(pairs, s, agent.Mask)
	}
	return strings.NewReplacer(pairs...)
}

// maskResponse masks the secrets that an answer repeats, in its headers and as
// its body is read.
func maskResponse(resp *http.Response, secrets []string) {
	if secrets = maskable(secrets); len(secrets) == 0 {
		return
	}
	replacer := Masker(secrets)
	for _, values := range resp.Header {
		for i := range values {
			values[i] = replacer.Replace(values[i])
		}
	}
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != nil && resp.Body != http.NoBody {
		resp.Body = &maskedBody{ReadCloser: resp.Body, secrets: secrets}
		resp.ContentLength = -1
	}
}

// maskedBody replaces secrets in what is read. It holds back only bytes that
// may be the beginning of one.
type maskedBody struct {
	io.ReadCloser
	secrets []string // longer ones first
	ready   []byte   // to be delivered
	pending []byte   // may begin a secret
	err     error
}

// Read delivers the body with its secrets masked.
func (b *maskedBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 && b.err == nil {
		chunk := make([]byte, max(len(p), 512))
		n, err := b.ReadCloser.Read(chunk)
		b.err = err
		b.take(chunk[:n])
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	if n == 0 && len(p) > 0 {
		return 0, b.err
	}
	return n, nil
}

// take appends a chunk to the held bytes and masks the secrets that are complete.
func (b *maskedBody) take(chunk []byte) {
	text := append(b.pending, chunk...)
	for _, s := range b.secrets {
		text = bytes.ReplaceAll(text, []byte(s), []byte(agent.Mask))
	}
	keep := 0
	if b.err == nil {
		for _, s := range b.secrets {
			keep = max(keep, trailingPrefix(text, s))
		}
	}
	b.ready = append(b.ready, text[:len(text)-keep]...)
	b.pending = slices.Clone(text[len(text)-keep:])
}

// trailingPrefix returns how many of the last bytes of text are the beginning of s.
func trailingPrefix(text []byte, s string) int {
	for n := min(len(text), len(s)-1); n > 0; n-- {
		if string(text[len(text)-n:]) == s[:n] {
			return n
		}
	}
	return 0
}
