package httpapi

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

const russian = "Привет"

// cyrillic returns a text in windows-1251.
func cyrillic(t *testing.T, text string) string {
	t.Helper()
	out, err := charmap.Windows1251.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCharsetsOfResponses: a host that does not write UTF-8 is read as it declares.
func TestCharsetsOfResponses(t *testing.T) {
	c := newTestClient(t)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			w.Header().Set("Content-Type", "application/json; charset=windows-1251")
			_, _ = fmt.Fprint(w, cyrillic(t, `[{"title":"`+russian+`"}]`))
		case "/mark":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, "\uFEFF"+`[{"title":"`+russian+`"}]`)
		case "/xml":
			w.Header().Set("Content-Type", "text/xml")
			_, _ = fmt.Fprint(w, cyrillic(t, `<?xml version="1.0" encoding="windows-1251"?><title>`+russian+`</title>`))
		case "/csv":
			w.Header().Set("Content-Type", "text/csv; charset=windows-1251")
			_, _ = fmt.Fprint(w, cyrillic(t, "title\n"+russian+"\n"))
		}
	}))
	t.Cleanup(host.Close)
	for path, kind := range map[string]string{
		"/json": "auto",
		"/mark": "json",
		"/xml":  "xml",
		"/csv":  "csv",
		"/csv?": "text",
	} {
		out := c.call(t, fmt.Sprintf(`{"url":%q,"response_type":%q}`, host.URL+path, kind))
		if body := fmt.Sprint(at(out, "output.body")); !strings.Contains(body, russian) ||
			kind != "text" && !strings.Contains(body, "title:"+russian) {
			t.Errorf("http-request of %s: %v", path, out)
		}
		code := fmt.Sprintf(`return (await fetch(%q)).text()`, host.URL+path)
		out = c.must(
			t,
			201,
			"POST",
			"/api/agents/default/tools",
			fmt.Sprintf(`{"name":"f","type":"function","config":{"code":%q}}`, code),
		)
		c.useTool(t, "fetch of "+path, out["id"])
		out = c.must(
			t,
			201,
			"POST",
			"/api/agents/default/tools",
			fmt.Sprintf(`{"name":"a","type":"api","config":{"url":%q}}`, host.URL+path),
		)
		c.useTool(t, "API tool for "+path, out["id"])
	}
	for _, path := range []string{"/json", "/mark"} {
		source := c.must(
			t, 201, "POST", sourcesPath,
			fmt.Sprintf(`{"type":"api","name":%q,"config":{"url":%q}}`, path, host.URL+path),
		)
		at := sourcesPath + "/" + fmt.Sprint(source["id"])
		if c.waitIndexed(t, at)["status"] != "ready" ||
			!strings.Contains(c.send(t, "GET", at+"/chunks", "").text, russian) {
			t.Errorf("API source of %s: %s", path, c.send(t, "GET", at+"/chunks", "").text)
		}
	}
}

// useTool calls a tool, whose result must have the Russian word, and deletes it.
func (c *testClient) useTool(t *testing.T, what string, id any) {
	t.Helper()
	at := fmt.Sprint("/api/agents/default/tools/", id)
	if text := c.send(t, "POST", at+"/execute", `{}`).text; !strings.Contains(text, russian) {
		t.Errorf("%s: %s", what, text)
	}
	c.must(t, 204, "DELETE", at, "")
}

// TestCharsetsOfPosts: the same for what is posted to hooks and forms.
func TestCharsetsOfPosts(t *testing.T) {
	word := url.QueryEscape(cyrillic(t, russian))
	for name, post := range map[string][2]string{
		"JSON":             {"application/json; charset=windows-1251", cyrillic(t, `{"name":"`+russian+`"}`)},
		"JSON with a mark": {"application/json", "\uFEFF" + `{"name":"` + russian + `"}`},
		"form":             {"application/x-www-form-urlencoded; charset=windows-1251", "name=" + word},
		"_charset_":        {"application/x-www-form-urlencoded", "_charset_=windows-1251&name=" + word},
		"UTF-8":            {"application/x-www-form-urlencoded", "name=" + url.QueryEscape(russian)},
	} {
		body, err := incomingBody(post[0], []byte(post[1]))
		if fields, _ := body.(map[string]any); err != nil || fields["name"] != russian {
			t.Errorf("a hook's %s: %v %v", name, body, err)
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.Header.Set("Content-Type", post[0])
		if s, err := readSubmission(r, []byte(post[1])); err != nil ||
			len(s.entered["name"]) != 1 ||
			s.entered["name"][0] != russian {
			t.Errorf("a form's %s: %v %v", name, s, err)
		}
	}
	if text, err := incomingBody(
		"text/plain; charset=windows-1251",
		[]byte(cyrillic(t, russian)),
	); err != nil || text != russian {
		t.Errorf("a hook's text: %v %v", text, err)
	}
	var raw bytes.Buffer
	form := multipart.NewWriter(&raw)
	part, _ := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="name"`},
		"Content-Type":        {"text/plain; charset=windows-1251"},
	})
	_, _ = part.Write([]byte(cyrillic(t, russian)))
	_ = form.Close()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
	r.Header.Set("Content-Type", form.FormDataContentType())
	if s, err := readSubmission(r, raw.Bytes()); err != nil ||
		len(s.entered["name"]) != 1 ||
		s.entered["name"][0] != russian {
		t.Errorf("a multipart form: %v %v", s, err)
	}
}
