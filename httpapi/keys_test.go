package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// keyed is a client with an API key of its own.
type keyed struct {
	*testClient
	id string
}

// makeKey creates a key through the API.
func (c *proxiedServer) makeKey(t *testing.T, by *testClient, name string, role agent.Role, agents ...string) keyed {
	t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "role": role, "agents": agents})
	if err != nil {
		t.Fatal(err)
	}
	made := by.must(t, 201, "POST", "/api/keys", string(body))
	return keyed{c.with("X-API-Key", made["key"].(string)), made["id"].(string)}
}

// listed returns the names of the keys that a client sees, in order.
func listed(t *testing.T, by *testClient) string {
	t.Helper()
	var names []string
	for _, k := range by.must(t, 200, "GET", "/api/keys?limit=200", "")["keys"].([]any) {
		names = append(names, at(k, "name").(string))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestKeysManageWeakerKeys lists and revokes keys with keys of every role, created by a
// person and on the command line.
func TestKeysManageWeakerKeys(t *testing.T) {
	c := newProxiedServer(t, nil)
	ada, eve := c.as(t, "ada@example.com"), c.as(t, "eve@example.com")
	for _, name := range []string{"bakery", "shop"} {
		ada.must(t, 201, "POST", "/api/agents", `{"name":"`+name+`"}`)
	}
	eve.must(t, 201, "POST", "/api/agents", `{"name":"cellar"}`)
	keys := map[string]keyed{}
	for _, k := range []struct {
		by     *testClient
		name   string
		role   agent.Role
		agents []string
	}{
		{ada, "owner-all", agent.RoleOwner, []string{"*"}},
		{ada, "owner-bakery", agent.RoleOwner, []string{"bakery"}},
		{ada, "admin-both", agent.RoleAdmin, []string{"bakery", "shop"}},
		{ada, "admin-shop", agent.RoleAdmin, []string{"shop"}},
		{ada, "viewer-all", agent.RoleViewer, []string{"*"}},
		{ada, "viewer-bakery", agent.RoleViewer, []string{"bakery"}},
		{eve, "eve-all", agent.RoleOwner, []string{"*"}},
	} {
		keys[k.name] = c.makeKey(t, k.by, k.name, k.role, k.agents...)
	}
	for _, role := range []agent.Role{agent.RoleOwner, agent.RoleAdmin, agent.RoleViewer} {
		k, secret, err := c.folder.CreateKey(t.Context(), agent.Key{
			Name:   "line-" + string(role),
			Role:   role,
			Agents: []string{"*"},
		})
		if err != nil {
			t.Fatal(err)
		}
		keys[k.Name] = keyed{c.with("X-API-Key", secret), k.ID}
	}
	tried := 0
	for name, sees := range map[string]string{
		"owner-all":     "admin-both admin-shop owner-all owner-bakery viewer-all viewer-bakery",
		"owner-bakery":  "owner-bakery viewer-bakery",
		"admin-both":    "admin-both admin-shop viewer-bakery",
		"admin-shop":    "admin-shop",
		"viewer-all":    "viewer-all viewer-bakery",
		"viewer-bakery": "viewer-bakery",
		"eve-all":       "eve-all",
		"line-owner": "admin-both admin-shop eve-all line-admin line-owner line-viewer owner-all " +
			"owner-bakery viewer-all viewer-bakery",
		"line-admin":  "line-admin line-viewer",
		"line-viewer": "line-viewer",
	} {
		by := keys[name]
		if got := listed(t, by.testClient); got != sees {
			t.Errorf("%s sees %s, want %s", name, got, sees)
		}
		for other, k := range keys {
			if slices.Contains(strings.Fields(sees), other) {
				continue
			}
			tried++
			if a := by.send(t, "DELETE", "/api/keys/"+k.id, ""); a.StatusCode != http.StatusNotFound {
				t.Errorf("%s revokes %s: %d %s", name, other, a.StatusCode, a.text)
			}
		}
	}
	t.Logf("%d revocations of stronger keys tried", tried)
	keys["admin-both"].must(t, 204, "DELETE", "/api/keys/"+keys["viewer-bakery"].id, "")
	keys["admin-shop"].must(t, 204, "DELETE", "/api/keys/"+keys["admin-shop"].id, "")
	if got := listed(t, ada); got != "admin-both owner-all owner-bakery viewer-all" {
		t.Errorf("ada sees %s", got)
	}
}

// TestKeysCreatedByKeys creates keys with keys: none has a higher role, more agents or a
// longer life than the key that created it.
func TestKeysCreatedByKeys(t *testing.T) {
	c := newProxiedServer(t, nil)
	ada := c.as(t, "ada@example.com")
	for _, name := range []string{"bakery", "shop"} {
		ada.must(t, 201, "POST", "/api/agents", `{"name":"`+name+`"}`)
	}
	soon, later :=
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339), time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339)
	made := ada.must(
		t, 201, "POST", "/api/keys",
		`{"name":"p","role":"admin","agents":["bakery"],"expires_at":"`+soon+`"}`,
	)
	parent := c.with("X-API-Key", made["key"].(string))
	for _, tc := range []struct{ name, body, field string }{
		{"stronger", `{"name":"k","role":"owner","agents":["bakery"]}`, "role"},
		{"wider", `{"name":"k","role":"viewer","agents":["*"]}`, ""},
		{"of another agent", `{"name":"k","role":"viewer","agents":["shop"]}`, ""},
		{"of the default agent", `{"name":"k","role":"viewer","agents":["default"]}`, ""},
		{"of an additional agent", `{"name":"k","role":"viewer","agents":["bakery","shop"]}`, ""},
		{
			"that expires later",
			`{"name":"k","role":"viewer","agents":["bakery"],"expires_at":"` + later + `"}`,
			"expires_at",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := parent.send(t, "POST", "/api/keys", tc.body)
			if a.StatusCode != http.StatusForbidden || tc.field != "" && at(a.json, "error.details.field") != tc.field {
				t.Errorf("%d %s", a.StatusCode, a.text)
			}
		})
	}
	child := parent.must(t, 201, "POST", "/api/keys", `{"name":"c","role":"admin","agents":["bakery"]}`)
	if child["expires_at"] != made["expires_at"] || child["parent_id"] != made["id"] {
		t.Errorf("the key that a key created: %v", child)
	}
	t.Run("agents of a key belong to its creator", func(t *testing.T) {
		childClient := c.with("X-API-Key", child["key"].(string))
		cafe := childClient.must(t, 201, "POST", "/api/agents", `{"name":"cafe"}`)
		if cafe["owner_email"] != "ada@example.com" {
			t.Errorf("owner is %v", cafe["owner_email"])
		}
		ada.must(t, 200, "GET", "/api/agents/cafe/admins", "")
		childClient.must(t, 200, "GET", "/api/agents/cafe", "")
		parent.must(t, 200, "GET", "/api/agents/cafe", "")
		if got := listed(t, parent); got != "c p" {
			t.Errorf("the creator sees %s", got)
		}
	})
	ada.must(t, 204, "DELETE", "/api/keys/"+made["id"].(string), "")
	if a := c.with("X-API-Key", child["key"].(string)).send(
		t, "GET", "/api/agents/bakery", "",
	); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("a key outlives the one that created it: %d %s", a.StatusCode, a.text)
	}
}

// TestKeysOfPeopleWithoutRole creates keys as people who have only the role that
// everybody has on the default agent, or a low one.
func TestKeysOfPeopleWithoutRole(t *testing.T) {
	c := newProxiedServer(t, nil) // everybody is admin of the default agent
	if _, err := c.db().CreateAdmin(t.Context(), agent.Admin{
		Email: "vera@example.com",
		Role:  agent.RoleViewer,
	}); err != nil {
		t.Fatal(err)
	}
	stranger, vera := c.as(t, "who@example.com"), c.as(t, "vera@example.com")
	for _, agents := range []string{`["default"]`, `["*"]`} {
		for _, role := range agent.Roles {
			body := `{"name":"k","role":"` + string(role) + `","agents":` + agents + `}`
			if a := stranger.send(t, "POST", "/api/keys", body); a.StatusCode != http.StatusForbidden {
				t.Errorf("a person without a role creates %s: %d", body, a.StatusCode)
			}
			want := http.StatusForbidden
			if role == agent.RoleViewer {
				want = http.StatusCreated
			}
			if a := vera.send(t, "POST", "/api/keys", body); a.StatusCode != want {
				t.Errorf("a viewer creates %s: %d", body, a.StatusCode)
			}
		}
	}
}
