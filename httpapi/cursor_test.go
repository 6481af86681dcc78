package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestListsByCursor follows meta.cursor to the end of a list that is read from the file
// and of one that is kept in memory.
func TestListsByCursor(t *testing.T) {
	c := newOwnClient(t)
	for i := range 5 {
		c.must(t, 201, "POST", "/api/agents", fmt.Sprintf(`{"name":"agent-%d"}`, i))
		c.must(t, 201, "POST", "/api/agents/default/contacts", fmt.Sprintf(`{"name":"Contact %d"}`, i%3))
	}
	for path, want := range map[string]string{
		"/api/agents/default/contacts?limit=2&sort=name": "Contact 0,Contact 0,Contact 1,Contact 1,Contact 2",
		"/api/agents?limit=2&sort=name":                  "agent-0,agent-1,agent-2,agent-3,agent-4",
	} {
		var names []string
		cursor := ""
		for range 5 {
			page := c.must(t, 200, "GET", path+"&cursor="+cursor, "")
			for _, list := range []string{"contacts", "agents"} {
				records, _ := page[list].([]any)
				for i := range records {
					if name := fmt.Sprint(at(
						page,
						fmt.Sprintf("%s.%d.name", list, i),
					)); strings.HasPrefix(strings.ToLower(name), list[:5]) {
						names = append(names, name)
					}
				}
			}
			next, more := at(page, "meta.cursor").(string)
			if cursor = next; !more {
				break
			}
		}
		if got := strings.Join(names, ","); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, query := range []string{
		"cursor=x",
		"cursor=e30",
		"cursor=offset--1",
		"cursor=offset-2&offset=1",
		"cursor=W10",
		"sort=email&cursor=eyJvcmRlciI6Im5hbWUsaWQiLCJ2YWx1ZXMiOlsiYSIsImIiXX0",
	} {
		a := c.send(t, "GET", "/api/agents/default/contacts?"+query, "")
		if a.StatusCode != 400 || !strings.Contains(a.text, `"field"`) {
			t.Errorf("%s: %d %s", query, a.StatusCode, a.text)
		}
	}
}
