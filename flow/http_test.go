package flow

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHTTPNode(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "auth "+r.Header.Get("Authorization"), http.StatusTeapot)
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			raw := make([]byte, 1000)
			n, _ := r.Body.Read(raw)
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"method": r.Method,
				"query":  r.URL.RawQuery,
				"type":   r.Header.Get("Content-Type"),
				"x":      r.Header.Get("X-A"),
				"auth":   r.Header.Get("Authorization"),
				"body":   string(raw[:n]),
				"agent":  r.Header.Get("User-Agent"),
			})
		case "/huge":
			for range 11 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0xfe, 0})
		case "/broken":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{oops"))
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/drip":
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
			}
		case "/inward":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/hang":
			<-r.Context().Done()
		default:
			http.Error(w, "no", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	db, e := open(t)
	for _, c := range []struct{ name, data, want string }{
		{
			"all fields",
			`"url":"URL/echo?a=1","method":"put","query":{"b":["x y","z"]},"headers":{"X-A":"{{who}}"},` +
				`"body":{"n":"{{n}}"},"auth":{"type":"bearer","token":"{{who}}"}`,
			`200 {"agent":"Satchel/test","auth":"Bearer Ada","body":"{\"n\":7}","method":"PUT",` +
				`"query":"a=1&b=x+y&b=z","type":"application/json","x":"Ada"}`,
		},
		{
			"a form",
			`"url":"URL/echo","method":"POST","body_type":"form","body":{"a":"1 2"},"auth":{"type":"basic",` +
				`"username":"u","password":"p"}`,
			`200 {"agent":"Satchel/test","auth":"Basic dTpw","body":"a=1+2","method":"POST","query":"",` +
				`"type":"application/x-www-form-urlencoded","x":""}`,
		},
		{
			"text",
			`"url":"URL/echo","method":"POST","body":"plain","headers":{"Authorization":"mine"}`,
			`200 {"agent":"Satchel/test","auth":"mine","body":"plain","method":"POST","query":"",` +
				`"type":"text/plain; charset=utf-8","x":""}`,
		},
		{"a failure", `"url":"URL/"`, `UPSTREAM_ERROR the server answered with status 503`},
		{"a failure status that is allowed", `"url":"URL/","fail_on_status":false`, `503 "no\n"`},
		{"too large", `"url":"URL/huge"`, `RESPONSE_TOO_LARGE response too large: 127.0.0.1: more than 10 MB`},
		{"binary", `"url":"URL/binary"`, `200 "//4A"`},
		{"broken JSON", `"url":"URL/broken"`, `200 "{oops"`},
		{
			"another host",
			`"url":"URL/other","fail_on_status":false,"auth":{"type":"bearer","token":"secret"}`,
			`418 "auth \n"`,
		},
		{"no response", `"url":"URL/hang","timeout_ms":30`, `ACTION_TIMEOUT the node took longer than 30ms`},
		{
			"endless response",
			`"url":"URL/endless"`,
			`RESPONSE_TOO_LARGE response too large: 127.0.0.1: more than 10 MB`,
		},
		{"slow response", `"url":"URL/drip","timeout_ms":30`, `ACTION_TIMEOUT the node took longer than 30ms`},
		{
			"a redirect to a private address",
			`"url":"URL/inward"`,
			`BLOCKED_ADDRESS address not allowed: 169.254.169.254: cloud metadata address`,
		},
		{"no address", `"url":"{{nothing}}"`, `EXECUTION_ERROR url must be an http or https URL`},
		{
			"a private address",
			`"url":"http://10.0.0.1/"`,
			`BLOCKED_ADDRESS address not allowed: 10.0.0.1: private address; the operator of this server can allow ` +
				`it with SATCHEL_OUTBOUND_ALLOW=10.0.0.1:80`,
		},
		{"a file", `"url":"file://localhost/etc/passwd"`, `UNSUPPORTED_SCHEME scheme not allowed: only http and https`},
		{
			"a newline in a header",
			`"url":"URL/echo","headers":{"X-A":"a\r\nb: c"}`,
			`EXECUTION_ERROR headers has a name or value that HTTP does not allow: X-A`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := execute(
				t,
				db,
				e,
				createWorkflow(
					t,
					db,
					e,
					"t trigger\nh http-request {"+strings.ReplaceAll(c.data, "URL", server.URL)+"}\nt -> h",
				),
				`{"who":"Ada","n":7}`,
			)
			var got string
			if x := s.Execution; x.Error != nil {
				got = x.Error.Code + " " + x.Error.Message
			} else {
				var out struct {
					Status json.Number
					Body   any
				}
				if err := json.Unmarshal(x.Output, &out); err != nil {
					t.Fatal(err)
				}
				got = out.Status.String() + " " + string(mustJSON(out.Body))
				got = strings.ReplaceAll(got, `\u0026`, "&")
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestResponseOfManyValues: a body whose values would need much memory stays a text.
func TestResponseOfManyValues(t *testing.T) {
	for n, isText := range map[int]bool{maxBodyValues - 2: false, maxBodyValues: true} {
		raw := "[" + strings.Repeat("0,", n) + "0]"
		body, warning := readAnswer("application/json", "", []byte(raw))
		if _, text := body.(string); text != isText || (warning != "") != isText {
			t.Errorf("%d values: %T, %q", n, body, warning)
		}
	}
}
