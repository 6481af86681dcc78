package httpapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// damagedFolder returns a data folder with the agents default and bakery, whose file is
// damaged, and a damaged file nosuch.db that was never an agent.
func damagedFolder(t *testing.T) string {
	t.Helper()
	path := t.TempDir()
	f, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "bakery"}, "owner@example.com")
	if err != nil {
		t.Fatal(err)
	}
	admins := map[*store.DB]agent.Admin{
		db:          {Email: "viewer@example.com", Role: agent.RoleViewer},
		f.Default(): {Email: "operator@example.com", Role: agent.RoleOwner},
	}
	for db, a := range admins {
		if _, err := db.CreateAdmin(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{db.ID(), "nosuch"} {
		if err := os.WriteFile(
			filepath.Join(path, "agents", name+".db"),
			[]byte(strings.Repeat("damaged ", 4096)),
			0o600,
		); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// A damaged agent is deleted by its owner, whom the catalog remembers, or by the owner of
// the default agent if nobody is remembered; it answers nothing else.
func TestDeleteDamagedAgent(t *testing.T) {
	path := damagedFolder(t)
	entries, err := filepath.Glob(filepath.Join(path, "agents", "agent-*.db"))
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	bakery := "/api/agents/" + strings.TrimSuffix(filepath.Base(entries[0]), ".db")
	proxy := newIdentityProxy(t)
	c, server := openFolderWith(t, path, func(o *Options) { o.Verifier = proxy.Verifier })
	s := &proxiedServer{c, server, proxy}
	for _, tc := range []struct {
		who, method, path string
		status            int
		code              agent.Code
	}{
		{"owner", "GET", bakery, 500, agent.CodeAgentDamaged},
		{"viewer", "DELETE", bakery, 403, agent.CodeForbidden},
		{"operator", "DELETE", bakery, 403, agent.CodeForbidden},
		{"owner", "DELETE", bakery, 200, ""},
		{"owner", "DELETE", "/api/agents/nosuch", 403, agent.CodeForbidden},
		{"operator", "GET", "/api/agents/nosuch", 500, agent.CodeAgentDamaged},
		{"operator", "DELETE", "/api/agents/nosuch", 200, ""},
		{"operator", "DELETE", "/api/agents/nosuch", 404, agent.CodeNotFound},
		{"operator", "GET", "/api/agents", 200, ""},
	} {
		a := s.as(t, tc.who+"@example.com").send(t, tc.method, tc.path, "")
		if a.StatusCode != tc.status || tc.code != "" && at(a.json, "error.code") != string(tc.code) {
			t.Errorf("%s: %s %s: %d %s", tc.who, tc.method, tc.path, a.StatusCode, a.text)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(path, "agents", "*.db")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// Without access control everybody may delete a damaged agent.
func TestDeleteDamagedAgentOfAnOpenServer(t *testing.T) {
	c, _ := openFolderWith(t, damagedFolder(t), func(*Options) {})
	c.must(t, 200, "DELETE", "/api/agents/nosuch", "")
}

// A damaged file is a 400 with the reason.
func TestImportOfADamagedFile(t *testing.T) {
	c, _ := openWith(t, func(*Options) {})
	c.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	backup := c.send(t, "POST", "/api/agents/bakery/backup", "")
	bad := []byte(backup.text)
	for i := 4096; i < 8192; i++ {
		bad[i] = 0
	}
	a := c.upload(t, "/api/agents/import", "bakery.db", string(bad), nil)
	if a.StatusCode != 400 ||
		at(a.json, "error.code") != "INVALID_FILE" ||
		!strings.Contains(a.text, "file is damaged: ") {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if n := strings.Count(c.send(t, "GET", "/api/agents", "").text, `"id":`); n != 2 {
		t.Errorf("%d agents", n)
	}
}
