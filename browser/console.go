package browser

import (
	"sync"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// Limits of a session's console.
const (
	maxLogEntries = 1000
	maxLogText    = 4000 // bytes of an entry
)

// LogEntry is a line of a page's console.
type LogEntry struct {
	Seq       int64  `json:"-"` // increases by one with each line of the session
	PageID    string `json:"pageId"`
	Level     string `json:"level"` // log, debug, info, warn or error
	Text      string `json:"text"`
	Timestamp int64  `json:"timestamp"` // Unix milliseconds
}

// console keeps the newest lines of a session.
type console struct {
	mu      sync.Mutex
	last    int64
	entries []LogEntry
	added   chan struct{} // closed and replaced with each line
}

func newConsole() *console {
	return &console{added: make(chan struct{})}
}

func (c *console) add(pageID, level, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	if len(c.entries) >= maxLogEntries {
		c.entries = append(c.entries[:0], c.entries[maxLogEntries/10:]...)
	}
	c.entries = append(c.entries, LogEntry{
		Seq:       c.last,
		PageID:    pageID,
		Level:     level,
		Text:      agent.Clip(text, maxLogText),
		Timestamp: time.Now().UnixMilli(),
	})
	close(c.added)
	c.added = make(chan struct{})
}

// Logs returns the console lines after the one with this number, from the
// newest 1,000. 0 is before the first.
func (session *Session) Logs(after int64) []LogEntry {
	c := session.console
	c.mu.Lock()
	defer c.mu.Unlock()
	i := len(c.entries)
	for i > 0 && c.entries[i-1].Seq > after {
		i--
	}
	return append([]LogEntry(nil), c.entries[i:]...)
}

// LogAdded returns a channel that is closed when the next line arrives. Call it
// before Logs, so that no line is missed.
func (session *Session) LogAdded() <-chan struct{} {
	session.console.mu.Lock()
	defer session.console.mu.Unlock()
	return session.console.added
}

// consoleLevels maps Playwright's names of levels to ours.
var consoleLevels = map[string]string{
	"log":     "log",
	"debug":   "debug",
	"info":    "info",
	"error":   "error",
	"warning": "warn",
	"assert":  "error",
	"trace":   "debug",
}

// onConsole is Playwright's handler for console lines. It must not call
// Playwright.
func (session *Session) onConsole(m playwright.ConsoleMessage) {
	level := consoleLevels[m.Type()]
	if level == "" {
		level = "log"
	}
	session.console.add(session.pageID(m.Page()), level, m.Text())
}

// onWebError is Playwright's handler for uncaught errors of a page.
func (session *Session) onWebError(e playwright.WebError) {
	session.console.add(session.pageID(e.Page()), "error", e.Error().Error())
}

// pageID returns the id of one of our tabs, or "".
func (session *Session) pageID(page playwright.Page) string {
	session.mu.Lock()
	defer session.mu.Unlock()
	for _, p := range session.pages {
		if p.page == page {
			return p.id
		}
	}
	return ""
}
