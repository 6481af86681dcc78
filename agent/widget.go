package agent

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// WidgetConfig specifies the appearance and the limits of a website's widget. It
// is the part of a gateway's config for the type web and contains no secrets.
type WidgetConfig struct {
	AllowedOrigins    []string `json:"allowedOrigins,omitempty"`
	Title             string   `json:"title,omitempty"`
	Greeting          string   `json:"greeting,omitempty"`
	Color             string   `json:"color,omitempty"`
	AskEmail          string   `json:"askEmail,omitempty"`
	Hours             string   `json:"hours,omitempty"`
	OfflineMessage    string   `json:"offlineMessage,omitempty"`
	MessagesPerMinute int      `json:"messagesPerMinute,omitempty"`
	MessagesPerDay    int      `json:"messagesPerDay,omitempty"`
	Files             *bool    `json:"files,omitempty"` // nil: true
	FileTypes         []string `json:"fileTypes,omitempty"`
	MaxFiles          int      `json:"maxFiles,omitempty"`
	MaxFileSize       int      `json:"maxFileSize,omitempty"` // MB
}

// WidgetConfigChange is a partial update of a WidgetConfig.
type WidgetConfigChange struct {
	AllowedOrigins    Optional[[]string] `json:"allowedOrigins,omitempty" doc:"web: origins of the pages that may embed the widget, at most 50. Empty: none." example:"[\"https://shop.example.com\"]"`
	Title             Optional[string]   `json:"title,omitempty" doc:"web: the title of the widget; at most 100 characters." example:"Ask us"`
	Greeting          Optional[string]   `json:"greeting,omitempty" doc:"web: the first message of a conversation; at most 1000 characters." example:"Hello! How can we help?"`
	Color             Optional[string]   `json:"color,omitempty" doc:"web: color of the button and the header." example:"#1f6f54"`
	AskEmail          Optional[string]   `json:"askEmail,omitempty" enum:"offline,always,never" doc:"web: when visitors are asked for their email address: if no one can answer (offline), before their first message (always), or never." example:"offline"`
	Hours             Optional[string]   `json:"hours,omitempty" doc:"web: opening hours in the agent's time zone. Empty: always open." example:"Mon-Fri 09:00-17:00, Sat 10:00-14:00"`
	OfflineMessage    Optional[string]   `json:"offlineMessage,omitempty" doc:"web: shown when no one can answer; at most 1000 characters." example:"Nobody is here right now. Leave your email address, and we answer there."`
	MessagesPerMinute Optional[int]      `json:"messagesPerMinute,omitempty" doc:"web: messages per minute of one visitor, 1 to 100." example:"10"`
	MessagesPerDay    Optional[int]      `json:"messagesPerDay,omitempty" doc:"web: messages per day (UTC) of all visitors, 1 to 100000." example:"500"`
	Files             Optional[bool]     `json:"files,omitempty" doc:"web: visitors may send files; default: true." example:"true"`
	FileTypes         Optional[[]string] `json:"fileTypes,omitempty" doc:"web: extensions of the files that visitors may send, at most 50. Empty: the usual pictures, recordings, documents, tables and archives." example:"[\"pdf\",\"png\",\"jpg\"]"`
	MaxFiles          Optional[int]      `json:"maxFiles,omitempty" doc:"web: files of one message, 1 to 20." example:"5"`
	MaxFileSize       Optional[int]      `json:"maxFileSize,omitempty" doc:"web: size of a file in MB, 1 to 20." example:"10"`
}

// When visitors are asked for their email address.
const (
	AskEmailOffline = "offline" // when no one can answer now
	AskEmailAlways  = "always"  // before the first message
	AskEmailNever   = "never"
)

// Limits of a widget.
const (
	MaxOrigins         = 50
	MaxVisitorMessage  = 4000 // characters
	maxWidgetText      = 1000
	maxWidgetPerMinute = 100
	maxWidgetPerDay    = 100_000
)

// WithDefaults returns the config with defaults for fields that are not set.
func (c WidgetConfig) WithDefaults() WidgetConfig {
	c.Title = cmp.Or(c.Title, "Ask us")
	c.Greeting = cmp.Or(c.Greeting, "Hello! How can we help?")
	c.Color = cmp.Or(c.Color, "#1f6f54")
	c.AskEmail = cmp.Or(c.AskEmail, AskEmailOffline)
	c.OfflineMessage = cmp.Or(c.OfflineMessage, "Nobody can answer right now. Your messages are kept.")
	c.MessagesPerMinute = cmp.Or(c.MessagesPerMinute, 10)
	c.MessagesPerDay = cmp.Or(c.MessagesPerDay, 500)
	if c.AllowedOrigins == nil {
		c.AllowedOrigins = []string{}
	}
	return c.withFileDefaults()
}

// Allows reports whether pages of an origin may show the widget.
func (c *WidgetConfig) Allows(origin string) bool {
	return slices.Contains(c.AllowedOrigins, origin)
}

// apply writes the given fields into config.
func (ch WidgetConfigChange) apply(config *WidgetConfig) {
	if ch.AllowedOrigins.Given {
		config.AllowedOrigins = nil
		for _, origin := range ch.AllowedOrigins.Value {
			if normal, ok := pageOrigin(origin); ok {
				origin = normal
			}
			if !slices.Contains(config.AllowedOrigins, origin) {
				config.AllowedOrigins = append(config.AllowedOrigins, origin)
			}
		}
	}
	ch.Title.Into(&config.Title)
	ch.Greeting.Into(&config.Greeting)
	ch.Color.Into(&config.Color)
	ch.AskEmail.Into(&config.AskEmail)
	ch.Hours.Into(&config.Hours)
	ch.OfflineMessage.Into(&config.OfflineMessage)
	ch.MessagesPerMinute.Into(&config.MessagesPerMinute)
	ch.MessagesPerDay.Into(&config.MessagesPerDay)
	ch.applyFiles(config)
}

var (
	colorPattern = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)
	hostPattern  = regexp.MustCompile(`^([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)
)

// pageOrigin returns an origin as browsers send it in the Origin header. Anything
// beyond scheme, host and port is invalid, and so is a pattern.
func pageOrigin(raw string) (string, bool) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimSpace(raw), "/"))
	if err != nil ||
		u.Scheme != "https" && u.Scheme != "http" ||
		u.Path != "" ||
		u.User != nil ||
		u.RawQuery != "" ||
		u.Fragment != "" ||
		u.Opaque != "" {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host, len(host) <= 300 && hostPattern.MatchString(host)
}

// validate checks the fields of a widget.
func (c *WidgetConfig) validate(is *Issues) {
	is.Check(
		len(c.AllowedOrigins) <= MaxOrigins,
		"config.allowedOrigins",
		fmt.Sprintf("must have at most %d", MaxOrigins),
	)
	for _, origin := range c.AllowedOrigins {
		normal, ok := pageOrigin(origin)
		is.Check(
			ok && normal == origin,
			"config.allowedOrigins",
			"must be origins such as https://shop.example.com, without a path or a wildcard",
		)
	}
	is.checkText("config.title", c.Title, 100)
	is.Check(!strings.ContainsAny(c.Title, "\r\n"), "config.title", "must be a single line")
	is.checkText("config.greeting", c.Greeting, maxWidgetText)
	is.checkText("config.offlineMessage", c.OfflineMessage, maxWidgetText)
	is.Check(c.Color == "" || colorPattern.MatchString(c.Color), "config.color", "must be a color such as #1f6f54")
	is.Check(
		slices.Contains([]string{"", AskEmailOffline, AskEmailAlways, AskEmailNever}, c.AskEmail),
		"config.askEmail",
		"must be offline, always or never",
	)
	_, err := ParseHours(c.Hours)
	is.Check(err == nil, "config.hours", "must be hours such as Mon-Fri 09:00-17:00, Sat 10:00-14:00")
	is.Check(
		c.MessagesPerMinute >= 0 && c.MessagesPerMinute <= maxWidgetPerMinute,
		"config.messagesPerMinute",
		fmt.Sprintf("must be 1 to %d", maxWidgetPerMinute),
	)
	is.Check(
		c.MessagesPerDay >= 0 && c.MessagesPerDay <= maxWidgetPerDay,
		"config.messagesPerDay",
		fmt.Sprintf("must be 1 to %d", maxWidgetPerDay),
	)
	c.validateFiles(is)
}

// fields lists the fields that are set.
func (c *WidgetConfig) fields() (set []string) {
	for field, is := range map[string]bool{
		"allowedOrigins":    len(c.AllowedOrigins) > 0,
		"title":             c.Title != "",
		"greeting":          c.Greeting != "",
		"color":             c.Color != "",
		"askEmail":          c.AskEmail != "",
		"hours":             c.Hours != "",
		"offlineMessage":    c.OfflineMessage != "",
		"messagesPerMinute": c.MessagesPerMinute != 0,
		"messagesPerDay":    c.MessagesPerDay != 0,
		"files":             c.Files != nil,
		"fileTypes":         len(c.FileTypes) > 0,
		"maxFiles":          c.MaxFiles != 0,
		"maxFileSize":       c.MaxFileSize != 0,
	} {
		if is {
			set = append(set, field)
		}
	}
	return set
}

// VisitorMessage is a message from a visitor of a website.
type VisitorMessage struct {
	ID     string `json:"id" required:"true" doc:"An id set by the visitor's browser. A repeated message is ignored."`
	Text   string `json:"text,omitempty" doc:"May be empty if there are files."`
	Email  string `json:"email,omitempty" doc:"The visitor's email address."`
	Person bool   `json:"person,omitempty" doc:"The visitor asks for a person."`
}

// Validate checks a visitor's message that comes with the given number of files.
func (m *VisitorMessage) Validate(files int) error {
	var is Issues
	is.Check(m.ID != "", "id", "is required")
	is.checkText("id", m.ID, 100)
	is.Check(strings.TrimSpace(m.Text) != "" || files > 0, "text", "is required")
	is.Check(
		utf8.RuneCountInString(m.Text) <= MaxVisitorMessage,
		"text",
		fmt.Sprintf("must have at most %d characters", MaxVisitorMessage),
	)
	is.checkText("text", m.Text, MaxVisitorMessage)
	is.checkEmail("email", m.Email, false)
	return is.Err()
}

// CheckEmail checks the email address that a visitor gives.
func CheckEmail(field, address string) error {
	var is Issues
	is.Check(address != "", field, "is required")
	is.checkEmail(field, address, false)
	return is.Err()
}
