package chat

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/egress"
)

// TestAPIToolSendsForms sends arguments as forms, with and without files.
func TestAPIToolSendsForms(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			_ = r.ParseForm()
			fmt.Fprint(w, r.Header.Get("Content-Type"), " ", r.PostForm)
			return
		}
		fmt.Fprint(w, r.MultipartForm.Value)
		for name, files := range r.MultipartForm.File {
			fmt.Fprint(w, " ", name, " ", files[0].Filename, " ", files[0].Size)
		}
	}))
	defer server.Close()
	box := NewToolbox(ToolOptions{
		HTTP:    egress.New(egress.Policy{Allow: agent.MustAddressRanges("127.0.0.0/8")}),
		Version: "1",
	})
	body := map[string]any{"to": "{{to}}", "n": []any{"{{n}}", 2}}
	for _, c := range []struct {
		kind, photo, want string
	}{
		{"form", "", "application/x-www-form-urlencoded map[n:[1 2] to:[Ada]]"},
		{"multipart", "aGk=", "map[n:[1 2] to:[Ada]] photo file 2"},
		{"multipart", "", "map[n:[1 2] to:[Ada]]"},
		{"multipart", "?", "give no file for photo"},
	} {
		config := agent.ToolConfig{Method: "POST", URL: server.URL, Body: body, BodyType: c.kind}
		arguments := map[string]any{"to": "Ada", "n": 1.0}
		if c.kind == "multipart" {
			config.Files = map[string]string{"photo": "{{photo}}"}
		}
		if c.photo != "" {
			arguments["photo"] = c.photo
		}
		got, err := box.request(t.Context(), config, arguments, nil)
		if text := fmt.Sprint(got, err); !strings.Contains(text, c.want) {
			t.Errorf("%s %q: %s", c.kind, c.photo, text)
		}
	}
}
