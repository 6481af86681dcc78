package credentials

import (
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// TestTicketsExpire moves the clock past the end of a ticket, and past that of the login
// that it began.
func TestTicketsExpire(t *testing.T) {
	f, c, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	now := time.Now()
	c.now = func() time.Time { return now }
	db := f.Default()
	made, err := c.Create(t.Context(), db, Draft{CredentialChange: agent.CredentialChange{
		Name:   agent.Some("google"),
		Type:   agent.Some(agent.CredentialOAuth2),
		Hosts:  agent.Some([]string{"api.example.com"}),
		Secret: agent.Some(map[string]string{"client_secret": "s"}),
		Config: agent.Some(agent.CredentialConfig{
			Grant:    agent.GrantCode,
			ClientID: "c",
			AuthURL:  "https://login.example.com/auth",
			TokenURL: "https://login.example.com/token",
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	connect := func() string {
		begun, err := c.Connect(t.Context(), db, made.ID, "ada@example.com")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(begun.URL, "http://localhost/oauth/start/")
	}
	ticket := connect()
	now = now.Add(loginLife - time.Second)
	if p, err := c.Pending(t.Context(), ticket); err != nil ||
		p.By != "ada@example.com" ||
		p.Provider != "login.example.com" ||
		p.Credential != "google" ||
		!p.Secure {
		t.Errorf("just before its end: %+v, %v", p, err)
	}
	now = now.Add(time.Second)
	if _, err := c.Pending(t.Context(), ticket); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("the page of an expired ticket: %v", err)
	}
	if _, _, err := c.Start(t.Context(), ticket); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("an expired ticket: %v", err)
	}
	if _, _, err := c.Start(t.Context(), connect()); err != nil {
		t.Errorf("a new ticket: %v", err)
	}
}
