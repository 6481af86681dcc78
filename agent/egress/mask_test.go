package egress

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"satchel/agent"
)

// spellingsOf returns texts that contain a secret in the forms in which hosts repeat
// what they were sent, with the letters x or X around it.
func spellingsOf(secret string) map[string]string {
	quoted, _ := json.Marshal("x" + secret + "x")
	twice, _ := json.Marshal(string(quoted))
	every := func(format string) string {
		var b strings.Builder
		for _, r := range secret {
			fmt.Fprintf(&b, format, r)
		}
		return "x" + b.String() + "x"
	}
	var units strings.Builder
	for _, u := range utf16.Encode([]rune(secret)) {
		fmt.Fprintf(&units, `\u%04X`, u)
	}
	little, big := wide("x" + secret + "x")
	quote := func(text string) string {
		quoted, _ := json.Marshal(text)
		return string(quoted)
	}
	lower := func(text string) string {
		parts := strings.Split(text, "%")
		for i := 1; i < len(parts); i++ {
			parts[i] = strings.ToLower(parts[i][:2]) + parts[i][2:]
		}
		return strings.Join(parts, "%")
	}
	all := map[string]string{
		"plain":              "x" + secret + "x",
		"upper case":         strings.ToUpper("x" + secret + "x"),
		"lower case":         strings.ToLower("x" + secret + "x"),
		"json":               string(quoted),
		"json in json":       string(twice),
		"slashes":            strings.ReplaceAll(string(quoted), "/", `\/`),
		"query":              "x" + url.QueryEscape(secret) + "x",
		"path":               "x" + url.PathEscape(secret) + "x",
		"query, lower":       lower("x" + url.QueryEscape(secret) + "x"),
		"query twice":        "x" + url.QueryEscape(url.QueryEscape(secret)) + "x",
		"html in json":       quote("x" + html.EscapeString(secret) + "x"),
		"html":               "x" + html.EscapeString(secret) + "x",
		"html twice":         "x" + html.EscapeString(html.EscapeString(secret)) + "x",
		"decimal":            every("&#%d;"),
		"hexadecimal":        every("&#x%x;"),
		"hexadecimal, upper": every("&#X%04X;"),
		"units":              "x" + units.String() + "x",
		"hex":                hex.EncodeToString([]byte("x" + secret + "x")),
		"HEX":                strings.ToUpper(hex.EncodeToString([]byte("x" + secret + "x"))),
		"utf-16le":           little,
		"utf-16be":           big,
	}
	for offset := range 3 {
		text := []byte(strings.Repeat("x", offset) + secret + "xx")
		for name, encoding := range map[string]*base64.Encoding{
			"base64":    base64.StdEncoding,
			"base64url": base64.RawURLEncoding,
		} {
			all[fmt.Sprintf("%s at %d", name, offset)] = encoding.EncodeToString(text)
		}
		encoded := base64.StdEncoding.EncodeToString(text)
		all[fmt.Sprintf("base64 at %d in a query", offset)] = url.QueryEscape(encoded)
		all[fmt.Sprintf("base64 at %d in JSON", offset)] = strings.ReplaceAll(encoded, "/", `\/`)
		all[fmt.Sprintf("base64 at %d in lines", offset)] = encoded[:9] + "\r\n" + encoded[9:]
	}
	return all
}

// core returns the part of a spelling that depends only on the secret, as far as it can
// be told from the outside.
func core(name, spelling string) string {
	if strings.HasPrefix(name, "base64") {
		return spelling[len(spelling)/2-3 : len(spelling)/2+3]
	}
	trimmed := strings.Trim(spelling, "\"x\\\x00")
	if strings.EqualFold(name, "hex") {
		trimmed = spelling[2 : len(spelling)-2]
	}
	return trimmed
}

var maskedSecrets = []string{
	"tok-4711+a/b=c&d\"e'f<g>h\\i%j k~l",
	"sk_live_51HxYzAbCdEf",
	"pässwört-ñandú",
	"Пароль-секрет",
	"key-\U0001F511-with-a-lock",
	"12345678abcd",
	`a\\b\c"d/e//f`,
	"-----BEGIN KEY-----\n\tMIIEvQ\r\n4711\n",
	strings.Repeat("eyJhbGciOiJSUzI1NiJ9.", 40) + "end+/=",
}

func TestMaskedSpellings(t *testing.T) {
	for _, secret := range maskedSecrets {
		m := NewMasker([]string{secret})
		for name, spelling := range spellingsOf(secret) {
			masked := m.Replace("before " + spelling + " after")
			if strings.Contains(masked, core(name, spelling)) || len(core(name, spelling)) < 3 {
				t.Errorf("%s of %.20q is not masked: %q", name, secret, masked)
			}
			if !strings.HasPrefix(masked, "before ") || !strings.HasSuffix(masked, " after") {
				t.Errorf("%s of %.20q: more than it is masked: %q", name, secret, masked)
			}
			if longest := longestShared(masked, spelling); longest > 10 { // what stands beside it
				t.Errorf("%s of %.20q: %d bytes are left: %q", name, secret, longest, masked)
			}
		}
	}
}

// longestShared returns the length of the longest part of a spelling in a masked text.
func longestShared(masked, spelling string) (most int) {
	for i := range len(spelling) {
		for most < len(spelling)-i && strings.Contains(masked, spelling[i:i+most+1]) {
			most++
		}
	}
	return most
}

// TestMaskedStream: the bytes arrive one by one, and the result is the same.
func TestMaskedStream(t *testing.T) {
	for _, secret := range maskedSecrets {
		m := NewMasker([]string{secret, "another-secret"})
		for name, spelling := range spellingsOf(secret) {
			text := "before " + spelling + " " + spelling + " after another-secre"
			body := &maskedBody{ReadCloser: io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), masker: m}
			got, err := io.ReadAll(body)
			if want := m.Replace(text); err != nil || string(got) != want {
				t.Errorf("%s of %.20q: %q, want %q (%v)", name, secret, got, want, err)
			}
		}
	}
}

// TestNothingElseIsMasked: a text without the secret stays as it is, and the end of an
// event is not held back.
func TestNothingElseIsMasked(t *testing.T) {
	m := NewMasker([]string{"tok-4711+a/b=c", "short"})
	for _, text := range []string{
		"",
		"short",
		"tok-4711",
		"data: {\"text\":\"AT&T & co, 100% \\\\ sure\"}\n\n",
		"a+b%2B&amp;\\u002b",
		strings.Repeat("tok-", 100),
	} {
		if got := m.Replace(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, event := range []string{
		"data: {\"a\":\"b\"}\n\n",
		"data: token\n\n",
		"data: fish & chips\n\n",
		"data: 100%\n\n",
	} {
		if out, held, _ := m.mask(nil, []byte(event), 0, false); string(out) != event || len(held) > 0 {
			t.Errorf("of %q only %q is delivered at once", event, out)
		}
	}
	if NewMasker([]string{"", "short", agent.Mask}) != nil {
		t.Error("a masker of nothing")
	}
}

// TestShortSecrets: from 8 bytes on all are masked, from 6 on those that are neither words
// nor numbers.
func TestShortSecrets(t *testing.T) {
	for secret, want := range map[string]bool{
		"password": true, "12345678": true, "hunter22": true, "s3cr3t": true, "pa-ss-w": true, `\\\\\\\\`: true,
		"secret": false, "default": false, "123456": false, "ab12": false, "a-b-1": false, agent.Mask: false,
	} {
		text := "{" + base64.StdEncoding.EncodeToString([]byte(secret)) + " " + secret + "}"
		masked := NewMasker([]string{secret}).Replace(text)
		if (masked != text) != want || want && strings.Contains(masked, secret) {
			t.Errorf("%q: %s", secret, masked)
		}
	}
}

// TestHeldIsBounded: a text that looks like an endless spelling is delivered as it comes.
func TestHeldIsBounded(t *testing.T) {
	const secret = "se\\cret-\U0001F511-4711"
	m := NewMasker([]string{secret})
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	for _, begin := range []string{"se", encoded[:7], "se\\cret-\\ud83d", "&"} {
		for _, endless := range []string{"\\", "\n", "%5c", "amp;", "\\n", "&#92;", "%25"} {
			text := begin + strings.Repeat(endless, 100_000)
			out, held, _ := m.mask(nil, []byte(text), 0, false)
			if len(held) > 1000 || len(out)+len(held) != len(text) {
				t.Errorf("%q and %q: %d bytes are held back of %d", begin, endless, len(held), len(text))
			}
		}
	}
}

// TestSecretsOfRequests: what is recognized in a request, by its place.
func TestSecretsOfRequests(t *testing.T) {
	auth := func(kind, name, value string) agent.APIAuth {
		return agent.APIAuth{Type: kind, Token: value, Username: "ada", Password: value, Name: name, Value: value}
	}
	const secret = "qT7+secret/4711=="
	for name, c := range map[string]struct {
		call   Call
		target string
	}{
		"bearer":            {call: Call{Auth: auth("bearer", "", secret)}},
		"basic":             {call: Call{Auth: auth("basic", "", secret)}},
		"key as a name":     {call: Call{Auth: agent.APIAuth{Type: "basic", Username: secret, Password: "X"}}},
		"header":            {call: Call{Auth: auth("header", "X-Anything", secret)}},
		"api key":           {call: Call{Headers: map[string]string{"x-api-key": secret}}},
		"own scheme":        {call: Call{Headers: map[string]string{"Authorization": "Token token=" + secret}}},
		"cookie":            {call: Call{Headers: map[string]string{"Cookie": "lang=en; session=" + secret}}},
		"auth":              {call: Call{Headers: map[string]string{"X-Auth": secret}}},
		"query":             {call: Call{Query: url.Values{"api_key": {secret}}}},
		"token in the URL":  {target: "/x?access_token=" + url.QueryEscape(secret)},
		"key in the URL":    {target: "/x?key=AIzaSyA1234567890abcdefgh"},
		"bot":               {target: "/bot123:AAE-abc_def4711/getMe"},
		"webhook":           {target: "/api/webhooks/123/AAE-abc_def4711"},
		"template's bearer": {call: Call{Headers: map[string]string{"authorization": "bearer " + secret}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.call.URL, _ = url.Parse("https://api.example.com" + c.target)
			req, err := c.call.Request(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := secret
			for _, other := range []string{"AIzaSyA1234567890abcdefgh", "AAE-abc_def4711"} {
				if strings.Contains(c.target, other) {
					want = other
				}
			}
			if masked := NewMasker(secretsOf(req)).Replace("x" + want + "x"); strings.Contains(
				masked,
				want[1:len(want)-2],
			) {
				t.Errorf("of %v: %s", secretsOf(req), masked)
			}
		})
	}
	plain := Call{
		URL: &url.URL{
			Scheme:   "https",
			Host:     "api.example.com",
			RawQuery: "key=customer-settings&page_token=abcdefghijkl&syncToken=123456789",
		},
		Headers:        map[string]string{"X-Author": "Ada Lovelace", "Mcp-Session-Id": "12345678-90"},
		IdempotencyKey: "run-12345678",
	}
	req, err := plain.Request(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found := secretsOf(req); len(found) > 0 {
		t.Errorf("taken for secrets: %q", found)
	}
}

// TestEchoIsMasked: a server repeats its request in its status line, headers, body and the
// address of a redirect, which still arrives where it leads.
func TestEchoIsMasked(t *testing.T) {
	const secret = "qT7+secret/4711"
	var other *httptest.Server
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := r.Header.Get("X-Api-Key") + " " + r.URL.RawQuery
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/final?again="+url.QueryEscape(r.Header.Get("X-Api-Key")), http.StatusFound)
			return
		case "/away":
			http.Redirect(w, r, other.URL+"/?leak="+url.QueryEscape(r.Header.Get("X-Api-Key")), http.StatusFound)
			return
		case "/zip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, said)
			_ = z.Close()
			return
		case "/deflate":
			w.Header().Set("Content-Encoding", "deflate")
			z := zlib.NewWriter(w)
			_, _ = io.WriteString(z, said)
			_ = z.Close()
			return
		case "/status":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 "+r.Header.Get("X-Api-Key")+"\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
			return
		case "/broken":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 "+r.Header.Get("X-Api-Key")+"\r\n\r\n")
			_ = conn.Close()
			return
		}
		w.Header().Set("X-Echo", said)
		_, _ = io.WriteString(w, said)
	}))
	defer s.Close()
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "query "+r.URL.RawQuery)
	}))
	defer other.Close()
	c := New(loopback())
	for _, at := range []string{"/plain", "/redirect", "/away", "/zip", "/deflate", "/status", "/broken"} {
		u, _ := url.Parse(s.URL + at)
		call := Call{URL: u, Headers: map[string]string{"X-Api-Key": secret, "Accept-Encoding": "gzip, br"}}
		req, err := call.Request(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			if strings.Contains(err.Error(), "4711") || at != "/broken" {
				t.Errorf("%s: %v", at, err)
			}
			continue
		}
		var all bytes.Buffer
		_ = resp.Header.Write(&all)
		_, _ = all.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		text := all.String() + resp.Status + resp.Request.URL.String()
		if strings.Contains(text, "4711") ||
			!strings.Contains(text, agent.Mask) && !strings.Contains(text, url.QueryEscape(agent.Mask)) {
			t.Errorf("%s: %s", at, text)
		}
		if at == "/redirect" &&
			!slices.Equal(strings.Fields(text)[len(strings.Fields(text))-1:], []string{
				"OK" + s.URL + "/final?again=********",
			}) {
			t.Errorf("%s: %s", at, text)
		}
	}
}

// TestVerbatim: who forwards another's request forwards the answer as it is.
func TestVerbatim(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	defer s.Close()
	policy := loopback()
	policy.Verbatim = true
	req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
	req.Header.Set("Authorization", "Bearer sesame-open-4711")
	resp, err := New(policy).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); string(got) != "Bearer sesame-open-4711" {
		t.Errorf("%q", got)
	}
}

// FuzzMasker: a text without any form of the secret stays as it is when it comes in two
// parts, and the secret never remains.
func FuzzMasker(f *testing.F) {
	f.Add("sesame-open-4711", "your key is %73esame\\u002dopen-4711 &amp;#45;", 7)
	f.Add("a&amp;b%25c\\d", "a&amp;amp;b%2525c\\\\d", 3)
	f.Fuzz(func(t *testing.T, secret, text string, cut int) {
		m := NewMasker([]string{secret})
		if m == nil || len(secret) > 500 || len(text) > 5000 || strings.Contains(agent.Mask+agent.Mask, secret) {
			return
		}
		cut = min(max(cut, 0), len(text))
		out, held, covered := m.mask(nil, []byte(text[:cut]), 0, false)
		out, _, _ = m.mask(out, append(slices.Clone(held), text[cut:]...), covered, true)
		if string(out) != m.Replace(text) {
			t.Errorf("%q in parts: %q, whole %q", text, out, m.Replace(text))
		}
		if len(held) > 20*maxPattern*maxEntity {
			t.Errorf("%d bytes are held back", len(held))
		}
		if whole := m.Replace("[" + secret + "]"); strings.Contains(whole, secret) &&
			!strings.Contains(agent.Mask, secret) {
			t.Errorf("%q remains in %q", secret, whole)
		}
	})
}

// BenchmarkMasker masks an answer of 1 MB.
func BenchmarkMasker(b *testing.B) {
	text := []byte(strings.Repeat(
		`{"id":1234567890,"name":"Ada Lovelace","note":"a \"quoted\" text & more"},`,
		1<<20/75,
	))
	for _, n := range []int{1, 8} {
		var secrets []string
		for i := range n {
			secrets = append(secrets, fmt.Sprintf("sk_live_%dHxYzAbCdEfGhIjKlMnOpQrSt", i))
		}
		m := NewMasker(secrets)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.mask(nil, text, 0, true)
			}
		})
	}
}
