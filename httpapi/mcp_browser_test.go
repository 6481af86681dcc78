package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/browser/install/installtest"
)

// TestMCPBrowser has an agent's MCP client use its browser: a form is filled in and
// submitted, and the result is read and seen in a screenshot.
func TestMCPBrowser(t *testing.T) {
	installtest.Need(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if name := r.FormValue("name"); name != "" {
			fmt.Fprintf(w, "<title>Thanks</title><h1>Thanks, %s</h1>", name)
			return
		}
		fmt.Fprint(
			w,
			`<title>Order</title><form><input name=name aria-label="Your name"><button>Order bread</button></form>`,
		)
	}))
	t.Cleanup(site.Close)
	c := newTestClient(t)
	session := c.mcpSession(t, "default", "2026-07-28")
	open := func(arguments string) string {
		t.Helper()
		text, failed := callTool(t, session, "browser_open", arguments)
		var out struct {
			ID   string `json:"session_id"`
			View string `json:"live_view_url"`
		}
		if err := json.Unmarshal([]byte(text), &out); failed ||
			err != nil ||
			out.ID == "" ||
			!strings.Contains(out.View, out.ID) {
			t.Fatalf("browser_open: %s, %v", text, err)
		}
		return out.ID
	}
	id := open(`{"url":"` + site.URL + `"}`)
	for _, call := range []struct{ tool, more, has string }{
		{"browser_snapshot", ``, "Order bread"},
		{"browser_type", `,"selector":"input","text":"Ada"`, `"title":"Order"`},
		{"browser_click", `,"selector":"button"`, `"url":"` + site.URL},
		{"browser_extract", `,"selector":"h1"`, `"value":"Thanks, Ada"`},
		{"browser_navigate", `,"url":"` + site.URL + `/?name=Bob"`, `"title":"Thanks"`},
	} {
		if text, failed := callTool(
			t,
			session,
			call.tool,
			`{"session_id":"`+id+`"`+call.more+`}`,
		); failed || !strings.Contains(text, call.has) {
			t.Errorf("%s: %s", call.tool, text)
		}
	}
	seen, err := session.CallTool(t.Context(), &sdk.CallToolParams{
		Name:      "browser_screenshot",
		Arguments: json.RawMessage(`{"session_id":"` + id + `"}`),
	})
	if err != nil || len(seen.Content) != 2 {
		t.Fatalf("%+v, %v", seen, err)
	}
	picture, _ := seen.Content[0].(*sdk.ImageContent)
	if picture == nil || picture.MIMEType != "image/png" {
		t.Fatalf("a screenshot is %+v", seen.Content[0])
	}
	if image, err := png.Decode(bytes.NewReader(picture.Data)); err != nil || image.Bounds().Dx() != 1280 {
		t.Errorf("the picture: %v", err)
	}
	if about := seen.Content[1].(*sdk.TextContent).Text; !strings.Contains(about, `"title":"Thanks"`) ||
		strings.Contains(about, "base64") {
		t.Errorf("the text next to the picture is %s", about)
	}
	for _, call := range []struct{ tool, arguments, has string }{
		{"browser_click", `{"session_id":"` + id + `"}`, "INVALID_ACTION: selector is required"},
		{"browser_click", `{"session_id":"` + id + `","selector":"#none","timeout":50}`, "ACTION_TIMEOUT: "},
		{"browser_click", `{"selector":"h1"}`, "VALIDATION_ERROR: session_id is required"},
		{"browser_snapshot", `{"session_id":"session-x"}`, "NOT_FOUND: "},
		{"browser_open", `{"url":"file:///etc/passwd"}`, "INVALID_ACTION: "},
	} {
		if text, failed := callTool(t, session, call.tool, call.arguments); !failed ||
			!strings.HasPrefix(text, call.has) {
			t.Errorf("%s %s: %s", call.tool, call.arguments, text)
		}
	}
	if text, failed := callTool(
		t,
		session,
		"browser_close",
		`{"session_id":"`+id+`"}`,
	); failed || text != `{"success":true}` {
		t.Errorf("browser_close: %s", text)
	}
	for _, left := range c.must(t, 200, "GET", "/api/agents/default/browser", "")["sessions"].([]any) {
		if at(left, "status") == "active" {
			t.Errorf("a session stays open: %v", left)
		}
	}
}
