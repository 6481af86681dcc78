package agent

import (
	"fmt"
	"regexp"
	"time"
)

// SessionStatus is the state of a browser session.
type SessionStatus string

// The states of a browser session: it takes actions; it rests; a person
// controls it; it has ended; it ended because something broke.
const (
	SessionActive   SessionStatus = "active"
	SessionPaused   SessionStatus = "paused"
	SessionTakeover SessionStatus = "takeover"
	SessionClosed   SessionStatus = "closed"
	SessionFailed   SessionStatus = "error"
)

// Ended reports whether nothing is behind the session any more.
func (s SessionStatus) Ended() bool { return s == SessionClosed || s == SessionFailed }

// SessionKept is how long a session that ended by itself stays in the list.
const SessionKept = time.Hour

// Viewport is the size of a page as it is laid out and shown, in CSS pixels.
type Viewport struct {
	Width  int `json:"width" minimum:"100" maximum:"4096" example:"1280"`
	Height int `json:"height" minimum:"100" maximum:"4096" example:"720"`
}

// DefaultViewport is what a session has when none is asked for.
var DefaultViewport = Viewport{Width: 1280, Height: 720}

// Session is a browser session: a profile of its own with its tabs.
type Session struct {
	ID           string        `json:"id" example:"session-06f1q2s3t4v5a6b7c8d9"`
	Status       SessionStatus `json:"status" enum:"active,paused,takeover,closed,error" doc:"takeover: a person controls it; closed: it ended; error: it ended because something broke." example:"active"`
	Headless     bool          `json:"headless" example:"true"`
	Viewport     Viewport      `json:"viewport"`
	Persist      bool          `json:"persist" doc:"Its cookies and storage are kept for the agent's next such session."`
	Error        string        `json:"error,omitempty" doc:"Why it broke."`
	CreatedAt    Time          `json:"created_at" format:"date-time"`
	LastActivity Time          `json:"last_activity" format:"date-time"`
	ClosedAt     Time          `json:"closed_at" format:"date-time" nullable:"true" doc:"When it ended; null while it is open."`
}

// SessionOptions are what a client may ask of a new session. Absent fields
// have their defaults.
type SessionOptions struct {
	Headless  *bool         `json:"headless,omitempty" doc:"true when it is not given." example:"true"`
	Viewport  *Viewport     `json:"viewport,omitempty" doc:"1280 by 720 when it is not given."`
	UserAgent string        `json:"user_agent,omitempty" maxLength:"500" doc:"Sent in place of the browser's own."`
	Locale    string        `json:"locale,omitempty" doc:"Language tag, such as de-DE." example:"en-GB"`
	Timezone  string        `json:"timezone,omitempty" doc:"IANA name." example:"Europe/Berlin"`
	Dialogs   string        `json:"dialogs,omitempty" enum:"accept,dismiss" doc:"How alert, confirm and prompt are answered; accept when it is not given." example:"accept"`
	Persist   bool          `json:"persist,omitempty" doc:"Begin with the cookies and storage of the agent's last such session, and keep them at the end."`
	Proxy     *SessionProxy `json:"proxy,omitempty"`
}

// SessionProxy is an HTTP proxy that a session goes out by.
type SessionProxy struct {
	Server   string `json:"server" doc:"http://host:port." example:"http://proxy.example.com:3128"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// localeForm is the shape of a language tag (BCP 47) as browsers take it.
var localeForm = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$`)

// Validate names every field that is off.
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
		for field, text := range map[string]string{"proxy.server": p.Server, "proxy.username": p.Username, "proxy.password": p.Password} {
			is.checkText(field, text, 500)
		}
	}
	return is.Err()
}

// isHeaderText reports whether a text can be sent as the value of a header.
func isHeaderText(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// String writes a viewport as width×height.
func (v Viewport) String() string { return fmt.Sprintf("%d×%d", v.Width, v.Height) }
