package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// fieldErrors returns the fields that err is about.
func fieldErrors(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeValidation {
		t.Fatalf("not a validation error: %v", err)
	}
	all, several := e.Details["errors"].([]Issue)
	if !several {
		return []string{e.Details["field"].(string)}
	}
	var fields []string
	for _, is := range all {
		fields = append(fields, is.Field)
	}
	return fields
}

func check(t *testing.T, name string, err error, want ...string) {
	t.Helper()
	if got := fieldErrors(t, err); !slices.Equal(got, want) {
		t.Errorf("%s: errors about %q, want %q (%v)", name, got, want, err)
	}
}

func TestAgentValidate(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "support-bot": true, "A1-b2-C3": true, strings.Repeat("x", 64): true, "7": true,
		"": false, "-a": false, "a-": false, "a--b": false, "a b": false, "a_b": false, "ä": false, "a\n": false,
		"../x": false, "a\x00": false, strings.Repeat("x", 65): false, "a.b": false,
	} {
		a := Agent{Name: name, Status: StatusActive}
		if err := a.Validate(); (err == nil) != ok {
			t.Errorf("name %q: %v", name, err)
		}
	}
	check(
		t,
		"description",
		(&Agent{Name: "a", Status: StatusPaused, Description: strings.Repeat("ä", 501)}).Validate(),
		"description",
	)
	check(t, "all", (&Agent{Status: "asleep", Description: "\x00"}).Validate(), "name", "description", "status")
	check(t, "full", (&Agent{Name: "a", Status: StatusDisabled, Description: strings.Repeat("ä", 500)}).Validate())
}

func TestAgentChange(t *testing.T) {
	a := Agent{ID: "agent-1", Name: "old", Description: "text", Status: StatusActive}
	c := AgentChange{Name: Some("new"), Description: Optional[string]{Given: true, Null: true}}
	c.Apply(&a)
	if a.Name != "new" || a.Description != "" || a.Status != StatusActive {
		t.Errorf("got %+v", a)
	}
	if got := c.Fields(); !slices.Equal(got, []string{"description", "name"}) {
		t.Errorf("Fields() = %q", got)
	}
	if got := (AgentChange{Status: Some(StatusPaused)}).Fields(); !slices.Equal(got, []string{"status"}) {
		t.Errorf("Fields() = %q", got)
	}
}

func TestAdminValidate(t *testing.T) {
	for email, ok := range map[string]bool{
		"ada@example.com": true, "a+b@x": true, "ü@ö.example": true,
		"": false, "ada": false, "@x": false, "a@": false, "a@b@c": false, "a b@c": false,
		"a@b,c@d": false, "<a@b>": false, "a\x00@b": false, strings.Repeat("a", 250) + "@x.yz": false,
	} {
		if err := (&Admin{Email: email, Role: RoleViewer}).Validate(); (err == nil) != ok {
			t.Errorf("email %q: %v", email, err)
		}
	}
	for role, ok := range map[Role]bool{
		RoleOwner:  true,
		RoleAdmin:  true,
		RoleViewer: true,
		RoleNone:   false,
		"root":     false,
	} {
		if err := (&Admin{Email: "a@b", Role: role}).Validate(); (err == nil) != ok {
			t.Errorf("role %q: %v", role, err)
		}
	}
	if got := NormalEmail("  Ada@Example.COM "); got != "ada@example.com" {
		t.Errorf("NormalEmail = %q", got)
	}
}

func TestContactValidate(t *testing.T) {
	long := strings.Repeat("x", 20_001)
	for name, c := range map[string]struct {
		change ContactChange
		want   []string
	}{
		"minimal": {ContactChange{Name: Some("Ada")}, nil},
		"no name": {ContactChange{Name: Some("  ")}, []string{"name"}},
		"long":    {ContactChange{Name: Some(long), Notes: Some(long)}, []string{"name", "notes"}},
		"email":   {ContactChange{Name: Some("a"), Email: Some("nobody")}, []string{"email"}},
		"phone":   {ContactChange{Name: Some("a"), Phone: Some("()")}, []string{"phone"}},
		"tags":    {ContactChange{Name: Some("a"), Tags: Some([]string{"ok", long})}, []string{"tags[1]"}},
		"many tags": {
			ContactChange{Name: Some("a"), Tags: Some(strings.Split(strings.Repeat("x y ", 60), " "))},
			nil,
		},
		"NUL": {
			ContactChange{Name: Some("a\x00b"), ExternalID: Some("\x00")},
			[]string{"name", "external_id"},
		},
		"metadata": {ContactChange{Name: Some("a"), Metadata: Some(json.RawMessage(`{"a":{"b":[1]}}`))}, nil},
		"metadata list": {
			ContactChange{Name: Some("a"), Metadata: Some(json.RawMessage(`[1]`))},
			[]string{"metadata"},
		},
		"metadata null": {ContactChange{Name: Some("a"), Metadata: Some(json.RawMessage(`null`))}, nil},
		"metadata cut": {
			ContactChange{Name: Some("a"), Metadata: Some(json.RawMessage(`{"a":`))},
			[]string{"metadata"},
		},
		"metadata NUL": {
			ContactChange{Name: Some("a"), Metadata: Some(json.RawMessage(`{"a":"\u0000"}`))},
			[]string{"metadata"},
		},
		"metadata \\u": {ContactChange{Name: Some("a"), Metadata: Some(json.RawMessage(`{"a":"\\u0000 [{"}`))}, nil},
		"metadata depth": {
			ContactChange{Name: Some("a"), Metadata: Some(nested(MaxObjectDepth + 1))},
			[]string{"metadata"},
		},
		"metadata deep": {ContactChange{Name: Some("a"), Metadata: Some(nested(MaxObjectDepth))}, nil},
		"metadata big": {
			ContactChange{
				Name:     Some("a"),
				Metadata: Some(json.RawMessage(`{"a":"` + strings.Repeat("x", MaxObjectBytes) + `"}`)),
			},
			[]string{"metadata"},
		},
	} {
		var contact Contact
		c.change.Apply(&contact)
		check(t, name, contact.Validate(), c.want...)
	}
	many := make([]string, 101)
	check(t, "101 tags", (&Contact{Name: "a", Tags: many}).Validate(), "tags")
}

func nested(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat(`{"a":`, depth-1) + `{}` + strings.Repeat(`}`, depth-1))
}

func TestContactApply(t *testing.T) {
	c := Contact{Name: "Ada", Email: "a@b", Tags: []string{"x"}, Metadata: json.RawMessage(`{"k":1}`)}
	ContactChange{
		Email: Optional[string]{Given: true, Null: true},
		Phone: Some(" +1 555 "),
		Tags:  Some([]string{" y", "y"}),
	}.Apply(&c)
	if c.Name != "Ada" ||
		c.Email != "" ||
		c.Phone != "+1 555" ||
		!slices.Equal(c.Tags, []string{"y"}) ||
		string(c.Metadata) != `{"k":1}` {
		t.Errorf("got %+v", c)
	}
	ContactChange{Metadata: Optional[json.RawMessage]{Given: true, Null: true}}.Apply(&c)
	if string(c.Metadata) != "{}" {
		t.Errorf("metadata %s", c.Metadata)
	}
	c.Telegram, c.WhatsApp, c.ExternalID = "a", "b", "c"
	for n, want := range []string{"", "+1 555", "a", "b", "c"} {
		if got := c.Identifier(ContactIdentifiers[n]); got != want {
			t.Errorf("Identifier(%s) = %q", ContactIdentifiers[n], got)
		}
	}
	if c.Identifier("notes") != "" {
		t.Error("notes are accepted as an identifier")
	}
}

func TestConversationValidate(t *testing.T) {
	var c Conversation
	ConversationChange{ContactID: Some("contact-1"), Muted: Some(true)}.Apply(&c)
	check(t, "plain", c.Validate())
	if string(c.Metadata) != "{}" || !c.Muted {
		t.Errorf("got %+v", c)
	}
	c.GatewayID, c.Metadata = strings.Repeat("x", 101), json.RawMessage(`7`)
	check(t, "bad", c.Validate(), "gateway_id", "metadata")
}

func TestMessageValidate(t *testing.T) {
	for _, role := range []MessageRole{MessageUser, MessageAssistant, MessageSystem, MessageTool} {
		check(t, string(role), (&Message{Role: role, Content: "hello"}).Validate())
	}
	check(t, "empty", (&Message{}).Validate(), "role", "content")
	check(t, "role", (&Message{Role: "robot", Content: "x"}).Validate(), "role")
	check(t, "long", (&Message{Role: "user", Content: strings.Repeat("ä", MaxMessageLength+1)}).Validate(), "content")
}

func TestCheckSourceName(t *testing.T) {
	check(t, "fine", CheckSourceName("Handbook.pdf"))
	check(t, "blank", CheckSourceName(" \t"), "name")
	check(t, "long", CheckSourceName(strings.Repeat("x", 201)), "name")
}

func TestDisplayAndCommandNames(t *testing.T) {
	for name, want := range map[string]struct{ display, command bool }{
		"google":                 {true, true},
		"7 Straße (a@b) +_-.":    {true, false},
		"tools/git":              {false, true},
		strings.Repeat("ä", 64):  {true, true},
		strings.Repeat("ä", 65):  {false, true},
		strings.Repeat("東", 100): {false, true},
		strings.Repeat("東", 101): {false, false},
		"":                       {false, false},
		" a":                     {false, false},
		"a\n":                    {false, false},
		"a\xff":                  {false, false},
	} {
		if isDisplayName(name) != want.display || IsCommandName(name) != want.command {
			t.Errorf("%.10q: %v, %v, want %v", name, isDisplayName(name), IsCommandName(name), want)
		}
	}
}
