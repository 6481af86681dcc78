package agent

import (
	"fmt"
	"regexp"
	"time"
)

// SessionStatus is the state of a browser session.
type SessionStatus string

// The states of a browser session: it accepts actions; it is paused; a person
// controls it; it was closed; it failed.
const (
	SessionActive   SessionStatus = "active"
	SessionPaused   SessionStatus = "paused"
	SessionTakeover SessionStatus = "takeover"
	SessionClosed   SessionStatus = "closed"
	SessionFailed   SessionStatus = "error"
)

// Ended reports whether the session is closed or has failed.
func (s SessionStatus) Ended() bool { return s == SessionClosed || s == SessionFailed }

// Limits on what is kept of sessions that have ended and were not deleted.
const (
	SessionKept       = 30 * 24 * time.Hour
	MaxEndedSessions  = 100 // of an agent
	MaxSessionActions = 500 // of a session
	maxRecordedText   = 1_000
	maxRecordedInput  = 8 << 10 // bytes of an action's fields
)

// Viewport is the size of a page's layout, in CSS pixels.
type Viewport struct {
	Width  int `json:"width" minimum:"100" maximum:"4096" example:"1280"`
	Height int `json:"height" minimum:"100" maximum:"4096" example:"720"`
}

// DefaultViewport is the default size.
var DefaultViewport = Viewport{Width: 1280, Height: 720}

// Session is a browser session: a profile with its tabs.
type Session struct {
	ID           string        `json:"id" example:"session-06f1q2s3t4v5a6b7c8d9"`
	Status       SessionStatus `json:"status" enum:"active,paused,takeover,closed,error" doc:"takeover: a person controls it; closed: it has ended; error: it ended because of a failure." example:"active"`
	Headless     bool          `json:"headless" example:"true"`
	Viewport     Viewport      `json:"viewport"`
	Persist      bool          `json:"persist" doc:"Its cookies and storage are kept for the agent's next persistent session."`
	Error        string        `json:"error,omitempty" doc:"Why it failed."`
	CreatedAt    Time          `json:"created_at" format:"date-time"`
	LastActivity Time          `json:"last_activity" format:"date-time"`
	URL          string        `json:"url" doc:"Address of its active tab; when it has ended, the last one." example:"https://example.com/"`
	Title        string        `json:"title" doc:"Title of that tab." example:"Example Domain"`
	ClosedAt     Time          `json:"closed_at" format:"date-time" nullable:"true" doc:"When it ended; null while it is open."`
}

// SessionOptions are a client's options for a new session. Omitted fields have
// their defaults.
type SessionOptions struct {
	Headless  *bool         `json:"headless,omitempty" doc:"Default: true." example:"true"`
	Viewport  *Viewport     `json:"viewport,omitempty" doc:"Default: 1280 by 720."`
	UserAgent string        `json:"user_agent,omitempty" maxLength:"500" doc:"Replaces the browser's own."`
	Locale    string        `json:"locale,omitempty" doc:"Language tag, such as de-DE." example:"en-GB"`
	Timezone  string        `json:"timezone,omitempty" doc:"IANA name." example:"Europe/Berlin"`
	Dialogs   string        `json:"dialogs,omitempty" enum:"accept,dismiss" doc:"How alert, confirm and prompt are answered. Default: accept." example:"accept"`
	Persist   bool          `json:"persist,omitempty" doc:"Start with the cookies and storage of the agent's last persistent session, and keep them at the end."`
	Proxy     *SessionProxy `json:"proxy,omitempty"`
	CDP       bool          `json:"cdp,omitempty" doc:"Open it in a separate Chromium, which a client of the Chrome DevTools Protocol, such as Playwright, can use too. The server must allow it."`
}

// SessionProxy is an HTTP proxy for a session's requests.
type SessionProxy struct {
	Server   string `json:"server" doc:"http://host:port." example:"http://proxy.example.com:3128"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// localeForm matches language tags (BCP 47) that browsers accept.
var localeForm = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$`)

// Validate returns an error that names every invalid field.
func (o *SessionOptions) Validate() error {
	var is Issues
	if v := o.Viewport; v != nil {
		checkSide := func(field string, n int) {
			is.Check(n >= 100 && n <= 4096, field, "must be 100 to 4096")
		}
		checkSide("viewport.width", v.Width)
		checkSide("viewport.height", v.Height)
	}
	is.checkText("user_agent", o.UserAgent, 500)
	is.Check(isHeaderText(o.UserAgent), "user_agent", "must be printable ASCII on one line")
	is.Check(o.Locale == "" || localeForm.MatchString(o.Locale), "locale", "must be a language tag such as en-GB")
	if o.Timezone != "" {
		_, err := time.LoadLocation(o.Timezone)
		is.Check(err == nil && o.Timezone != "Local", "timezone", "must be an IANA time zone such as Europe/Berlin")
	}
	is.Check(o.Dialogs == "" || o.Dialogs == "accept" || o.Dialogs == "dismiss", "dialogs", "must be accept or dismiss")
	if p := o.Proxy; p != nil {
		is.Check(p.Server != "", "proxy.server", "is required")
		for field, text := range map[string]string{
			"proxy.server":   p.Server,
			"proxy.username": p.Username,
			"proxy.password": p.Password,
		} {
			is.checkText(field, text, 500)
		}
	}
	return is.Err()
}

// isHeaderText reports whether text can be sent as a header value.
func isHeaderText(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// String returns a viewport as width×height.
func (v Viewport) String() string {
	return fmt.Sprintf("%d×%d", v.Width, v.Height)
}
