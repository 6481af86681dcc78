package httpapi

import "testing"

// TestNamesOfAdmins checks that an admin's entry has the name that the identity proxy has
// for the person, once the person has opened the agent.
func TestNamesOfAdmins(t *testing.T) {
	c := newProxiedServer(t, nil)
	owner := c.as(t, "owner@example.com")
	owner.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	owner.must(t, 201, "POST", "/api/agents/bakery/admins", `{"email":"viewer@example.com","role":"viewer"}`)
	check := func(want ...string) {
		t.Helper()
		list := owner.must(t, 200, "GET", "/api/agents/bakery/admins", "")
		for i, name := range want {
			if got := at(list, "admins."+string(rune('0'+i))+".name"); got != name {
				t.Errorf("the name of admin %d is %q, want %q", i, got, name)
			}
		}
	}
	check("Someone", "")
	c.as(t, "viewer@example.com").must(t, 200, "GET", "/api/agents/bakery", "")
	check("Someone", "Someone")
}
