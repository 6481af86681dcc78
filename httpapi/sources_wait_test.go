package httpapi

import "testing"

// TestUploadWaits checks that an upload with wait responds once its source is done.
func TestUploadWaits(t *testing.T) {
	c, path := newTestClient(t), "/api/agents/default/sources"
	for name, want := range map[string]string{"policy.md": "ready", "broken.json": "error"} {
		content := "# Returns\n\nGoods can be sent back within thirty days.\n"
		if want == "error" {
			content = `{"a":`
		}
		a := c.upload(t, path+"?wait=300", name, content, nil)
		if a.StatusCode != 201 || a.json["status"] != want || a.Header.Get("Location") == "" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
	}
	a := c.send(
		t,
		"POST",
		path+"?wait=300",
		`{"type":"database","name":"Contacts","config":{"query":"SELECT name FROM contacts"}}`,
	)
	if a.StatusCode != 201 || a.json["status"] != "ready" {
		t.Errorf("a query: %d %s", a.StatusCode, a.text)
	}
	for _, wait := range []string{"-1", "301", "soon"} {
		if a := c.upload(t, path+"?wait="+wait, "policy.md", "# Returns\n", nil); a.StatusCode != 400 ||
			at(a.json, "error.details.field") != "wait" {
			t.Errorf("wait=%s: %d %s", wait, a.StatusCode, a.text)
		}
	}
	if a := c.upload(t, path, "policy.md", "# Returns\n", nil); a.StatusCode != 201 ||
		a.json["status"] != "processing" {
		t.Errorf("without wait: %d %s", a.StatusCode, a.text)
	}
}
