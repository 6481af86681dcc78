package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"slices"
	"strings"
	"testing"
)

func (c *testClient) upload(t *testing.T, path, name, content string, fields map[string]string) answer {
	t.Helper()
	body, media := multipartForm(t, fields, name, []byte(content), nil)
	return c.do(t, "POST", path, body, media)
}

// multipartBatch builds a multipart body of several files; each is a name and a content.
func multipartBatch(t *testing.T, fields map[string]string, files ...[2]string) (io.Reader, string) {
	t.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, f := range files {
		part, err := w.CreateFormFile("files", f[0])
		if err == nil {
			_, err = part.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range fields {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf, w.FormDataContentType()
}

// TestBatch checks that each file of a batch becomes a source or an error of its own, and
// that a batch that is invalid as a whole stores nothing.
func TestBatch(t *testing.T) {
	c, path := newProxiedServer(t, nil).testClient, "/api/agents/default/sources" // with a limit of 1 MB for uploads
	long := strings.Repeat("a line of text\n", (1<<20)/15+1)
	send := func(fields map[string]string, files ...[2]string) answer {
		body, media := multipartBatch(t, fields, files...)
		return c.do(t, "POST", path+"/batch", body, media)
	}
	text := "# Returns\n\nGoods can be sent back within thirty days.\n"
	a := send(
		map[string]string{"chunk_size": "300"},
		[2]string{"one.md", text},
		[2]string{"run.exe", "MZ"},
		[2]string{"long.txt", long},
		[2]string{"none.txt", ""},
		[2]string{"two.md", text},
	)
	want := []string{"", "UNSUPPORTED_FORMAT", "FILE_TOO_LARGE", "VALIDATION_ERROR", ""}
	if results, _ := a.json["results"].([]any); a.StatusCode != 200 || len(results) != len(want) {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	for i, code := range want {
		item := a.json["results"].([]any)[i]
		if code != "" && (at(item, "error.code") != code || at(item, "source") != nil) {
			t.Errorf("file %d: %v", i, item)
		} else if code == "" &&
			(at(item, "source.config.chunk_size") != json.Number("300") ||
				at(item, "source.name") != at(item, "name")) {
			t.Errorf("file %d: %v", i, item)
		}
	}
	if got := at(a.json["results"].([]any)[4], "name"); got != "two.md" {
		t.Errorf("the last is %v", got)
	}
	many := slices.Repeat([][2]string{{"a.md", text}}, 51)
	huge := slices.Repeat([][2]string{{"long.txt", long}}, 5)
	for _, off := range []struct {
		name   string
		fields map[string]string
		files  [][2]string
		status int
		field  string
	}{
		{"no file", nil, nil, 400, "files"},
		{"too many", nil, many, 400, "files"},
		{"too large together", nil, append([][2]string{{"a.md", text}}, huge...), 413, "files"},
		{"invalid chunking", map[string]string{"chunk_size": "1"}, many[:1], 400, "chunk_size"},
	} {
		if a := send(off.fields, off.files...); a.StatusCode != off.status ||
			at(a.json, "error.details.field") != off.field {
			t.Errorf("%s: %d %s", off.name, a.StatusCode, a.text)
		}
	}
	if total := at(c.must(t, 200, "GET", path, ""), "meta.total"); total != json.Number("2") {
		t.Errorf("%v sources", total)
	}
	if a := send(nil, many[:50]...); a.StatusCode != 200 || len(a.json["results"].([]any)) != 50 {
		t.Errorf("50 files: %d %.200s", a.StatusCode, a.text)
	}
}

func TestUploads(t *testing.T) {
	c := newOwnClient(t)
	sources := "/api/agents/default/sources"
	for _, tc := range []struct {
		name, file, content string
		fields              map[string]string
		status              int
		field               string
	}{
		{"text", "a.txt", "hello world", nil, 201, ""},
		{"path in the name", "../../etc/passwd.md", "# hello", nil, 201, ""},
		{"UTF-16", "u.txt", "\xff\xfeh\x00i\x00", nil, 201, ""},
		{
			"settings",
			"a.json",
			`{"a":1}`,
			map[string]string{"type": "file", "name": "A", "chunk_size": "500", "overlap": "50", "method": "sentence"},
			201,
			"",
		},
		{
			"settings as JSON",
			"a.csv",
			"name,city\nAda,London\n",
			map[string]string{"config": `{"chunk_size":400,"overlap":0}`},
			201,
			"",
		},
		{"small chunks alone", "a.txt", "hello", map[string]string{"chunk_size": "100"}, 201, ""},
		{"no file", "", "", nil, 400, "file"},
		{"0 bytes", "a.txt", "", nil, 400, "file"},
		{"not UTF-8", "a.txt", "caf\xe9 au lait", nil, 400, "file"},
		{"binary", "a.md", "\x00\x01\x02\x03", nil, 400, "file"},
		{"an invalid docx", "a.docx", "hello", nil, 400, "file"},
		{"an invalid pdf", "a.pdf", "hello", nil, 400, "file"},
		{"unknown format", "a.exe", "MZ", nil, 415, "file"},
		{"over the limit", "a.txt", strings.Repeat("x", 25<<20+1), nil, 413, "file"},
		{"other type", "a.txt", "hello", map[string]string{"type": "crawl"}, 400, "type"},
		{"chunk_size not a number", "a.txt", "hello", map[string]string{"chunk_size": "big"}, 400, "chunk_size"},
		{"chunk_size too small", "a.txt", "hello", map[string]string{"chunk_size": "1"}, 400, "chunk_size"},
		{
			"overlap too large",
			"a.txt",
			"hello",
			map[string]string{"chunk_size": "100", "overlap": "100"},
			400,
			"overlap",
		},
		{"negative overlap", "a.txt", "hello", map[string]string{"overlap": "-1"}, 400, "overlap"},
		{"unknown method", "a.txt", "hello", map[string]string{"method": "magic"}, 400, "method"},
		{"config not an object", "a.txt", "hello", map[string]string{"config": "[]"}, 400, "config"},
		{
			"config of wrong type",
			"a.txt",
			"hello",
			map[string]string{"config": `{"chunk_size":"x"}`},
			400,
			"config.chunk_size",
		},
		{"long name", "a.txt", "hello", map[string]string{"name": strings.Repeat("x", 201)}, 400, "name"},
		{"long field", "a.txt", "hello", map[string]string{"name": strings.Repeat("x", 64<<10+1)}, 400, "name"},
	} {
		a := c.upload(t, sources, tc.file, tc.content, tc.fields)
		if a.StatusCode != tc.status {
			t.Errorf("%s: %d, want %d\n%s", tc.name, a.StatusCode, tc.status, a.text)
		} else if tc.field != "" && at(a.json, "error.details.field") != tc.field {
			t.Errorf("%s: the error names %v, want %s", tc.name, at(a.json, "error.details.field"), tc.field)
		}
		if tc.status == 201 &&
			(at(a.json, "status") != "processing" || !strings.HasPrefix(a.Header.Get("Location"), sources+"/source-")) {
			t.Errorf("%s: %s %s", tc.name, a.Header.Get("Location"), a.text)
		}
	}
	if total := c.must(
		t, 200, "GET", sources, "",
	); at(total, "meta.total").(interface{ String() string }).String() != "6" {
		t.Errorf("refused uploads left sources behind: %v", total["meta"])
	}
	parts := c.must(
		t,
		200,
		"POST",
		"/api/agents/default/sql/execute",
		`{"query":"SELECT count(*) FROM sources WHERE file_path LIKE '%..%' OR file_path LIKE '%/etc/%' `+
			`OR file_path NOT LIKE 'sources/%'"}`,
	)
	if got := at(parts, "rows.0.0"); got == nil || got.(interface{ String() string }).String() != "0" {
		t.Errorf("file_path has a client's path: %v", got)
	}
	cut := c.do(
		t,
		"POST",
		sources,
		strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello"),
		"multipart/form-data; boundary=x",
	)
	if cut.StatusCode != 400 {
		t.Errorf("a truncated request: %d %s", cut.StatusCode, cut.text)
	}
}

func TestSourceLifecycle(t *testing.T) {
	c := newTestClient(t)
	content := "# Guide\n\nPress the red button to stop the machine at once.\n"
	made := c.upload(t, "/api/agents/default/sources", "g\"u\u00efde.md", content, nil)
	id := at(made.json, "id").(string)
	for at(c.must(t, 200, "GET", "/api/agents/default/sources/"+id, ""), "status") == "processing" {
	}
	file := c.send(t, "GET", "/api/agents/default/sources/"+id+"/file", "")
	if file.text != content ||
		!strings.HasPrefix(file.Header.Get("Content-Disposition"), "attachment") ||
		file.Header.Get("Content-Type") != "text/markdown" {
		t.Errorf("the original is returned as %q %v", file.text, file.Header)
	}
	chunks := c.must(t, 200, "GET", "/api/agents/default/sources/"+id+"/chunks", "")
	if at(chunks, "chunks.0.content") != "Press the red button to stop the machine at once." &&
		!strings.Contains(at(chunks, "chunks.0.content").(string), "red button") {
		t.Errorf("chunks: %v", chunks)
	}
	found := c.must(t, 200, "GET", "/api/agents/default/sources/search?query=emergency+halt&limit=1", "")
	if at(found, "results.0.source_id") != id {
		t.Errorf("search: %v", found)
	}
	apiCase{
		"reindex",
		"POST",
		"/api/agents/default/sources/" + id + "/reindex",
		"",
		200,
		map[string]any{"status": "processing", "type": "file"},
	}.run(t, c)
	for at(c.must(t, 200, "GET", "/api/agents/default/sources/"+id, ""), "status") == "processing" {
	}
	apiCase{
		"refresh",
		"POST",
		"/api/agents/default/sources/" + id + "/refresh",
		"",
		200,
		map[string]any{"status": "updating"},
	}.run(t, c)
	apiCase{"delete", "DELETE", "/api/agents/default/sources/" + id, "", 200, map[string]any{"success": true}}.run(t, c)
	apiCase{"deleted", "GET", "/api/agents/default/sources/" + id + "/file", "", 404, code("NOT_FOUND")}.run(t, c)
	if left := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/sources/search?query=red+button",
		"",
	); len(left["results"].([]any)) != 0 {
		t.Errorf("a deleted source is found: %v", left)
	}
}

// TestChangeSources refreshes several sources, and deletes several, each in one request.
func TestChangeSources(t *testing.T) {
	c := newTestClient(t)
	const base = "/api/agents/default/sources"
	var ids []string
	for _, name := range []string{"one.md", "two.md", "three.md"} {
		id := at(c.upload(t, base, name, "# Text\n\nBread.\n", nil).json, "id").(string)
		c.waitIndexed(t, base+"/"+id)
		ids = append(ids, id)
	}
	change := func(what string, ids ...string) string {
		t.Helper()
		list, _ := json.Marshal(ids)
		return fmt.Sprint(c.must(t, 200, "POST", base+"/change", `{"ids":`+string(list)+`,`+what+`}`)["changed"])
	}
	if got, want := change(`"reindex":true`, ids[0], ids[1], "source-unknown"), fmt.Sprint(ids[:2]); got != want {
		t.Errorf("refreshed %s, want %s", got, want)
	}
	for _, id := range ids {
		c.waitIndexed(t, base+"/"+id)
	}
	if got, want :=
		change(`"delete":true`, ids[0], "source-unknown", ids[2]), fmt.Sprint([]string{ids[0], ids[2]}); got != want {
		t.Errorf("deleted %s, want %s", got, want)
	}
	if left := at(c.must(t, 200, "GET", base, ""), "meta.total"); fmt.Sprint(left) != "1" {
		t.Errorf("%v sources are left, want 1", left)
	}
	for _, body := range []string{
		`{"ids":[],"delete":true}`,
		`{"ids":["a"]}`,
		`{"ids":["a"],"delete":true,"reindex":true}`,
	} {
		apiCase{body, "POST", base + "/change", body, 400, code("VALIDATION_ERROR")}.run(t, c)
	}
}

func TestContactsRoundTrip(t *testing.T) {
	c := newTestClient(t)
	csv := "\xef\xbb\xbfName;E-Mail-Notes;email;PHONE;tags\r\nAda;likes tea;ada@example.com;+1 555 0100;\"vip, " +
		"math\"\r\n=cmd;x;bob@example.com;;\r\n;nameless;n@example.com;;\r\nEve;;not an address;;\r\n"
	a := c.upload(t, "/api/agents/default/contacts/import", "c.csv", csv, nil)
	for path, want := range map[string]string{"total": "4", "imported": "2", "updated": "0", "skipped": "0"} {
		if got := at(a.json, path); got == nil || got.(interface{ String() string }).String() != want {
			t.Errorf("import: %s is %v, want %s\n%s", path, got, want, a.text)
		}
	}
	if at(a.json, "errors.0.field") != "name" || at(a.json, "errors.1.field") != "email" {
		t.Errorf("import errors: %s", a.text)
	}
	export := c.send(t, "GET", "/api/agents/default/contacts/export?format=csv", "")
	if !strings.Contains(export.text, "'=cmd") || !strings.HasPrefix(export.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("export: %s", export.text)
	}
	before := c.send(t, "GET", "/api/agents/default/contacts/export?format=json", "")
	again := c.upload(t, "/api/agents/default/contacts/import", "c.csv", export.text, map[string]string{
		"on_duplicate": "update",
	})
	if got := at(again.json, "updated"); got == nil || got.(interface{ String() string }).String() != "2" {
		t.Errorf("import of an export: %s", again.text)
	}
	after := c.send(t, "GET", "/api/agents/default/contacts/export?format=json", "")
	strip := func(text string) string {
		var kept []string
		for part := range strings.SplitSeq(text, ",") {
			if !strings.Contains(part, "updated_at") {
				kept = append(kept, part)
			}
		}
		return strings.Join(kept, ",")
	}
	if strip(before.text) != strip(after.text) {
		t.Errorf("the round trip changes contacts:\n%s\n%s", before.text, after.text)
	}
	skip := c.upload(
		t,
		"/api/agents/default/contacts/import",
		"c.csv",
		"name,email\nOther,ada@example.com\n",
		map[string]string{"on_duplicate": "skip"},
	)
	if at(skip.json, "skipped").(interface{ String() string }).String() != "1" {
		t.Errorf("skip: %s", skip.text)
	}
	merged := c.upload(
		t,
		"/api/agents/default/contacts/import",
		"c.csv",
		"name,email,city\n,ADA@example.com,London\n",
		nil,
	)
	if at(merged.json, "updated").(interface{ String() string }).String() != "1" {
		t.Errorf("a row without a name updates by email: %s", merged.text)
	}
	ada := c.must(t, 200, "GET", "/api/agents/default/contacts/resolve?email=ada@example.com", "")
	apiCase{"metadata is merged", "GET", "/api/agents/default/contacts/" + at(ada, "contact.id").(string), "", 200,
		map[string]any{"name": "Ada", "metadata.city": "London", "metadata.E-Mail-Notes": "likes tea"}}.run(t, c)
	if bad := c.upload(t, "/api/agents/default/contacts/import", "c.csv", "name\nA\n", map[string]string{
		"on_duplicate": "explode",
	}); bad.StatusCode != 400 {
		t.Errorf("an unknown on_duplicate: %d", bad.StatusCode)
	}
}

// A leaked backup gives no credentials to those without a role on its original.
func TestCredentialsOfALeakedBackup(t *testing.T) {
	c := newProxiedServer(t, nil)
	ada, eve := c.as(t, "ada@example.com"), c.as(t, "eve@example.com")
	ada.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	ada.must(t, 200, "PUT", "/api/agents/bakery/settings", `{"openai_api_key":"sk-very-secret-value"}`)
	backup := ada.send(t, "POST", "/api/agents/bakery/backup", "")
	for _, tc := range []struct {
		who    *testClient
		name   string
		locked any
	}{{ada, "bakery-2", nil}, {eve, "bakery-3", "openai_api_key"}} {
		imported := tc.who.upload(t, "/api/agents/import", "bakery.db", backup.text, nil)
		if imported.StatusCode != 201 || at(imported.json, "name") != tc.name {
			t.Fatalf("%d %s", imported.StatusCode, imported.text)
		}
		apiCase{
			tc.name,
			"GET",
			"/api/agents/" + tc.name + "/settings",
			"",
			200,
			map[string]any{"locked_credentials.0": tc.locked},
		}.run(t, tc.who)
	}
	ada.must(t, 200, "DELETE", "/api/agents/bakery", "")
	again := eve.upload(t, "/api/agents/import", "bakery.db", backup.text, nil)
	apiCase{
		"the original was deleted",
		"GET",
		"/api/agents/" + at(again.json, "id").(string) + "/settings",
		"",
		200,
		map[string]any{"locked_credentials.0": "openai_api_key"},
	}.run(t, eve)
}

func TestBackupImportFork(t *testing.T) {
	c := newOwnClient(t)
	id := c.must(t, 201, "POST", "/api/agents", `{"name":"bakery","description":"bread"}`)["id"].(string)
	c.must(t, 201, "POST", "/api/agents/bakery/contacts", `{"name":"Ada"}`)
	c.must(t, 200, "PUT", "/api/agents/bakery/settings", `{"openai_api_key":"sk-very-secret-value"}`)
	backup := c.send(t, "POST", "/api/agents/bakery/backup", "")
	if backup.StatusCode != 200 ||
		!strings.HasPrefix(backup.text, "SQLite format 3\x00") ||
		strings.Contains(backup.text, "sk-very-secret-value") {
		t.Fatalf("backup: %d, %d bytes", backup.StatusCode, len(backup.text))
	}
	imported := c.upload(t, "/api/agents/import", "bakery.db", backup.text, nil)
	if imported.StatusCode != 201 ||
		at(imported.json, "name") != "bakery-2" ||
		at(imported.json, "status") != "paused" ||
		at(imported.json, "id") == id {
		t.Errorf("import next to the original: %d %s", imported.StatusCode, imported.text)
	}
	apiCase{
		"credentials are included",
		"GET",
		"/api/agents/bakery-2/settings",
		"",
		200,
		map[string]any{"configured_credentials.0": "openai_api_key", "locked_credentials.0": nil},
	}.run(t, c)
	apiCase{
		"fork",
		"POST",
		"/api/agents/bakery/fork",
		`{"name":"bakery-test"}`,
		201,
		map[string]any{"name": "bakery-test", "status": "paused", "description": "bread"},
	}.run(t, c)
	apiCase{
		"fork's contacts",
		"GET",
		"/api/agents/bakery-test/contacts",
		"",
		200,
		map[string]any{"meta.total": "1"},
	}.run(t, c)
	apiCase{
		"fork's credentials",
		"GET",
		"/api/agents/bakery-test/settings",
		"",
		200,
		map[string]any{"configured_credentials.0": "openai_api_key", "locked_credentials.0": nil},
	}.run(t, c)
	apiCase{
		"fork with a name that is taken",
		"POST",
		"/api/agents/bakery/fork",
		`{"name":"bakery-2"}`,
		409,
		code("AGENT_NAME_EXISTS"),
	}.run(t, c)
	apiCase{"fork without a name", "POST", "/api/agents/bakery/fork", `{}`, 400, invalid("name")}.run(t, c)
	c.must(t, 200, "DELETE", "/api/agents/bakery", "")
	back := c.upload(t, "/api/agents/import", "bakery.db", backup.text, nil)
	if at(back.json, "id") != id || at(back.json, "name") != "bakery" {
		t.Errorf("import after the original was deleted keeps id and name: %s", back.text)
	}
	for name, content := range map[string]string{
		"text":          "hello",
		"nothing":       "",
		"half":          backup.text[:len(backup.text)/2],
		"a header only": backup.text[:100],
	} {
		if bad := c.upload(t, "/api/agents/import", "x.db", content, nil); bad.StatusCode != 400 ||
			at(bad.json, "error.details.field") != "file" {
			t.Errorf("import of %s: %d %s", name, bad.StatusCode, bad.text)
		}
	}
	logs := c.must(t, 200, "GET", "/api/agents/bakery-2/logs?source=audit&search=backup", "")
	if logs["logs"] == nil {
		t.Error("no list of logs")
	}
}

// TestSecretsAreNotReturned looks for a credential in every response that could contain
// it.
func TestSecretsAreNotReturned(t *testing.T) {
	c := newTestClient(t)
	secret := "sk-0123456789abcdefSECRET"
	put := c.send(t, "PUT", "/api/agents/default/settings", `{"openai_api_key":"`+secret+`","llm_provider":"openai"}`)
	wrong := c.send(t, "PUT", "/api/agents/default/settings", `{"openai_api_key":["`+secret+`"]}`)
	long := c.send(t, "PUT", "/api/agents/default/settings", `{"openai_api_key":"`+strings.Repeat(secret, 1000)+`"}`)
	for name, a := range map[string]answer{
		"put":        put,
		"wrong type": wrong,
		"too long":   long,
		"get":        c.send(t, "GET", "/api/agents/default/settings", ""),
		"agent":      c.send(t, "GET", "/api/agents/default", ""),
		"logs":       c.send(t, "GET", "/api/agents/default/logs", ""),
		"schema":     c.send(t, "GET", "/api/agents/default/sql/schema", ""),
	} {
		if strings.Contains(a.text, secret) {
			t.Errorf("%s shows the credential: %s", name, a.text)
		}
	}
	if wrong.StatusCode != 400 || long.StatusCode != 400 {
		t.Errorf("bad credentials: %d, %d", wrong.StatusCode, long.StatusCode)
	}
	apiCase{"null removes", "PUT", "/api/agents/default/settings", `{"openai_api_key":null,"llm_provider":null}`, 200,
		map[string]any{"llm_provider": "", "configured_credentials.0": nil}}.run(t, c)
}

func TestMessagesByCursor(t *testing.T) {
	c := newTestClient(t)
	id := c.must(t, 201, "POST", "/api/agents/default/conversations", `{"metadata":{"topic":"bread"}}`)["id"].(string)
	base := "/api/agents/default/conversations/" + id
	for _, role := range []string{"user", "assistant", "user", "system", "user"} {
		c.must(t, 201, "POST", base+"/messages", `{"role":"`+role+`","content":"from `+role+`","metadata":{"n":1}}`)
	}
	apiCase{
		"a person's answer mutes",
		"GET", base, "", 200,
		map[string]any{"muted": true, "messages.0.role": "user", "messages.1.metadata.author": "human"},
	}.run(t, c)
	apiCase{"unmute", "PUT", base, `{"muted":false}`, 200, map[string]any{"muted": false}}.run(t, c)
	var seen []string
	for _, order := range []string{"asc", "desc"} {
		for cursor := ""; ; {
			page := c.must(t, 200, "GET", base+"/messages?limit=2&order="+order+"&cursor="+cursor, "")
			for _, m := range page["messages"].([]any) {
				seen = append(seen, at(m, "id").(interface{ String() string }).String())
			}
			if at(page, "meta.has_more") != true {
				break
			}
			cursor = at(page, "meta.next_cursor").(string)
		}
	}
	if got := strings.Join(seen, ""); len(seen) != 10 || got[:5] != "12345" || got[5:] != "54321" {
		t.Errorf("messages by cursor: %v", seen)
	}
	apiCase{"delete", "DELETE", base, "", 204, nil}.run(t, c)
	apiCase{"deleted", "GET", base + "/messages", "", 404, code("NOT_FOUND")}.run(t, c)
}
