package browser

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// Bounds of what a persistent session leaves to the next.
const (
	maxState     = 8 << 20 // bytes as JSON
	maxOrigins   = 200     // whose storage is known while the session is open
	stateTimeout = 5 * time.Second
)

// How often a persistent session is looked at while it is open, so that a
// server that is killed takes little of it along.
const (
	keepEvery  = 2 * time.Second
	keepAfter  = 10 * time.Second // after activity: pages store what a click brought about some time later
	keepShare  = 20               // a look that took long is followed by a pause so many times as long
	keepAnswer = time.Second      // a tab's; one that is busy is looked at the next time
)

// kept is what a persistent session knows of what it would leave.
type kept struct {
	mu      sync.Mutex // held while it is read and stored
	origins map[string][]playwright.NameValue
	stored  [sha256.Size]byte // of what the agent's file got from this session, or the session from it
}

// formerState is what the agent's last persistent session left; nil when there
// is nothing, or nothing that can be used.
func (s *Session) formerState(ctx context.Context) (*playwright.OptionalStorageState, error) {
	if !s.options.Persist {
		return nil, nil
	}
	text, locked, err := s.db.BrowserState(ctx)
	if err != nil {
		return nil, err
	}
	if locked {
		return nil, s.db.Log(ctx, agent.LevelWarn, "browser", "the logins kept for the browser were sealed with another master key; the session begins without them", map[string]any{"session_id": s.id})
	}
	var state playwright.OptionalStorageState
	if text == "" || json.Unmarshal([]byte(text), &state) != nil {
		return nil, nil
	}
	for _, o := range state.Origins {
		s.kept.origins[o.Origin] = o.LocalStorage
	}
	s.kept.stored = sha256.Sum256([]byte(text))
	return &state, nil
}

// keep stores cookies and storage again and again as long as the session is
// open and somebody does something with it. It is the body of a goroutine.
func (s *Session) keep() {
	timer := time.NewTimer(keepEvery)
	defer timer.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		if s.Status() == agent.SessionTakeover || began.Sub(s.LastActivity()) <= keepAfter {
			s.keepState(s.life, s.look)
		}
		timer.Reset(keepEvery + keepShare*time.Since(began))
	}
}

// keepState seals what read finds in the agent's file for the next persistent
// session, when it is something else than before.
func (s *Session) keepState(ctx context.Context, read func(context.Context) (*playwright.StorageState, error)) {
	if !s.options.Persist || s.context == nil {
		return
	}
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	state, err := read(limited)
	if err != nil {
		if ctx.Err() == nil {
			s.browser.log.Warn("cookies and storage of a browser session could not be read", "session", s.id, "error", err)
		}
		return
	}
	text, err := stateText(state)
	if sum := sha256.Sum256(text); err == nil && sum != s.kept.stored && len(text) <= maxState {
		if err = s.db.SetBrowserState(limited, string(text)); err == nil {
			s.kept.stored = sum
		}
	}
	if err != nil && agent.ErrorCode(err) != agent.CodeNotFound && ctx.Err() == nil {
		s.browser.log.Error("cookies and storage of a browser session could not be kept", "session", s.id, "error", err)
	}
}

// stateText is the state as JSON, the same for the same state.
func stateText(state *playwright.StorageState) ([]byte, error) {
	for _, o := range state.Origins {
		slices.SortFunc(o.LocalStorage, func(a, b playwright.NameValue) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(state.Origins, func(a, b playwright.Origin) int { return cmp.Compare(a.Origin, b.Origin) })
	slices.SortFunc(state.Cookies, func(a, b playwright.Cookie) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	text, err := json.Marshal(state)
	if err == nil && len(text) > maxState {
		state.Origins = nil // cookies are what logins live by
		text, err = json.Marshal(state)
	}
	return text, err
}

// look reads all cookies, and the storage of the sites that tabs are at; what
// other sites have stored is taken as it was last seen. Pages notice nothing.
func (s *Session) look(ctx context.Context) (*playwright.StorageState, error) {
	cookies, err := Within(ctx, func() ([]playwright.Cookie, error) { return s.context.Cookies() })
	if err != nil {
		return nil, err
	}
	for _, p := range s.Pages() {
		origin := originOf(p.URL())
		items, ok := p.storage(ctx, origin)
		if _, known := s.kept.origins[origin]; !ok || !known && len(s.kept.origins) >= maxOrigins {
			continue
		}
		s.kept.origins[origin] = items
		if len(items) == 0 {
			delete(s.kept.origins, origin)
		}
	}
	state := &playwright.StorageState{Cookies: cookies, Origins: []playwright.Origin{}}
	for origin, items := range s.kept.origins {
		state.Origins = append(state.Origins, playwright.Origin{Origin: origin, LocalStorage: slices.Clone(items)})
	}
	return state, nil
}

// lookThrough is look for a session that ends: sites that no tab is at any more
// are opened out of sight. When that takes too long, what look finds must do.
func (s *Session) lookThrough(ctx context.Context) (*playwright.StorageState, error) {
	seen, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, stateTimeout/2)
	defer cancel()
	all, err := Within(limited, func() (*playwright.StorageState, error) { return s.context.StorageState() })
	if err != nil {
		return seen, nil
	}
	return all, nil
}

// originOf is the origin of an address of the web; "" when it has none.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// storage reads what the site that a tab is at has stored; false when it does
// not say, or too much. Only the session's keeper calls it.
func (p *Page) storage(ctx context.Context, origin string) (items []playwright.NameValue, ok bool) {
	if origin == "" || !p.looking.CompareAndSwap(false, true) {
		return nil, false // the question before is not answered yet
	}
	ctx, cancel := context.WithTimeout(ctx, keepAnswer)
	defer cancel()
	got, err := Within(ctx, func() (any, error) {
		defer p.looking.Store(false)
		if p.store == nil {
			opened, err := p.session.context.NewCDPSession(p.page)
			if err != nil {
				return nil, err
			}
			p.store = opened
		}
		return p.store.Send("DOMStorage.getDOMStorageItems", map[string]any{"storageId": map[string]any{"securityOrigin": origin, "isLocalStorage": true}})
	})
	answer, _ := got.(map[string]any)
	entries, ok := answer["entries"].([]any)
	if err != nil || !ok {
		return nil, false
	}
	size := 0
	for _, e := range entries {
		pair, _ := e.([]any)
		if len(pair) != 2 {
			return nil, false
		}
		name, _ := pair[0].(string)
		value, _ := pair[1].(string)
		if size += len(name) + len(value); size > maxState {
			return nil, false
		}
		items = append(items, playwright.NameValue{Name: name, Value: value})
	}
	return items, true
}
