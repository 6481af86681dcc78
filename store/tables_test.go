package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

// everyColumn has a column of every kind, both required and unique and neither.
func everyColumn(name string) agent.Table {
	t := agent.Table{Name: name}
	for _, kind := range agent.ColumnTypes {
		for i := range 4 {
			c := agent.TableColumn{
				Name:     fmt.Sprintf("%s_%d", kind, i),
				Type:     kind,
				Required: i&1 != 0,
				Unique:   i == 3 && kind != agent.ColumnJSON,
			}
			if kind == agent.ColumnChoice {
				c.Options = []string{"new", "it's", `a "b" % '' ,'`, "%s%d", ") STRICT", "CHECK (", "größe ✓"}
			}
			t.Columns = append(t.Columns, c)
		}
	}
	return t
}

func createTable(t testing.TB, db *DB, table agent.Table) agent.Table {
	t.Helper()
	made, err := db.CreateTable(context.Background(), table)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func leads(name string) agent.Table {
	return agent.Table{Name: name, Columns: []agent.TableColumn{
		{Name: "name", Type: agent.ColumnText, Required: true},
		{Name: "email", Type: agent.ColumnText, Unique: true},
		{Name: "amount", Type: agent.ColumnNumber},
		{Name: "vip", Type: agent.ColumnBoolean},
		{Name: "due", Type: agent.ColumnTime},
		{Name: "extra", Type: agent.ColumnJSON},
		{Name: "status", Type: agent.ColumnChoice, Options: []string{"new", "won"}},
	}}
}

// TestTableSchema checks that a table's statements are those that SQLite stores, and that
// its definition is read from them.
func TestTableSchema(t *testing.T) {
	want := everyColumn("every")
	got, ok := parseTable(tableSQL(&want, "data_every"))
	if !ok || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("parsed %v, want %v", got, want)
	}
	made, err := buildSchema(func(c *conn) error {
		if err := c.script(tableSQL(&want, "data_every")); err != nil {
			return err
		}
		return (&Tx{conn: c}).makeParts(&want)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if wanted := tableObjects(&want); !maps.Equal(made, wanted) {
		for o := range made {
			if _, ok := wanted[o]; !ok {
				t.Errorf("not expected: %+v", o)
			}
		}
		for o := range wanted {
			if _, ok := made[o]; !ok {
				t.Errorf("missing: %+v", o)
			}
		}
	}
	for _, sql := range []string{
		"",
		"CREATE TABLE data_x(a)",
		strings.Replace(tableSQL(&want, "data_every"), "262144", "362144", 1),
		strings.Replace(tableSQL(&want, "data_every"), "IN (0,1)", "IN (0,1) OR hex(randomblob(1)) > ''", 1),
		strings.Replace(tableSQL(&want, "data_every"), "'new',", "'new',hex(1),", 1),
	} {
		if _, ok := parseTable(sql); ok {
			t.Errorf("accepted: %s", sql)
		}
	}
}

// TestTablesSurvive checks that a file with tables is accepted by an import and a fork,
// also with the most and widest tables allowed, and that one with an altered table is
// not.
func TestTablesSurvive(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	ctx := context.Background()
	f := openFolder(t)
	db := createAgent(t, f, "tables")
	createTable(t, db, everyColumn("every"))
	createTable(t, db, leads("leads"))
	if _, err := db.InsertRows(
		ctx,
		"leads",
		[]agent.Row{{"name": "Ada", "email": "ada@example.com", "amount": 5.5}},
		nil,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := db.UpdateTable(ctx, "leads", agent.TableChange{Name: agent.Some("people")}); err != nil {
		t.Fatal(err)
	}
	wide := agent.Table{Columns: make([]agent.TableColumn, agent.MaxTableColumns)}
	for i := range wide.Columns {
		wide.Columns[i] = agent.TableColumn{
			Name:     fmt.Sprintf("%s_%02d", strings.Repeat("x", 45), i),
			Type:     agent.ColumnNumber,
			Required: true,
			Unique:   i < 10,
		}
	}
	for i := range agent.MaxTables - 2 {
		wide.Name = fmt.Sprintf("%s_%02d", strings.Repeat("w", 45), i)
		createTable(t, db, wide)
	}
	if _, err := db.CreateTable(ctx, leads("more")); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("one table too many: %v", err)
	}
	copied, err := f.Import(ctx, bytes.NewReader(backupOf(t, db)), 1<<30, openMode)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, total, err := copied.TableRows(ctx, "people", RowQuery{Limit: 10})
	if err != nil || total != 1 || !strings.Contains(string(rows[0]), `"name":"Ada"`) {
		t.Errorf("%s %d %v", rows, total, err)
	}
}

func TestTableAttacks(t *testing.T) {
	f := openFolder(t)
	db := createAgent(t, f, "tables")
	createTable(t, db, leads("leads"))
	honest := backupOf(t, db)
	for name, script := range map[string]string{
		"another trigger": "CREATE TRIGGER evil AFTER INSERT ON data_leads BEGIN DELETE FROM contacts; END",
		"changed trigger": "DROP TRIGGER _data_leads_created; CREATE TRIGGER _data_leads_created AFTER " +
			"INSERT ON \"data_leads\" BEGIN DELETE FROM contacts; END",
		"trigger missing": "DROP TRIGGER _data_leads_created",
		"view changed": "DROP VIEW _data_leads_json; CREATE VIEW _data_leads_json AS " +
			"SELECT id, (SELECT sealed FROM _secrets) AS json FROM \"data_leads\"",
		"view missing":               "DROP VIEW _data_leads_json",
		"index":                      "CREATE INDEX mine ON data_leads(hex(name))",
		"additional column":          "ALTER TABLE data_leads ADD COLUMN x TEXT",
		"additional table":           "CREATE TABLE data_mine(x)",
		"table without its triggers": `CREATE TABLE "data_mine" ("id" TEXT) STRICT`,
		"renamed by SQLite":          "ALTER TABLE data_leads RENAME TO data_other",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "copy.db")
			if err := errors.Join(os.WriteFile(path, honest, 0o600), rewrite(path, script)); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Import(
				t.Context(),
				bytes.NewReader(data),
				1<<30,
				openMode,
			); agent.ErrorCode(err) != agent.CodeInvalidFile {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

func rowEvents(t *testing.T, db *DB) (events []string) {
	t.Helper()
	all, err := db.Events(context.Background(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if strings.HasPrefix(e.Type, "row.") {
			if !json.Valid(e.Data) {
				t.Errorf("no JSON: %s", e.Data)
			}
			events = append(events, e.Type+" "+string(e.Data))
		}
	}
	return events
}

// TestTableRows checks the content of rows, whoever writes them, and their events.
func TestTableRows(t *testing.T) {
	ctx := context.Background()
	db := createAgent(t, openFolder(t), "rows")
	createTable(t, db, leads("leads"))
	added, err := db.InsertRows(ctx, "leads", []agent.Row{{
		"name":   "Ada",
		"email":  "a@x",
		"amount": json.Number("12"),
		"vip":    "yes",
		"due":    "2026-01-31T10:00:00+01:00",
		"extra":  map[string]any{"a": []any{1.0, "<b>"}},
		"status": "new",
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `"name":"Ada","email":"a@x","amount":12,"vip":true,"due":"2026-01-31T09:00:00.000Z",` +
		`"extra":{"a":[1,"<b>"]},"status":"new"`
	if !strings.Contains(string(added[0]), want) {
		t.Errorf("added %s", added[0])
	}
	result, err := db.SQL(
		ctx,
		"INSERT INTO data_leads(name, amount) VALUES ('By SQL', 1.5) RETURNING id",
		Params{},
		Access{Write: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := result.Rows[0][0].(string)
	if !strings.HasPrefix(id, "row-") {
		t.Errorf("id %q", id)
	}
	if _, err := db.UpdateRow(ctx, "leads", id, agent.Row{"amount": 2.0, "status": "won"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.UpdateRow(ctx, "leads", id, agent.Row{"amount": 2.0}); err != nil { // no change
		t.Fatal(err)
	}
	if err := db.DeleteRow(ctx, "leads", id); err != nil {
		t.Fatal(err)
	}
	events := rowEvents(t, db)
	if len(events) != 4 ||
		!strings.HasPrefix(events[1], `row.created {"table":"leads","row":{"id":"`+id+`","name":"By SQL"`) ||
		!strings.HasSuffix(events[2], `"changed":["amount","status"]}`) ||
		!strings.HasPrefix(events[3], "row.deleted") {
		t.Errorf("events\n%s", strings.Join(events, "\n"))
	}
	if table, err := db.Table(ctx, "leads"); err != nil || table.Rows != 1 {
		t.Errorf("%d rows, %v", table.Rows, err)
	}
}

func TestRowsRefused(t *testing.T) {
	ctx := context.Background()
	db := createAgent(t, openFolder(t), "rows")
	createTable(t, db, leads("leads"))
	if _, err := db.InsertRows(ctx, "leads", []agent.Row{{"name": "Ada", "email": "a@x"}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row   agent.Row
		field string
		code  agent.Code
	}{
		{agent.Row{}, "name", agent.CodeValidation},
		{agent.Row{"name": ""}, "name", agent.CodeValidation},
		{agent.Row{"name": "B", "email": "a@x"}, "email", agent.CodeConflict},
		{agent.Row{"name": "B", "nobody": 1.0}, "nobody", agent.CodeValidation},
		{agent.Row{"name": "B", "amount": "many"}, "amount", agent.CodeValidation},
		{agent.Row{"name": "B", "amount": json.Number("12345678901234567890")}, "amount", agent.CodeValidation},
		{agent.Row{"name": "B", "vip": "perhaps"}, "vip", agent.CodeValidation},
		{agent.Row{"name": "B", "due": "soon"}, "due", agent.CodeValidation},
		{agent.Row{"name": "B", "status": "lost"}, "status", agent.CodeValidation},
		{agent.Row{"name": "B\x00"}, "name", agent.CodeValidation},
		{agent.Row{"name": strings.Repeat("x", agent.MaxRowBytes)}, "row", agent.CodeValidation},
	} {
		_, err := db.InsertRows(ctx, "leads", []agent.Row{c.row}, nil)
		var e *agent.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Details["field"] != c.field {
			t.Errorf("%.60v: %v", c.row, err)
		}
	}
	for _, query := range []string{
		"INSERT INTO data_leads(name, vip) VALUES ('x', 7)",
		"INSERT INTO data_leads(name, due) VALUES ('x', 'soon')",
		"INSERT INTO data_leads(name, extra) VALUES ('x', 'nonsense')",
		"INSERT INTO data_leads(name, amount) VALUES ('x', 9e999)",
		"INSERT INTO data_leads(name) VALUES (printf('%.300000c', 'x'))",
		"DROP TABLE data_leads",
	} {
		if _, err := db.SQL(ctx, query, Params{}, Access{Write: true}); err == nil {
			t.Errorf("%s succeeded", query)
		}
	}
	if n := value[int](t, db, "SELECT count(*) FROM data_leads"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestRowQueries(t *testing.T) {
	ctx := context.Background()
	db := createAgent(t, openFolder(t), "rows")
	createTable(t, db, leads("leads"))
	var rows []agent.Row
	for i, name := range []string{"ada", "Bob", "100% Carl", "Dora_x"} {
		row := agent.Row{"name": name, "amount": float64(i), "vip": i%2 == 0, "due": fmt.Sprintf("2026-01-0%d", i+1)}
		if i < 2 {
			row["status"] = "new"
		}
		rows = append(rows, row)
	}
	if _, err := db.InsertRows(ctx, "leads", rows, nil); err != nil {
		t.Fatal(err)
	}
	names := func(q RowQuery) string {
		t.Helper()
		q.Limit = 10
		_, found, total, err := db.TableRows(ctx, "leads", q)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, raw := range found {
			var row struct{ Name string }
			if err := json.Unmarshal(raw, &row); err != nil {
				t.Fatal(err)
			}
			names = append(names, row.Name)
		}
		if total != len(names) {
			t.Errorf("total %d of %v", total, names)
		}
		return strings.Join(names, ",")
	}
	for _, c := range []struct {
		column, operator string
		value            any
		want             string
	}{
		{"name", "equals", "Bob", "Bob"},
		{"name", "not_equals", "Bob", "ada,100% Carl,Dora_x"},
		{"name", "contains", "0%", "100% Carl"},
		{"name", "contains", "_", "Dora_x"},
		{"name", "starts_with", "do", "Dora_x"},
		{"name", "ends_with", "A", "ada"},
		{"status", "not_contains", "n", "100% Carl,Dora_x"},
		{"amount", "gt", "1", "100% Carl,Dora_x"},
		{"amount", "lte", 1.0, "ada,Bob"},
		{"amount", "in", []any{0.0, "3"}, "ada,Dora_x"},
		{"name", "in", "Bob, ada", "ada,Bob"},
		{"status", "not_in", "new", "100% Carl,Dora_x"},
		{"status", "is_empty", nil, "100% Carl,Dora_x"},
		{"status", "is_not_empty", nil, "ada,Bob"},
		{"status", "equals", nil, "100% Carl,Dora_x"},
		{"vip", "is_true", nil, "ada,100% Carl"},
		{"vip", "equals", false, "Bob,Dora_x"},
		{"due", "gte", "2026-01-03", "100% Carl,Dora_x"},
		{"status", "equals", "no option", ""},
	} {
		got := names(RowQuery{Where: []agent.RowCondition{{Column: c.column, Operator: c.operator, Value: c.value}}})
		if got != c.want {
			t.Errorf("%s %s %v: %s, want %s", c.column, c.operator, c.value, got, c.want)
		}
	}
	if got := names(RowQuery{Search: "o"}); got != "Bob,Dora_x" {
		t.Errorf("search: %s", got)
	}
	if got := names(RowQuery{Order: []Order{{"name", true}}}); got != "Dora_x,Bob,ada,100% Carl" {
		t.Errorf("order: %s", got)
	}
	for _, where := range [][]agent.RowCondition{
		{{Column: "nobody", Operator: "equals"}},
		{{Column: "name", Operator: "matches"}},
		{{Column: "due", Operator: "gt", Value: "soon"}},
	} {
		if _, _, _, err := db.TableRows(
			ctx,
			"leads",
			RowQuery{Where: where},
		); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%v: %v", where, err)
		}
	}
}

// TestUpdateTable checks that columns change together with their values, or not at all.
func TestUpdateTable(t *testing.T) {
	ctx := context.Background()
	db := createAgent(t, openFolder(t), "rows")
	createTable(t, db, leads("leads"))
	if _, err := db.InsertRows(
		ctx,
		"leads",
		[]agent.Row{
			{"name": "Ada", "email": "12.5", "amount": 3.0, "vip": true},
			{"name": "Bob", "email": "7", "amount": 3.0},
		},
		nil,
	); err != nil {
		t.Fatal(err)
	}
	columns := func(list ...agent.ColumnChange) agent.TableChange {
		return agent.TableChange{Columns: agent.Some(list)}
	}
	text := func(name, from string) agent.ColumnChange {
		return agent.ColumnChange{TableColumn: agent.TableColumn{Name: name, Type: agent.ColumnText}, From: from}
	}
	number := text("email", "")
	number.Type = agent.ColumnNumber
	got, err := db.UpdateTable(
		ctx,
		"leads",
		columns(text("who", "name"), number, text("amount", ""), text("vip", ""), text("note", "")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Columns) != 5 || got.Rows != 2 {
		t.Errorf("%+v", got)
	}
	_, rows, _, err := db.TableRows(ctx, "leads", RowQuery{Limit: 1})
	if err != nil ||
		!strings.Contains(string(rows[0]), `"who":"Ada","email":12.5,"amount":"3","vip":"true","note":null`) {
		t.Errorf("%s %v", rows, err)
	}
	bad := map[string]agent.TableChange{}
	for field, change := range map[string]func(*agent.ColumnChange){
		"columns[0]":      func(c *agent.ColumnChange) { c.Type = agent.ColumnNumber },
		"columns[0] ":     func(c *agent.ColumnChange) { c.Type = agent.ColumnTime },
		"columns[0]  ":    func(c *agent.ColumnChange) { c.Type, c.Options = agent.ColumnChoice, []string{"Ada"} },
		"columns[0].from": func(c *agent.ColumnChange) { c.From = "nobody" },
		"columns[0].name": func(c *agent.ColumnChange) { c.Name = "x y" },
	} {
		c := text("who", "")
		change(&c)
		bad[field] = columns(c)
	}
	unique, required := text("amount", ""), text("note", "")
	unique.Unique, required.Required = true, true
	bad["columns[0]u"], bad["columns[0]r"] = columns(unique), columns(required)
	for field, change := range bad {
		_, err := db.UpdateTable(ctx, "leads", change)
		var e *agent.Error
		if !errors.As(err, &e) || e.Details["field"] != strings.TrimRight(field, " ur") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if after, err := db.Table(ctx, "leads"); err != nil || len(after.Columns) != 5 {
		t.Errorf("%+v %v", after, err)
	}
	if _, err := db.UpdateTable(ctx, "leads", agent.TableChange{Name: agent.Some("people")}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL(ctx, "UPDATE data_people SET note = 'x'", Params{}, Access{Write: true}); err != nil {
		t.Error(err)
	}
	if err := db.DeleteTable(ctx, "people"); err != nil {
		t.Fatal(err)
	}
	if tables, err := db.Tables(ctx); err != nil || len(tables) != 0 {
		t.Errorf("%v %v", tables, err)
	}
	if _, err := db.SQL(ctx, "SELECT * FROM data_people", Params{}, Access{}); err == nil {
		t.Error("the table is still there")
	}
	if n := value[int](
		t,
		db,
		"SELECT count(*) FROM sqlite_schema WHERE name LIKE '%people%' OR name LIKE '%leads%'",
	); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

func TestWriteRowsOfNodes(t *testing.T) {
	ctx := context.Background()
	db := createAgent(t, openFolder(t), "rows")
	createTable(t, db, leads("leads"))
	ended := func([]json.RawMessage) (string, agent.NodeResult, error) {
		return "execution-gone", agent.NodeResult{}, nil
	}
	if _, err := db.InsertRows(ctx, "leads", []agent.Row{{"name": "Ada"}}, ended); !errors.Is(err, ErrEnded) {
		t.Errorf("%v", err)
	}
	if table, _ := db.Table(ctx, "leads"); table.Rows != 0 {
		t.Error("the row of an ended execution remains")
	}
	for range 2 {
		if _, _, err := db.UpsertRow(ctx, "leads", "email", agent.Row{"name": "Ada", "email": "a@x"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := db.UpsertRow(
		ctx,
		"leads",
		"name",
		agent.Row{"name": "Ada"},
		nil,
	); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("key that is not unique: %v", err)
	}
	ada := []agent.RowCondition{{Column: "email", Operator: "equals", Value: "a@x"}}
	if rows, err := db.UpdateRows(ctx, "leads", ada, agent.Row{"amount": 1.0}, nil); err != nil || len(rows) != 1 {
		t.Errorf("%s %v", rows, err)
	}
	if _, err := db.DeleteRows(ctx, "leads", nil, nil); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("all rows: %v", err)
	}
	if rows, err := db.DeleteRows(ctx, "leads", ada, nil); err != nil || len(rows) != 1 {
		t.Errorf("%s %v", rows, err)
	}
	changed := slices.DeleteFunc(rowEvents(t, db), func(e string) bool { return !strings.HasPrefix(e, "row.updated") })
	if len(changed) != 1 {
		t.Errorf("%v", changed)
	}
}

// TestRedefineTable checks that a change which keeps the rows leads to the same table as
// creating a new one.
func TestRedefineTable(t *testing.T) {
	ctx := context.Background()
	f := openFolder(t)
	db := createAgent(t, f, "rows")
	createTable(t, db, leads("leads"))
	if _, err := db.InsertRows(
		ctx,
		"leads",
		[]agent.Row{{"name": "Ada", "email": "a@x", "status": "won"}},
		nil,
	); err != nil {
		t.Fatal(err)
	}
	change := agent.TableChange{Name: agent.Some("people")}
	for _, c := range leads("").Columns {
		change.Columns.Value = append(change.Columns.Value, agent.ColumnChange{TableColumn: c})
	}
	list := change.Columns.Value
	list[0].Required, list[1].Name, list[1].From, list[6].Options =
		false, "mail", "email", []string{"it's", "won", "new"}
	change.Columns = agent.Some(append(list, agent.ColumnChange{
		TableColumn: agent.TableColumn{Name: "more", Type: agent.ColumnNumber},
	}))
	old, _ := db.Table(ctx, "leads")
	wanted, from, err := change.Apply(old)
	if err != nil || !keepsRows(&old, &wanted, from) {
		t.Fatalf("%v %v", from, err)
	}
	if _, err := db.UpdateTable(ctx, "leads", change); err != nil {
		t.Fatal(err)
	}
	if _, err := db.InsertRows(
		ctx,
		"people",
		[]agent.Row{{"mail": "b@x", "more": 1.5, "status": "it's"}},
		nil,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := db.InsertRows(
		ctx,
		"people",
		[]agent.Row{{"mail": "a@x"}},
		nil,
	); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("no longer unique: %v", err)
	}
	for _, query := range []string{
		"INSERT INTO data_people(more) VALUES (9e999)",
		"INSERT INTO data_people(status) VALUES ('lost')",
	} {
		if _, err := db.SQL(ctx, query, Params{}, Access{Write: true}); err == nil {
			t.Errorf("%s succeeded", query)
		}
	}
	copied, err := f.Import(ctx, bytes.NewReader(backupOf(t, db)), 1<<30, openMode)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _, err := copied.TableRows(ctx, "people", RowQuery{Limit: 10})
	if err != nil ||
		len(rows) != 2 ||
		!strings.Contains(string(rows[0]), `"name":"Ada","mail":"a@x"`) ||
		!strings.Contains(string(rows[0]), `"more":null`) {
		t.Errorf("%s %v", rows, err)
	}
	if check := value[string](t, copied, "PRAGMA integrity_check"); check != "ok" {
		t.Error(check)
	}
	list[1].From = ""
	// now the rows are moved
	if _, err := db.UpdateTable(ctx, "people", agent.TableChange{Columns: agent.Some(list[:2])}); err != nil {
		t.Fatal(err)
	}
	if table, err := db.Table(ctx, "people"); err != nil || table.Rows != 2 || len(table.Columns) != 2 {
		t.Errorf("%+v %v", table, err)
	}
}
