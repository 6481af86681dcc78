package httpapi

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

const leadsTable = apitest.LeadsTable

// TestTables creates a table, writes rows in every way, and reads them back.
func TestTables(t *testing.T) {
	c := newTestClient(t)
	const tables = "/api/agents/default/tables"
	const rows = tables + "/leads/rows"
	c.must(t, 201, "POST", tables, leadsTable)
	added := c.must(
		t, 201, "POST", rows,
		`{"rows":[{"name":"Ada","email":"a@x","amount":12,"vip":true,"status":"new"},{"name":"`+
			`<b>Bob</b>","amount":1.5}]}`,
	)
	id := at(added, "rows.0.id").(string)
	for _, tt := range []struct {
		query, want string
	}{
		{"", "Ada <b>Bob</b>"},
		{"?search=bob", "<b>Bob</b>"},
		{"?sort=name&order=desc", "Ada <b>Bob</b>"},
		{"?sort=amount", "<b>Bob</b> Ada"},
		{"?limit=1&offset=1", "<b>Bob</b>"},
		{"?where=" + url.QueryEscape(`[{"column":"vip","operator":"is_true"}]`), "Ada"},
		{"?where=" + url.QueryEscape(`[{"column":"amount","operator":"lt","value":5}]`), "<b>Bob</b>"},
	} {
		answer := c.must(t, 200, "GET", rows+tt.query, "")
		var names []string
		for _, row := range answer["rows"].([]any) {
			names = append(names, at(row, "name").(string))
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.query, got, tt.want)
		}
	}
	changed := c.must(t, 200, "PUT", rows+"/"+id, `{"row":{"status":"won","vip":null}}`)
	if changed["status"] != "won" || changed["vip"] != nil || changed["name"] != "Ada" {
		t.Errorf("%v", changed)
	}
	if up := c.must(
		t, 200, "POST", rows+"/upsert",
		`{"key":"email","row":{"email":"a@x","name":"Ada L."}}`,
	); up["created"] != false || at(up, "row.id") != id {
		t.Errorf("%v", up)
	}
	if deleted := c.must(
		t, 200, "POST", rows+"/batch",
		`{"ids":["`+id+`","row-x"],"delete":true}`,
	); len(deleted["rows"].([]any)) != 1 {
		t.Errorf("%v", deleted)
	}
	c.must(t, 404, "GET", rows+"/"+id, "")
	for body, field := range map[string]string{
		`{"name":"Leads","columns":[{"name":"a","type":"text"}]}`:                        "name",
		`{"name":"x\"; DROP TABLE contacts","columns":[{"name":"a","type":"text"}]}`:     "name",
		`{"name":"x","columns":[]}`:                                                      "columns",
		`{"name":"x","columns":[{"name":"a b","type":"text"}]}`:                          "columns[0].name",
		`{"name":"x","columns":[{"name":"ID","type":"text"}]}`:                           "columns[0].name",
		`{"name":"x","columns":[{"name":"a","type":"text"},{"name":"A","type":"text"}]}`: "columns[1].name",
		`{"name":"x","columns":[{"name":"a","type":"blob"}]}`:                            "columns[0].type",
		`{"name":"x","columns":[{"name":"a","type":"choice"}]}`:                          "columns[0].options",
		`{"name":"x","columns":[{"name":"a","type":"choice","options":["x\ny"]}]}`:       "columns[0].options[0]",
		`{"name":"x","columns":[{"name":"a","type":"choice","options":["` + strings.Repeat("x", 101) +
			`"]}]}`: "columns[0].options[0]",
	} {
		if a := c.send(t, "POST", tables, body); a.StatusCode != 400 || at(a.json, "error.details.field") != field {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.text)
		}
	}
	for path, field := range map[string]string{
		"?sort=nobody": "sort",
		"?where=x":     "where",
		"?where=" + url.QueryEscape(`[{"column":"x","operator":"equals"}]`): "where[0].column",
	} {
		if a := c.send(t, "GET", rows+path, ""); a.StatusCode != 400 || at(a.json, "error.details.field") != field {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.text)
		}
	}
	if schema := c.send(
		t,
		"GET",
		"/api/agents/default/sql/schema",
		"",
	); !strings.Contains(schema.text, `"data_leads"`) {
		t.Error("SQL does not see the table")
	}
	c.must(
		t,
		200,
		"POST",
		"/api/agents/default/sql/execute",
		`{"query":"INSERT INTO data_leads(name) VALUES ('By SQL')"}`,
	)
	if events := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/events?type=row.created",
		"",
	); len(events["events"].([]any)) != 3 {
		t.Errorf("%v", events)
	}
	c.must(t, 204, "DELETE", tables+"/leads", "")
	c.must(t, 404, "GET", rows, "")
}

// TestTableCSV exports a table and imports it into another: nothing changes.
func TestTableCSV(t *testing.T) {
	c := newTestClient(t)
	const tables = "/api/agents/default/tables"
	c.must(t, 201, "POST", tables, leadsTable)
	hostile := `=1+1 "x", 'y'; <b>` + "\n\u00e4"
	c.must(
		t, 201, "POST", tables+"/leads/rows",
		fmt.Sprintf(
			`{"rows":[{"name":%s,"email":"a@x","amount":-2.5,"vip":true,"status":"won"},{"name":"'=x"},{"name":"\n`+
				`＝5"},{"name":"'","email":""},{"name":"''"},{"name":"x","email":"'"}]}`,
			quoted(hostile),
		),
	)
	file := c.send(t, "GET", tables+"/leads/export", "").text
	if !strings.Contains(file, `"'=1+1 ""x""`) {
		t.Errorf("a formula is not guarded: %s", file)
	}
	c.must(t, 201, "POST", tables, strings.Replace(leadsTable, `"leads"`, `"copy"`, 1))
	load := func(table, key, dry, content string) answer {
		body, media := multipartForm(t, map[string]string{"key": key, "dry_run": dry}, "rows.csv", []byte(content), nil)
		return c.do(t, "POST", tables+"/"+table+"/import", body, media)
	}
	if a := load("copy", "", "", file); a.StatusCode != 200 || fmt.Sprint(a.json["imported"]) != "6" {
		t.Fatal(a.text)
	}
	pick := func(table string) (out []string) {
		for _, row := range c.must(t, 200, "GET", tables+"/"+table+"/rows", "")["rows"].([]any) {
			out = append(
				out,
				fmt.Sprintf(
					"%v %#v %v %v %v",
					at(row, "name"),
					at(row, "email"),
					at(row, "amount"),
					at(row, "vip"),
					at(row, "status"),
				),
			)
		}
		return out
	}
	if a, b :=
		pick("leads"), pick("copy"); strings.Join(a, "|") != strings.Join(b, "|") || !strings.HasPrefix(a[0], hostile) {
		t.Errorf("%q\n%q", a, b)
	}
	mixed := "Name;E-Mail\nAda;a@x\n"
	if a := load("leads", "", "", mixed); a.StatusCode != 400 || !strings.Contains(a.text, "E-Mail") {
		t.Error(a.text)
	}
	mixed = "\uFEFFNAME;email;Amount;vip\r\nAda;a@x;3;yes\r\nNew;b@x;many;no\r\n;c@x;1;no\r\n"
	for _, dry := range []string{"true", "false"} {
		a := load("leads", "email", dry, mixed)
		if fmt.Sprintf(
			"%v %v %d %v %v",
			a.json["updated"],
			a.json["imported"],
			len(a.json["errors"].([]any)),
			at(a.json, "errors.0.row"),
			at(a.json, "errors.0.field"),
		) != "1 0 2 3 amount" {
			t.Errorf("dry %s: %s", dry, a.text)
		}
		if name := pick("leads")[0]; strings.HasPrefix(name, "Ada") == (dry == "true") {
			t.Errorf("dry %s: %s", dry, name)
		}
	}
}

func (w *contractClient) checkTables(t *testing.T, at string) {
	t.Helper()
	tables := at + "/tables"
	w.request(
		t, 201, "POST", tables,
		`{"name":"leads","columns":[{"name":"email","type":"text","unique":true,"required":true},{"name":"status",`+
			`"type":"choice","options":["new","won"]}]}`,
	)
	w.request(t, 409, "POST", tables, `{"name":"leads","columns":[{"name":"email","type":"text"}]}`)
	w.request(t, 200, "GET", tables, "")
	w.request(t, 200, "GET", tables+"/leads", "")
	w.request(t, 404, "GET", tables+"/nobody", "")
	rows := tables + "/leads/rows"
	a := w.request(t, 201, "POST", rows, `{"row":{"email":"ada@example.com","status":"new"}}`)
	w.request(t, 409, "POST", rows, `{"row":{"email":"ada@example.com"}}`)
	row := rows + "/" + a.json["rows"].([]any)[0].(map[string]any)["id"].(string)
	w.request(t, 200, "GET", rows+"?sort=email&search=ada", "")
	w.request(t, 200, "GET", row, "")
	w.request(t, 200, "PUT", row, `{"row":{"status":"won"}}`)
	w.request(t, 200, "POST", rows+"/upsert", `{"key":"email","row":{"email":"bob@example.com"}}`)
	w.request(t, 200, "POST", rows+"/batch", `{"ids":["row-x"],"row":{"status":"won"}}`)
	body, media := multipartForm(
		t,
		map[string]string{"key": "email"},
		"leads.csv",
		[]byte("email,status\nbob@example.com,won\nbad,lost\n"),
		nil,
	)
	w.requestWith(t, 200, "POST", tables+"/leads/import", body, media)
	w.request(t, 200, "GET", tables+"/leads/export", "")
	w.request(t, 200, "GET", tables+"/leads/export?format=json", "")
	w.request(
		t, 200, "PUT", tables+"/leads",
		`{"columns":[{"name":"mail","from":"email","type":"text"},{"name":"note","type":"text"}]}`,
	)
	w.request(t, 204, "DELETE", row, "")
	w.request(t, 204, "DELETE", tables+"/leads", "")
	w.create(
		t,
		at+"/workflows",
		`{"name":"form","nodes":[{"id":"t","type":"trigger","data":{"event":"form","fields":[{"name":"email",`+
			`"type":"email","required":true},{"name":"kind","type":"choice","options":["a"]}]}}]}`,
	)
	w.request(t, 200, "GET", at+"/forms", "")
}
