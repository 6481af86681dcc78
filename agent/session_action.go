package agent

import (
	"encoding/json"
	"net/url"
)

// SessionAction is an action that was done in a browser session, or failed.
type SessionAction struct {
	Seq        int64           `json:"seq" doc:"Increases with each action." example:"12"`
	Action     string          `json:"action" example:"click"`
	Input      json.RawMessage `json:"input" types:"object" doc:"The action's fields, except scripts and their args, file contents, and text typed into a password field or an element that was not found."`
	URL        string          `json:"url" doc:"URL of the active tab afterwards." example:"https://example.com/"`
	DurationMS int64           `json:"duration_ms" example:"41"`
	Error      string          `json:"error" doc:"Why it failed; empty if it succeeded." example:"click was not done within 30000 ms"`
	CreatedAt  Time            `json:"created_at" format:"date-time"`
}

// Recorded returns the fields of the action as the log of its session keeps
// them. Text is left out unless typed says that it may be shown.
func (a Action) Recorded(typed bool) json.RawMessage {
	a.Action, a.Script, a.Args = "", "", nil
	if !typed {
		a.Text = nil
	}
	if a.Text != nil {
		text := Clip(*a.Text, maxRecordedText)
		a.Text = &text
	}
	files := a.Files
	a.Files = nil
	for _, f := range files {
		a.Files = append(a.Files, ActionFile{Name: f.Name, MIMEType: f.MIMEType})
	}
	a.URL = Clip(withoutPassword(a.URL), maxRecordedText)
	raw, err := json.Marshal(a)
	if err != nil || len(raw) > maxRecordedInput {
		return json.RawMessage("{}")
	}
	return raw
}

// withoutPassword returns an address without the password that may be in it.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = url.User(u.User.Username())
	return u.String()
}
