package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

func names(contacts []agent.Contact) string {
	var all []string
	for _, c := range contacts {
		all = append(all, c.Name)
	}
	return strings.Join(all, " ")
}

func TestContactRoundTrip(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	change := agent.ContactChange{
		Name:         agent.Some(" Ada Lovelace "),
		Email:        agent.Some("Ada@Example.com"),
		Phone:        agent.Some("+1 (555) 010-0"),
		Telegram:     agent.Some("@Ada"),
		WhatsApp:     agent.Some("+1555"),
		SocialHandle: agent.Some("@ada"),
		ExternalID:   agent.Some("crm-42"),
		Notes:        agent.Some("likes\nengines ☕"),
		Tags:         agent.Some([]string{"vip", "", "vip", "new"}),
		Metadata:     agent.Some(json.RawMessage(`{"b":1,"a":[true,null]}`)),
	}
	made := createContact(t, db, change)
	got, err := db.Contact(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(made) {
		t.Errorf("read %+v\nmade %+v", got, made)
	}
	if got.Name != "Ada Lovelace" ||
		got.Email != "Ada@Example.com" ||
		!slices.Equal(got.Tags, []string{"vip", "new"}) ||
		string(got.Metadata) != `{"b":1,"a":[true,null]}` {
		t.Errorf("%+v", got)
	}
	least := createContact(t, db, named("x"))
	if got, err = db.Contact(t.Context(), least.ID); err != nil || got.Tags == nil || string(got.Metadata) != "{}" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = db.Contact(t.Context(), "contact-unknown")
	wantCode(t, err, agent.CodeNotFound)
	_, err = db.CreateContact(t.Context(), agent.ContactChange{})
	wantCode(t, err, agent.CodeValidation)
}

// sameIdentifiers lists, for each identifier, spellings that are equivalent.
var sameIdentifiers = map[string][]string{
	"email":       {"ada@example.com", "ADA@Example.COM", "  ada@example.com "},
	"phone":       {"+1 (555) 010-0199", "15550100199", "1.555.010.0199", "1/555 010\u00a00199"},
	"chatbot_a":   {"@Ada", "ada", " ADA "},
	"chatbot_b":   {"+15550100", " +15550100 "},
	"external_id": {"crm-42", " crm-42"},
}

func with(field, value string) agent.ContactChange {
	change := named("x")
	dst := map[string]*agent.Optional[string]{
		"email":       &change.Email,
		"phone":       &change.Phone,
		"chatbot_a":   &change.Telegram,
		"chatbot_b":   &change.WhatsApp,
		"external_id": &change.ExternalID,
	}
	*dst[field] = agent.Some(value)
	return change
}

func TestDuplicatesAndResolve(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	for field, writings := range sameIdentifiers {
		t.Run(field, func(t *testing.T) {
			db := openFolder(t).Default()
			first := createContact(t, db, with(field, writings[0]))
			other := createContact(t, db, named("other"))
			for _, writing := range writings {
				_, err := db.CreateContact(t.Context(), with(field, writing))
				if e := wantCode(t, err, agent.CodeDuplicateContact); e.Details["field"] != field ||
					e.Details["existing_id"] != first.ID {
					t.Errorf("%q: %+v", writing, e.Details)
				}
				_, err = db.UpdateContact(t.Context(), other.ID, with(field, writing))
				wantCode(t, err, agent.CodeDuplicateContact)
				if _, err := db.UpdateContact(t.Context(), first.ID, with(field, writing)); err != nil {
					t.Errorf("%q collides with itself: %v", writing, err)
				}
				if found, err := db.ResolveContact(t.Context(), field, writing); err != nil || found.ID != first.ID {
					t.Errorf("%q resolves to %+v, %v", writing, found, err)
				}
			}
			_, err := db.ResolveContact(t.Context(), field, "somebody-7@else.com")
			wantCode(t, err, agent.CodeNotFound)
			if _, total, err := db.Contacts(t.Context(), nil, Page{Limit: 10}); err != nil || total != 2 {
				t.Errorf("%d contacts, %v", total, err)
			}
			if value[int](t, db, "SELECT count(*) FROM _contact_tags") != 0 {
				t.Error("a refused contact left tags")
			}
		})
	}
}

// Several contacts may lack the same identifier.
func TestEmptyIdentifiersAreNoDuplicates(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	createContact(t, db, named("a"))
	createContact(t, db, named("b"))
	for _, field := range agent.ContactIdentifiers {
		if _, err := db.ResolveContact(t.Context(), field, ""); agent.ErrorCode(err) != agent.CodeNotFound {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestUpdateAndDeleteContact(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	c := createContact(t, db, numberedContact(1))
	null := agent.Optional[string]{Given: true, Null: true}
	updated, err := db.UpdateContact(t.Context(), c.ID, agent.ContactChange{
		Email: null,
		Tags:  agent.Some([]string{"new"}),
	})
	if err != nil ||
		updated.Email != "" ||
		updated.Phone != c.Phone ||
		updated.CreatedAt != c.CreatedAt ||
		!slices.Equal(updated.Tags, []string{"new"}) {
		t.Fatalf("%+v, %v", updated, err)
	}
	_, err = db.UpdateContact(t.Context(), c.ID, agent.ContactChange{Name: null})
	wantCode(t, err, agent.CodeValidation)
	_, err = db.UpdateContact(t.Context(), "contact-unknown", named("x"))
	wantCode(t, err, agent.CodeNotFound)
	if err := db.DeleteContact(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.DeleteContact(t.Context(), c.ID), agent.CodeNotFound)
	if left := value[int](t, db, "SELECT count(*) FROM _contact_tags"); left != 0 {
		t.Errorf("%d tags are left", left)
	}
	createContact(t, db, numberedContact(1))
}

func TestContactList(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	for _, c := range []struct {
		name, email string
		tags        []string
	}{
		{"carol", "c@x.y", []string{"vip"}},
		{"Bob", "b_b@x.y", []string{"vip", "new"}},
		{"alice", "100%@x.y", nil},
		{"dan", `d\d@x.y`, []string{"new"}},
	} {
		change := named(c.name)
		change.Email, change.Tags = agent.Some(c.email), agent.Some(c.tags)
		createContact(t, db, change)
	}
	by := func(field string, desc bool) []Order { return []Order{{Field: field, Desc: desc}} }
	for name, c := range map[string]struct {
		tags  []string
		page  Page
		want  string
		total int
	}{
		"newest first":        {nil, Page{Limit: 10}, "dan alice Bob carol", 4},
		"page":                {nil, Page{Limit: 2, Offset: 1}, "alice Bob", 4},
		"past the end":        {nil, Page{Limit: 2, Offset: 9}, "", 4},
		"by name":             {nil, Page{Limit: 10, Order: by("name", false)}, "alice Bob carol dan", 4},
		"by name, descending": {nil, Page{Limit: 10, Order: by("name", true)}, "dan carol Bob alice", 4},
		"by email":            {nil, Page{Limit: 10, Order: by("email", false)}, "alice Bob carol dan", 4},
		"oldest first":        {nil, Page{Limit: 10, Order: by("created_at", false)}, "carol Bob alice dan", 4},
		"unknown field": {
			nil,
			Page{Limit: 10, Order: by("id; DROP TABLE contacts", false)},
			"dan alice Bob carol",
			4,
		},
		"tag":             {[]string{"vip"}, Page{Limit: 10}, "Bob carol", 2},
		"any tag":         {[]string{"vip", "new"}, Page{Limit: 10}, "dan Bob carol", 3},
		"no such tag":     {[]string{"VIP"}, Page{Limit: 10}, "", 0},
		"search":          {nil, Page{Limit: 10, Search: "OB"}, "Bob", 1},
		"search in email": {nil, Page{Limit: 10, Search: "@x.y"}, "dan alice Bob carol", 4},
		"search %":        {nil, Page{Limit: 10, Search: "%"}, "alice", 1},
		"search _":        {nil, Page{Limit: 10, Search: "_"}, "Bob", 1},
		"search \\":       {nil, Page{Limit: 10, Search: `\`}, "dan", 1},
		"search '":        {nil, Page{Limit: 10, Search: `' OR '1'='1`}, "", 0},
		"search and tag":  {[]string{"new"}, Page{Limit: 1, Search: "d"}, "dan", 1},
	} {
		got, total, err := db.Contacts(t.Context(), c.tags, c.page)
		if err != nil || names(got) != c.want || total != c.total || got == nil {
			t.Errorf("%s: %q of %d, %v; want %q of %d", name, names(got), total, err, c.want, c.total)
		}
	}
}

func TestImportContacts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	rows := []agent.ContactChange{with("email", "a@x.y"), named(""), with("email", "b@x.y"), with("email", "A@X.Y")}
	rows[3].Notes = agent.Some("again")
	for on, want := range map[OnDuplicate]string{
		DuplicateUpdate: "imported ! imported updated",
		DuplicateSkip:   "imported ! imported skipped",
		DuplicateError:  "imported ! imported !",
	} {
		db := openFolder(t).Default()
		out, err := db.ImportContacts(WithActor(t.Context(), "ada@x.y"), rows, on)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range out {
			if o.Err != nil {
				o.Outcome = "!"
			}
			got = append(got, o.Outcome)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", on, got, want)
		}
		wantCode(t, out[1].Err, agent.CodeValidation)
		c, err := db.ResolveContact(t.Context(), "email", "a@x.y")
		if updated := on == DuplicateUpdate; err != nil || (c.Notes == "again") != updated {
			t.Errorf("%s: %+v, %v", on, c, err)
		}
		if n := value[int](t, db, "SELECT count(*) FROM logs"); n != 1 {
			t.Errorf("%s: %d log rows", on, n)
		}
	}
}

func TestImportStopsWithItsContext(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx, cancel := context.WithCancel(t.Context())
	rows := make([]agent.ContactChange, 1000)
	for i := range rows {
		rows[i] = numberedContact(i)
	}
	cancel()
	if _, err := db.ImportContacts(ctx, rows, DuplicateUpdate); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := value[int](t, db, "SELECT count(*) FROM contacts"); n != 0 {
		t.Errorf("%d contacts of an import that was cancelled", n)
	}
}

func TestEachContact(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	rows := make([]agent.ContactChange, 1201) // all in one transaction: one created_at
	for i := range rows {
		rows[i] = numberedContact(i)
	}
	if _, err := db.ImportContacts(t.Context(), rows, DuplicateError); err != nil {
		t.Fatal(err)
	}
	createContact(t, db, named("last"))
	seen := map[string]bool{}
	last := ""
	err := db.EachContact(t.Context(), func(c agent.Contact) error {
		seen[c.ID], last = true, c.Name
		return nil
	})
	if err != nil || len(seen) != 1202 || last != "last" {
		t.Errorf("%d contacts, the last %q, %v", len(seen), last, err)
	}
	enough := errors.New("enough")
	if err := db.EachContact(t.Context(), func(agent.Contact) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}

// Whatever SQL writes into a table that the program lists is either refused or can be
// listed.
func TestRowsWrittenBySQLCanBeListed(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	c, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	do(t, db, "INSERT INTO contacts(name) VALUES ('plain')")
	do(t, db, "INSERT INTO messages(conversation_id, role, content) VALUES (?,'user','plain')", c.ID)
	do(t, db, "INSERT INTO conversations DEFAULT VALUES")
	odd := []any{
		nil, -1, 7, 1.5, "", "x", "2026-02-30T00:00:00.000Z", "2026-01-31", "now", "0000-01-01T00:00:00.000Z",
		"[1,null,{}]", "[]", `{"a":1}`, []byte("\x00\xff"),
	}
	for table, columns := range map[string]string{
		"contacts":      "id name email phone notes tags metadata created_at updated_at",
		"conversations": "contact_id gateway_id external_thread_id muted metadata created_at updated_at",
		"messages":      "role content metadata created_at",
		"sources":       "type name status chunks config error_code created_at updated_at",
	} {
		for column := range strings.FieldsSeq(columns) {
			for _, v := range odd {
				_ = try(db, fmt.Sprintf("UPDATE %s SET %s = ?", table, column), v) // may be refused
				_, _, err1 := db.Contacts(t.Context(), nil, Page{Limit: 10})
				_, _, err2 := db.Conversations(t.Context(), ConversationFilter{}, Page{Limit: 10})
				_, _, err3 := db.Messages(t.Context(), c.ID, 0, 10, false)
				_, _, err4 := db.Sources(t.Context(), SourceFilter{}, Page{Limit: 10})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				err5 := db.EachContact(ctx, func(agent.Contact) error { return ctx.Err() })
				cancel()
				if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
					t.Fatalf("%s.%s = %#v: %v", table, column, v, err)
				}
			}
		}
	}
}

// The form of times that the tables require is the one that the program writes.
func TestTimesPassTheirChecks(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	start := time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)
	err := db.Do(t.Context(), func(tx *Tx) error {
		for ms := range 2000 {
			at := agent.At(start.Add(time.Duration(ms) * time.Millisecond))
			if _, err := tx.exec("INSERT INTO contacts(name, created_at) VALUES ('x',?)", at); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPlainTexts compares splitting with decoding.
func TestPlainTexts(t *testing.T) {
	for raw, plain := range map[string]bool{
		`[]`: true, `["vip"]`: true, `["vip","späti, neu","a]b"]`: true, `[""]`: true, `["",""]`: true,
		`["a\"b"]`: false, `["a\\","b"]`: false, `["a", "b"]`: false, `[ "a" ]`: false, `["a",1,"b"]`: false,
		`[null]`: false, `[["a"]]`: false, `{"a":"b"}`: false, `["]`: false, "[\"\xff\"]": false, ``: false,
	} {
		got, ok := plainTexts(raw)
		if ok != plain {
			t.Errorf("%q is plain: %v", raw, ok)
		}
		var want []string
		if err := json.Unmarshal([]byte(raw), &want); ok && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("%q is %q, want %q, %v", raw, got, want, err)
		}
	}
}
