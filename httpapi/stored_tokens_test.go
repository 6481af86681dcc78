package httpapi

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// mustStoreNoTokens looks for tokens in every column of every table, hidden ones
// included, and in all other files of the data folder.
func (ts *testServer) mustStoreNoTokens(t *testing.T, secrets map[string]string) {
	t.Helper()
	stored := storedTexts(t, ts.folder.Path())
	if len(stored) < 100 {
		t.Errorf("only %d columns and files were read", len(stored))
	}
	for where, text := range stored {
		ts.mustHideTokens(t, where, text, secrets)
		for _, token := range anyURLToken.FindAllString(text, -1) {
			t.Errorf("%s has %s", where, token)
		}
	}
}

// anyURLToken is a token in a URL that nothing has masked.
var anyURLToken = regexp.MustCompile(`[?&](?:token|ticket|state|code)=[\w.-]{16,}`)

// storedTexts returns the content of a data folder: of each column of a database, and of
// each other file.
func storedTexts(t *testing.T, folder string) map[string]string {
	t.Helper()
	stored := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		stored[name] = string(raw)
		if !strings.HasPrefix(stored[name], "SQLite format 3") {
			return nil
		}
		return storedColumns(name, stored)
	})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// storedColumns adds the columns of a database. A token in a file's bytes may be split
// between pages, so it is not found there.
func storedColumns(name string, stored map[string]string) error {
	db, err := sqlite.Open(sqlite.Source{Path: name, Mode: sqlite.ReadOnly})
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query(`SELECT l.name, c.name FROM pragma_table_list l, pragma_table_info(l.name) c
		WHERE l.schema = 'main' AND l.type IN ('table','shadow') AND l.name NOT LIKE 'sqlite%'`)
	if err != nil {
		return err
	}
	var columns [][2]string
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			return err
		}
		columns = append(columns, c)
	}
	rows.Close()
	for _, c := range columns {
		text, err := storedColumn(db, c[0], c[1])
		if err != nil {
			return fmt.Errorf("%s.%s: %w", c[0], c[1], err)
		}
		stored[filepath.Base(name)+" "+c[0]+"."+c[1]] = text
	}
	return nil
}

func storedColumn(db *sqlite.Conn, table, column string) (string, error) {
	rows, err := db.Query(
		`SELECT CAST("` + column + `" AS BLOB) FROM "` + table + `" WHERE "` + column + `" IS NOT NULL`,
	)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var text strings.Builder
	for rows.Next() {
		var value []byte
		if err := rows.Scan(&value); err != nil {
			return "", err
		}
		text.Write(value)
		text.WriteByte('\n')
	}
	return text.String(), rows.Err()
}

var (
	randomRun = regexp.MustCompile(`[A-Za-z0-9_-]{22,}(?:\.[\w-]+)*`)
	onlyID    = regexp.MustCompile(`^[a-z]+-[0-9a-z]{20}$`)
)

// randomTexts returns what looks like a token in a response.
func randomTexts(response any) (found []string) {
	raw, _ := json.Marshal(response)
	for _, run := range randomRun.FindAllString(string(raw), -1) {
		if !onlyID.MatchString(run) && strings.ContainsAny(run, "0123456789") {
			found = append(found, run)
		}
	}
	return found
}

// visit sends a message with a file as a visitor of a widget.
func (ts *testServer) visit(t *testing.T, keep func(name string, value any) string) {
	t.Helper()
	_, widget, secret := ts.createWidget(t, shopWidget)
	keep("widget's own", secret)
	visitor := ts.with("Origin", shopOrigin)
	ticket := keep("ticket", visitor.must(t, 200, "POST", widget+"/ticket", "")["ticket"])
	body := `{"ticket":"` + ticket + `","origin":"` + shopOrigin + `"}`
	token := keep("visitor", visitor.must(t, 200, "POST", widget+"/session", body)["token"])
	visitor = ts.with("Authorization", "Bearer "+token)
	sent := visitor.sendFiles(t, widget+"/messages", "1", "Look", "a.png", smallPNG)
	if sent.StatusCode >= 300 {
		t.Fatalf("a visitor's message: %d %s", sent.StatusCode, sent.text)
	}
}

// beginLogin begins a login as a person does, up to the provider's page.
func (ts *testServer) beginLogin(t *testing.T, at string, keep func(name string, value any) string) {
	t.Helper()
	begun := ts.must(t, 200, "POST", at+"/connect", "")
	u, err := url.Parse(fmt.Sprint(begun["url"]))
	if err != nil {
		t.Fatal(err)
	}
	keep("login at "+at, path.Ext(u.Path))
	a := ts.send(t, "POST", u.Path, "")
	if a.StatusCode != 303 || len(a.Cookies()) != 1 {
		t.Fatalf("%s: %d %s", u, a.StatusCode, a.text)
	}
	keep("cookie at "+at, a.Cookies()[0].Value)
	location, err := url.Parse(a.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	keep("state at "+at, path.Ext(location.Query().Get("state")))
}

// TestModelsSeeReferences checks that a link which somebody writes to a model does not
// reach its provider.
func TestModelsSeeReferences(t *testing.T) {
	c := newTestClient(t)
	m := newModelServer(t, func(int, map[string]any) string { return `["Answer"]` })
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_base_url":"`+m.URL+`/v1"}`,
	)
	takeover := agent.Takeover{
		ID:        agent.NewID(agent.KindTakeover),
		SessionID: agent.NewID(agent.KindSession),
		ExpiresAt: agent.At(time.Now().Add(time.Minute)),
	}
	link := c.folder.Links().Takeover(&takeover)
	for path, body := range map[string]string{
		"/api/agents/default/chat": `{"message":"Who opens ` + link + `?"}`,
		"/api/agents/default/v1/chat/completions": `{"model":"default","messages":[{"role":"us` +
			`er","content":"Who opens ` +
			link + `?"}]}`,
	} {
		c.must(t, 200, "POST", path, body)
		if asked := fmt.Sprint(m.Requests); strings.Contains(asked, "?token=") ||
			!strings.Contains(asked, "Who opens satchel-link:"+takeover.ID+"?") {
			t.Errorf("%s asks the model %s", path, asked)
		}
		m.Requests = nil
	}
}
