// Package browser manages browser sessions. Each is a separate profile, with
// its tabs, in a Chromium that all sessions share, and is driven by actions.
//
// A session is opened by Create and lives in memory; its row in the agent's
// file records it. All traffic of a page goes through a proxy in this process
// that enforces the rules of agent/egress. Chromium starts with the first
// session and ends some minutes after the last.
//
// # For other packages
//
//	(*Browser).Session(db, id) (*Session, error)   an open session; NOT_FOUND when there is none
//	(*Session).ID, DB, Status, Done                Done is closed when it has ended
//	(*Session).Pages, ActivePage, Page(id)         open tabs, oldest first, with ids that stay
//	(*Session).Activate(ctx, *Page)                makes a tab the active one
//	(*Session).OpenPage(ctx) (*Page, error)        a new tab, which becomes active
//	(*Session).Changes() (<-chan struct{}, func()) signals that tabs, addresses, titles, the active tab
//	                                               or the status changed: read them again; func() ends it
//	(*Session).Logs(after int64) []LogEntry        the console's newest lines, numbered
//	(*Session).LogAdded() <-chan struct{}          closed at the next line
//	(*Session).Do, DoAll                           actions, alone and in batches
//	(*Session).Takeover(ctx, on bool) error        while on, scripted actions are INVALID_ACTION
//	(*Session).Touch()                             a person's activity: the session is not idle
//	(*Page).ID, URL, Title, Done                   what was last seen; no call to the browser
//	(*Page).Navigate(ctx, url) error               under the same rules as the action
//	(*Page).History(ctx, Back|Forward|Reload)      moves without waiting for the load
//	(*Page).Close(ctx) error
//	(*Page).CDP(ctx) (playwright.CDPSession, error) the caller detaches it
//	Within(ctx, call)                              runs a call of Playwright with a time limit
//
// Playwright's events arrive on the one goroutine that reads the driver's
// output. A handler that calls Playwright there, or blocks, hangs every
// session: handlers only record what happened and wake a goroutine that acts on
// it.
package browser
