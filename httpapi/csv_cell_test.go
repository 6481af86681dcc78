package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"satchel/agent"
)

// importCSV sends a file to an import.
func (c *testClient) importCSV(t *testing.T, path, content string, fields map[string]string) answer {
	t.Helper()
	body, media := multipartForm(t, fields, "file.csv", []byte(content), nil)
	return c.do(t, "POST", path+"/import", body, media)
}

// TestContactsComeBackFromExport: an export that is imported again changes nothing, also
// for contacts without identifiers, and brings back those that were deleted.
func TestContactsComeBackFromExport(t *testing.T) {
	c := newTestClient(t)
	const contacts = "/api/agents/default/contacts"
	for _, contact := range []string{
		`{"name":"Ada","email":"ada@example.com","phone":"+49 171 1234567 / +49 30 1234567",` +
			`"metadata":{"n":12345678901234567890}}`,
		`{"name":"No identifier"}`,
		`{"name":"No identifier","tags":["a, b"],"notes":" \n"}`,
		`{"name":"4.91711E+11","phone":"4.91711E+11","external_id":"#REF!"}`,
		`{"name":"'#N/A","social_handle":"=\"007\"","notes":"1.5E+12"}`,
	} {
		c.must(t, 201, "POST", contacts, contact)
	}
	export := func() (byID map[string]map[string]any) {
		byID = map[string]map[string]any{}
		var list struct{ Contacts []map[string]any }
		d := json.NewDecoder(strings.NewReader(c.send(t, "GET", contacts+"/export?format=json", "").text))
		d.UseNumber()
		if err := d.Decode(&list); err != nil {
			t.Fatal(err)
		}
		for _, contact := range list.Contacts {
			delete(contact, "created_at")
			delete(contact, "updated_at")
			byID[contact["id"].(string)] = contact
		}
		return byID
	}
	before, file := export(), c.send(t, "GET", contacts+"/export", "").text
	outcome := func(a answer) string {
		return fmt.Sprintf("%v %v %v %v", a.json["imported"], a.json["updated"], a.json["skipped"], a.json["errors"])
	}
	for _, tc := range []struct{ on, dry, want string }{
		{"update", "true", "0 5 0 []"}, {"update", "", "0 5 0 []"}, {"skip", "", "0 0 5 []"},
	} {
		if a := c.importCSV(t, contacts, file, map[string]string{
			"on_duplicate": tc.on,
			"dry_run":      tc.dry,
		}); outcome(a) != tc.want {
			t.Errorf("%s: %s", tc.on, a.text)
		}
		if after := export(); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: %v\nbecame %v", tc.on, before, after)
		}
	}
	for id := range before {
		if before[id]["name"] != "Ada" {
			c.must(t, 204, "DELETE", contacts+"/"+id, "")
		}
	}
	if a := c.importCSV(t, contacts, file, nil); outcome(a) != "4 1 0 []" {
		t.Errorf("after some were deleted: %s", a.text)
	}
	if after := export(); !reflect.DeepEqual(before, after) {
		t.Errorf("%v\ncame back as %v", before, after)
	}
	if a := c.importCSV(t, contacts, "id,name\n7,Eve\n7,Eve\n", nil); outcome(a) != "2 0 0 []" {
		t.Errorf("ids of another program: %s", a.text)
	}
}

// TestCellsOfSpreadsheets: what a spreadsheet made of a cell is understood, or is an issue of
// its row and column.
func TestCellsOfSpreadsheets(t *testing.T) {
	c := newTestClient(t)
	const contacts = "/api/agents/default/contacts"
	for i, tc := range []struct{ column, cell, want string }{
		{"phone", "4.91711E+11", "! rounded"},
		{"phone", "4,91711E+11", "! rounded"},
		{"phone", "4.9e+12", "! rounded"},
		{"chatbot_b", "4.91711E+11", "! rounded"},
		{"external_id", "1.2E+15", "! rounded"},
		{"name", "#N/A", "! formula"},
		{"phone", "4.91711234567E+11", "491711234567"},
		{"phone", "491711234568.0", "491711234568"},
		{"phone", `"=""00491711234569"""`, "00491711234569"},
		{"phone", "+49 171 1234567 / +49 30 1234567", "! several"},
		{"phone", `"0171 1234567; 030 1234567"`, "! several"},
		{"phone", "\"0171 1234567, 030 1234567\"", "! several"},
		{"phone", "\"0171 1234567\n030 1234567\"", "! several"},
		{"phone", "0171 1234567 or 030 1234567", "! several"},
		{"phone", "+491711234567 +49301234567", "! several"},
		{"chatbot_b", "491711234567|491721234567", "! several"},
		{"phone", "01711234567 01721234567", "! several"},
		{"email", "\"a@x.example, b@x.example\"", "! several"},
		{"email", `"a@x.example;b@x.example"`, "! several"},
		{"phone", "030 / 123456-78", "030 / 123456-78"},
		{"phone", "0049 2234/1234560", "0049 2234/1234560"},
		{"phone", "+1 (555) 010-0100 ext. 12", "+1 (555) 010-0100 ext. 12"},
		{"phone", "0017", "0017"},
		{"external_id", "5E10", "5E10"},
		{"external_id", "007", "007"},
		{"external_id", "1E+10-X", "1E+10-X"},
	} {
		header, row := "name;"+tc.column, "Ada;"+tc.cell
		if tc.column == "name" {
			header, row = "name;notes", tc.cell+";x"
		}
		a := c.importCSV(t, contacts, "\uFEFFsep=;\r\n"+header+"\r\n"+row+"\r\n", map[string]string{
			"on_duplicate": "error",
		})
		if issue, wrong := strings.CutPrefix(tc.want, "! "); wrong {
			text, _ := at(a.json, "errors.0.issue").(string)
			if at(a.json, "errors.0.row") != json.Number("2") ||
				at(a.json, "errors.0.field") != tc.column ||
				!strings.Contains(text, issue) ||
				fmt.Sprint(a.json["imported"]) != "0" {
				t.Errorf("%d %s %q: %s", i, tc.column, tc.cell, a.text)
			}
			continue
		}
		if fmt.Sprint(a.json["imported"]) != "1" {
			t.Errorf("%d %s %q: %s", i, tc.column, tc.cell, a.text)
			continue
		}
		list := c.must(t, 200, "GET", contacts+"?full=true&sort=created_at&order=desc&limit=1", "")
		if got := at(list, "contacts.0."+tc.column); got != tc.want {
			t.Errorf("%d %s %q is %q, want %q", i, tc.column, tc.cell, got, tc.want)
		}
	}
}

// TestRowsComeBackFromExport: an exported table that is imported again is the same, and so
// are rows that were deleted meanwhile.
func TestRowsComeBackFromExport(t *testing.T) {
	c := newTestClient(t)
	const tables = "/api/agents/default/tables"
	c.must(t, 201, "POST", tables, `{"name":"t","columns":[{"name":"text","type":"text"},{"name":"n","type":"number"},{"name":"j","type":"json"},
		{"name":"b","type":"boolean"},{"name":"at","type":"time"}]}`)
	c.must(t, 201, "POST", tables+"/t/rows", `{"rows":[{"text":"4.91711E+11","n":-1.5e300,"j":"a text","b":false,"at":"2026-01-31T09:00:00Z"},
		{"text":"#REF!","n":4.91711e11,"j":"7"},{"text":"='x","j":{"a":[1,"=1"]}},{"j":7},{"j":[]},{}]}`)
	rows := func() []any { return c.must(t, 200, "GET", tables+"/t/rows?sort=id", "")["rows"].([]any) }
	same := func(a, b []any) bool {
		for _, list := range [][]any{a, b} {
			for _, row := range list {
				delete(row.(map[string]any), "updated_at")
				delete(row.(map[string]any), "created_at")
			}
		}
		return reflect.DeepEqual(a, b)
	}
	before, file := rows(), c.send(t, "GET", tables+"/t/export", "").text
	if a := c.importCSV(t, tables+"/t", file, nil); fmt.Sprintf(
		"%v %v %v",
		a.json["imported"],
		a.json["updated"],
		a.json["errors"],
	) != "0 6 []" {
		t.Error(a.text)
	}
	if after := rows(); !same(before, after) {
		t.Errorf("%v\nbecame %v", before, after)
	}
	c.must(t, 204, "DELETE", tables+"/t/rows/"+before[0].(map[string]any)["id"].(string), "")
	if a := c.importCSV(t, tables+"/t", file, nil); fmt.Sprintf(
		"%v %v %v",
		a.json["imported"],
		a.json["updated"],
		a.json["errors"],
	) != "1 5 []" {
		t.Error(a.text)
	}
	if after := rows(); !same(before, after) {
		t.Errorf("%v\ncame back as %v", before, after)
	}
	a := c.importCSV(
		t,
		tables+"/t",
		"text,n,at\n4.91711E+11,4.91711E+11,2026-01-31T09:00:00Z\n007,1,45321\n008,2,31.01.2026\n009,#VALUE!,\n",
		nil,
	)
	var wrong []string
	for _, e := range a.json["errors"].([]any) {
		wrong = append(wrong, fmt.Sprintf("%v %v", at(e.(map[string]any), "row"), at(e.(map[string]any), "field")))
	}
	if fmt.Sprint(wrong) != "[2 text 3 at 4 at 5 n]" {
		t.Errorf("%v: %s", wrong, a.text)
	}
}

// TestGuardedCells: every cell of an export is read as it was.
func TestGuardedCells(t *testing.T) {
	for _, cell := range []string{
		"", "4.91711E+11", "'4.91711E+11", "''4.9E+11", "#N/A", "'#N/A", "#", `="007"`, "'x", "1E+10", "+1",
		"4.91711234567E+11",
	} {
		if got, issue := readCell(guardFormula(cell)); got != cell || issue != "" {
			t.Errorf("%q is read as %q, %s", cell, got, issue)
		}
	}
	if !agent.IsID(agent.KindContact, agent.NewID(agent.KindContact)) || agent.IsID(agent.KindContact, "contact-1") {
		t.Error("ids are not recognized")
	}
}
