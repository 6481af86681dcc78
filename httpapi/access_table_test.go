package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/httpapi/rest"
)

// ownRoleOnly are the routes, with the role that they need, for which the role that
// everybody has on the default agent does not count.
var ownRoleOnly = map[string]agent.Role{
	"POST /api/agents/:id/backup":              agent.RoleAdmin,
	"POST /api/agents/:id/fork":                agent.RoleAdmin,
	"GET /api/agents/:id/contacts/export":      agent.RoleViewer,
	"GET /api/agents/:id/tables/:table/export": agent.RoleViewer,
	"GET /api/agents/:id/admins":               agent.RoleViewer,
	"POST /api/agents/:id/admins":              agent.RoleOwner,
	"DELETE /api/agents/:id/admins/:adminId":   agent.RoleOwner,
	"DELETE /api/agents/:id":                   agent.RoleOwner,
}

// caller is a client with its own role on an agent.
type caller struct {
	name   string
	client *testClient
	own    agent.Role
	known  bool
}

// callersOf returns people and keys with different roles on an agent.
func (c *proxiedServer) callersOf(t *testing.T, id string) []caller {
	t.Helper()
	db, err := c.folder.Agent(id)
	if err != nil {
		t.Fatal(err)
	}
	callers := []caller{
		{"stranger", c.testClient, agent.RoleNone, false},
		{"identity without role", c.as(t, "someone@example.com"), agent.RoleNone, true},
		{"viewer key", c.withKey(t, agent.RoleViewer, id), agent.RoleViewer, true},
		{"admin key", c.withKey(t, agent.RoleAdmin, "*"), agent.RoleAdmin, true},
		{"owner key of another agent", c.withKey(t, agent.RoleOwner, "agent-elsewhere"), agent.RoleNone, true},
	}
	for _, role := range agent.Roles {
		email := string(role) + "@example.com"
		if _, err := db.CreateAdmin(t.Context(), agent.Admin{Email: email, Role: role}); err != nil {
			t.Fatal(err)
		}
		callers = append(callers, caller{string(role), c.as(t, email), role, true})
	}
	owner := c.as(t, "owner@example.com")
	for _, role := range agent.Roles {
		made := owner.must(t, 201, "POST", "/api/keys", `{"name":"k","role":"`+string(role)+`","agents":["`+id+`"]}`)
		callers = append(callers, caller{
			string(role) + " key of the owner",
			c.with("X-API-Key", made["key"].(string)),
			role,
			true,
		})
	}
	return callers
}

// allowedRole returns the role that the caller has on the agent for a route.
func (who caller) allowedRole(line, id string, defaultRole agent.Role) agent.Role {
	_, ownOnly := ownRoleOnly[line]
	key := who.client.header.Get("X-API-Key") != ""
	if ownOnly || key || id != agent.DefaultID || who.own.Covers(defaultRole) {
		return who.own
	}
	return defaultRole
}

// TestEveryRouteForEverybody calls every route as every caller, on the default agent and
// on another one, under each role that strangers can have.
func TestEveryRouteForEverybody(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	for _, defaultRole := range []agent.Role{agent.RoleNone, agent.RoleViewer, agent.RoleAdmin} {
		t.Run("default role "+string(defaultRole), func(t *testing.T) {
			c := newProxiedServer(t, func(o *Options) { o.DefaultRole = defaultRole })
			db, err := c.folder.CreateAgent(t.Context(), agent.Agent{Name: "bakery"}, "")
			if err != nil {
				t.Fatal(err)
			}
			tried := 0
			for _, id := range []string{agent.DefaultID, db.ID()} {
				for _, who := range c.callersOf(t, id) {
					for key, r := range c.server.routes {
						tried++
						c.checkRoute(t, key.method+" "+key.path, r, who, id)
					}
				}
			}
			t.Logf("%d calls", tried)
		})
	}
}

// checkRoute calls one route, with a body that no route accepts, so that nothing changes.
func (c *proxiedServer) checkRoute(t *testing.T, line string, r *rest.Route, who caller, id string) {
	t.Helper()
	method, path, _ := strings.Cut(line, " ")
	got := who.client.do(
		t,
		method,
		strings.NewReplacer(":id", id, ":", "").Replace(path),
		strings.NewReader("{"),
		"text/nonsense",
	)
	refused := got.StatusCode == http.StatusForbidden || got.StatusCode == http.StatusUnauthorized
	want := r.Access == rest.Identified && !who.known
	if need := r.Access.Role(); need != agent.RoleNone {
		if own, ownOnly := ownRoleOnly[line]; ownOnly {
			need = own
		}
		want = !who.allowedRole(line, id, c.server.options.DefaultRole).Covers(need)
	}
	if refused != want {
		t.Errorf("%s on %s as %s: %d, refused should be %v\n%s", line, id, who.name, got.StatusCode, want, got.text)
	}
}
