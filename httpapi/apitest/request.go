package apitest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/browser/install/installtest"
)

// Hostile is a name that runs as a script wherever it is inserted as markup.
const Hostile = `"><img src=x onerror="hit=1"><script>hit=1</script><svg onload=hit=1>'&lt;` + "\u202e{{x}}"

// Response is a response with its body read and, if it is JSON, decoded.
type Response struct {
	*http.Response
	Text string
	JSON map[string]any
}

// Send makes a request with headers, of which Host sets its host. It ends a test that asks for
// a browser which the machine lacks.
func Send(tb testing.TB, header http.Header, method, address string, body io.Reader, media string) Response {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, address, body)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header = header.Clone()
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if media != "" && req.ContentLength != 0 {
		req.Header.Set("Content-Type", media)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	r := Response{Response: resp, Text: string(raw)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") &&
		resp.Header.Get("Content-Encoding") == "" {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&r.JSON); err != nil {
			tb.Fatalf("%s %s: %v in %s", method, address, err, raw)
		}
	}
	if failed, _ := r.JSON["error"].(map[string]any); failed["code"] == string(agent.CodeBrowser) {
		installtest.Need(tb)
	}
	return r
}

// Until waits until a condition holds. It checks the condition each time that the stream
// of changes at an address reports one.
func Until(tb testing.TB, header http.Header, stream, what string, holds func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", stream, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header = header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if lines.Text() == "" && holds() { // the end of an event
			return
		}
	}
	tb.Fatalf("not within a minute: %s", what)
}

// Quoted returns a text as JSON.
func Quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// At follows a path such as "error.details.field" or "agents.0.name".
func At(value any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i := int(key[0] - '0')
			if i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// Form builds a multipart body: text fields, then the file, then late fields.
func Form(
	t testing.TB,
	fields map[string]string,
	name string,
	content []byte,
	late map[string]string,
) (io.Reader, string) {
	t.Helper()
	var buf bytes.Buffer
	writer := multipart.NewWriter(&buf)
	write := func(fields map[string]string) {
		for name, value := range fields {
			if err := writer.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(fields)
	if name != "" {
		part, err := writer.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	write(late)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf, writer.FormDataContentType()
}

// LeadsTable is a table of people with columns of most types.
const LeadsTable = `{"name":"leads","columns":[{"name":"name","type":"text","required":true},{"name":"email","type":"text","unique":true},
	{"name":"amount","type":"number"},{"name":"vip","type":"boolean"},{"name":"status","type":"choice","options":["new","won"]}]}`
