package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// OperationID returns the operation id of a route. It is derived from method and path,
// which never change, and not from names in the code: listContacts, getContact,
// createContact, reindexSource, exportContacts.
func (a *API) OperationID(route *Route) string {
	if id, ok := a.OperationIDs[route.Method+" "+route.Path]; ok {
		return id
	}
	parts := strings.Split(strings.Trim(route.Path, "/"), "/")
	last := parts[len(parts)-1]
	before := func(n int) string {
		return parts[max(len(parts)-1-n, 0)]
	}
	verb := map[string]string{
		http.MethodGet:    "get",
		http.MethodPost:   "create",
		http.MethodPut:    "update",
		http.MethodDelete: "delete",
	}[route.Method]
	switch {
	case isParam(last):
		return verb + title(singular(before(1)))
	case strings.HasSuffix(last, "s") && route.Method == http.MethodGet:
		return "list" + title(last)
	case strings.HasSuffix(last, "s"):
		return verb + title(singular(last))
	case route.Method != http.MethodPost && !slices.Contains([]string{"search", "export"}, last):
		return verb + title(last)
	case isParam(before(1)):
		return last + title(singular(before(2)))
	}
	return last + title(before(1))
}

func isParam(part string) bool { return strings.HasPrefix(part, "{") }

func singular(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(noun, "s")
}

func title(word string) string {
	return strings.ToUpper(word[:1]) + word[1:]
}

// Area returns the name of the area that a route belongs to.
func (a *API) Area(r *Route) string {
	word, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.Path, "/agents/{id}/"), "/"), "/")
	for _, area := range a.Areas {
		if slices.Contains(strings.Fields(area.Words), word) {
			return area.Name
		}
	}
	return title(word)
}

// tags describes the areas that have routes, in order.
func (d *description) tags() []*huma.Tag {
	var tags []*huma.Tag
	for _, a := range d.api.Areas {
		if slices.Contains(d.areas, a.Name) {
			tags = append(tags, &huma.Tag{Name: a.Name, Description: a.About})
		}
	}
	return tags
}

// accessRules describes what a route requires of its caller.
func accessRules(route *Route) string {
	var rules []string
	switch route.Access {
	case Anyone:
		rules = append(rules, "Needs no identity.")
	case Platform:
		rules = append(rules, "Needs no identity: the platform's signature is checked.")
	case Identified:
		rules = append(rules, "Needs an identity, unless the server is open.")
	case Viewer, Admin, Owner:
		rules = append(rules, "Needs the role "+string(route.Access.Role())+" on the agent.")
	case OwnViewer, OwnAdmin:
		rules = append(
			rules,
			"Needs the role "+string(route.Access.Role())+
				" of one's own on the agent; the role that everyone has on the default agent does not count.",
		)
	}
	if route.Class != Unlimited {
		rules = append(rules, "Counts against the rate limit "+string(route.Class)+".")
	}
	if route.WhenDisabled {
		rules = append(rules, "Works on a disabled agent too.")
	}
	if route.WhenDamaged {
		rules = append(
			rules,
			"Works on an agent whose file is damaged too; if that does not say who owns it, for the "+
				"owners of the default agent.",
		)
	}
	return strings.Join(rules, " ")
}
