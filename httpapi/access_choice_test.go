package httpapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"satchel/agent"
)

// closing opens a server without access control. Its log is returned.
func closing(t *testing.T, change func(*Options)) (*testClient, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	c, _ := openWith(t, func(o *Options) {
		o.DefaultRole, o.Log = agent.RoleViewer, slog.New(slog.NewTextHandler(&log, nil))
		if change != nil {
			change(o)
		}
	})
	return c, &log
}

// numberOf returns a number of a response, -1 for anything else.
func numberOf(v any) int64 {
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return i
		}
	}
	return -1
}

const firstKey = `{"name":"first","role":"owner","agents":["*"]`

// The first key closes the server. Whether strangers may then read the default agent is
// chosen with it, at once or later, and until then said in the answer, GET /access, the
// console's data and the log.
func TestFirstKeyChoosesForStrangers(t *testing.T) {
	for _, tc := range []struct {
		name, more, role, by string
		decided              bool
		read                 int
	}{
		{"no choice", "", "viewer", "rule", false, 200},
		{"null", `,"default_role":null`, "viewer", "rule", false, 200},
		{"yes", `,"default_role":"viewer"`, "viewer", "choice", true, 200},
		{"no", `,"default_role":"none"`, "none", "choice", true, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, log := closing(t, nil)
			open := c.must(t, 200, "GET", "/api/access", "")
			if open["mode"] != "open" ||
				open["decided"] != false ||
				numberOf(open["keys"]) != 0 ||
				numberOf(open["people"]) != 0 ||
				open["warning"] != nil {
				t.Errorf("before: %v", open)
			}
			made := c.must(t, 201, "POST", "/api/keys", firstKey+tc.more+"}")
			owner := c.with("X-API-Key", made["key"].(string))
			access := owner.must(t, 200, "GET", "/api/access", "")
			for name, got := range map[string]any{"answer": made["access"], "access": access} {
				if at(got, "mode") != "closed" ||
					at(got, "default_role") != tc.role ||
					at(got, "default_role_by") != tc.by ||
					at(got, "decided") != tc.decided ||
					numberOf(at(got, "keys")) != 1 ||
					(at(got, "warning") == nil) != tc.decided {
					t.Errorf("%s: %v", name, got)
				}
			}
			for _, path := range []string{"/api/console", "/api/version"} {
				if got := c.must(t, 200, "GET", path, ""); got["default_role"] != tc.role {
					t.Errorf("%s: %v", path, got)
				}
			}
			if got := c.must(t, 200, "GET", "/api/console", ""); got["default_role_decided"] != tc.decided {
				t.Errorf("console: %v", got)
			}
			if warned := strings.Contains(log.String(), "no one has decided"); warned == tc.decided {
				t.Errorf("log: %s", log)
			}
			apiCase{
				"a stranger reads messages",
				"POST",
				"/api/agents/default/sql/execute",
				`{"query":"SELECT content FROM messages"}`,
				tc.read,
				nil,
			}.run(t, c)
		})
	}
}

func TestChooseAccess(t *testing.T) {
	c, _ := closing(t, nil)
	owner := c.with("X-API-Key", c.must(t, 201, "POST", "/api/keys", firstKey+"}")["key"].(string))
	admin := c.with(
		"X-API-Key",
		owner.must(t, 201, "POST", "/api/keys", `{"name":"a","role":"admin","agents":["*"]}`)["key"].(string),
	)
	for _, tc := range []struct {
		who *testClient
		apiCase
	}{
		{c, apiCase{"a stranger reads it", "GET", "/api/access", "", 401, code("UNAUTHORIZED")}},
		{
			c,
			apiCase{"a stranger chooses", "PUT", "/api/access", `{"default_role":"viewer"}`, 401, code("UNAUTHORIZED")},
		},
		{admin, apiCase{"an admin chooses", "PUT", "/api/access", `{"default_role":"viewer"}`, 403, code("FORBIDDEN")}},
		{
			admin,
			apiCase{
				"an admin chooses with a key",
				"POST",
				"/api/keys",
				`{"name":"x","role":"viewer","agents":["*"],"default_role":"none"}`,
				403,
				code("FORBIDDEN"),
			},
		},
		{
			owner,
			apiCase{"nothing", "PUT", "/api/access", `{}`, 400, map[string]any{"error.details.field": "default_role"}},
		},
		{
			owner,
			apiCase{
				"more than reading",
				"PUT",
				"/api/access",
				`{"default_role":"admin"}`,
				400,
				map[string]any{"error.details.field": "default_role"},
			},
		},
		{
			owner,
			apiCase{
				"a wrong type", "PUT", "/api/access", `{"default_role":true}`, 400,
				map[string]any{"error.details.field": "default_role"},
			},
		},
		{
			owner,
			apiCase{
				"more than reading, with a key",
				"POST",
				"/api/keys",
				firstKey + `,"default_role":"owner"}`,
				400,
				map[string]any{"error.details.field": "default_role"},
			},
		},
		{
			owner,
			apiCase{
				"no",
				"PUT",
				"/api/access",
				`{"default_role":"none"}`,
				200,
				map[string]any{"decided": true, "default_role": "none", "default_role_by": "choice"},
			},
		},
		{c, apiCase{"a stranger after no", "GET", "/api/agents/default/contacts", "", 403, nil}},
		{
			owner,
			apiCase{
				"yes",
				"PUT",
				"/api/access",
				`{"default_role":"viewer"}`,
				200,
				map[string]any{"default_role": "viewer"},
			},
		},
		{c, apiCase{"a stranger after yes", "GET", "/api/agents/default/contacts", "", 200, nil}},
		{
			owner,
			apiCase{
				"null", "PUT", "/api/access", `{"default_role":null}`, 200,
				map[string]any{"decided": false, "default_role_by": "rule"},
			},
		},
	} {
		tc.run(t, tc.who)
	}
}

// The operator's setting decides before any choice.
func TestSettingDecidesForStrangers(t *testing.T) {
	c, _ := closing(t, func(o *Options) { o.DefaultRole, o.DefaultRoleSet = agent.RoleNone, true })
	apiCase{
		"a key that chooses",
		"POST",
		"/api/keys",
		firstKey + `,"default_role":"viewer"}`,
		409,
		code("CONFLICT"),
	}.run(t, c)
	made := c.must(t, 201, "POST", "/api/keys", firstKey+"}")
	if at(made, "access.default_role_by") != "setting" || at(made, "access.decided") != true {
		t.Errorf("%v", made)
	}
	owner := c.with("X-API-Key", made["key"].(string))
	apiCase{"a choice", "PUT", "/api/access", `{"default_role":"viewer"}`, 409, code("CONFLICT")}.run(t, owner)
	apiCase{"a stranger", "GET", "/api/agents/default/contacts", "", 403, nil}.run(t, c)
}
