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

// How often the state of a persistent session is saved while it is open, so
// that little is lost when the server is killed.
const (
	saveEvery         = 2 * time.Second
	saveAfterActivity = 10 * time.Second // after activity: pages store what a click brought about some time later
	savePause         = 20               // a read that took long is followed by a pause so many times as long
	storageTimeout    = time.Second      // of a tab; one that is busy is read the next time
)

// persisted is what a persistent session knows of what it would leave.
type persisted struct {
	mu      sync.Mutex // held while it is read and stored
	origins map[string][]playwright.NameValue
	stored  [sha256.Size]byte // of what the agent's file got from this session, or the session from it
}

// savedState is what the agent's last persistent session left; nil when there
// is nothing, or nothing that can be used.
func (s *Session) savedState(ctx context.Context) (*playwright.OptionalStorageState, error) {
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
		s.persisted.origins[o.Origin] = o.LocalStorage
	}
	s.persisted.stored = sha256.Sum256([]byte(text))
	return &state, nil
}

// saveStates stores cookies and storage again and again as long as the session is
// open and somebody does something with it. It is the body of a goroutine.
func (s *Session) saveStates() {
	timer := time.NewTimer(saveEvery)
	defer timer.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		if s.Status() == agent.SessionTakeover || began.Sub(s.LastActivity()) <= saveAfterActivity {
			s.saveState(s.life, s.readState)
		}
		timer.Reset(saveEvery + savePause*time.Since(began))
	}
}

// saveState seals what read finds in the agent's file for the next persistent
// session, when it is something else than before.
func (s *Session) saveState(ctx context.Context, read func(context.Context) (*playwright.StorageState, error)) {
	if !s.options.Persist || s.context == nil {
		return
	}
	s.persisted.mu.Lock()
	defer s.persisted.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	state, err := read(limited)
	if err != nil {
		if ctx.Err() == nil {
			s.browser.log.Warn("cookies and storage of a browser session could not be read", "session", s.id, "error", err)
		}
		return
	}
	text, err := marshalState(state)
	if sum := sha256.Sum256(text); err == nil && sum != s.persisted.stored && len(text) <= maxState {
		if err = s.db.SetBrowserState(limited, string(text)); err == nil {
			s.persisted.stored = sum
		}
	}
	if err != nil && agent.ErrorCode(err) != agent.CodeNotFound && ctx.Err() == nil {
		s.browser.log.Error("cookies and storage of a browser session could not be kept", "session", s.id, "error", err)
	}
}

// marshalState is the state as JSON, the same for the same state.
func marshalState(state *playwright.StorageState) ([]byte, error) {
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

// readState reads all cookies, and the storage of the sites that tabs are at; what
// other sites have stored is taken as it was last seen. Pages notice nothing.
func (s *Session) readState(ctx context.Context) (*playwright.StorageState, error) {
	cookies, err := Within(ctx, func() ([]playwright.Cookie, error) { return s.context.Cookies() })
	if err != nil {
		return nil, err
	}
	for _, p := range s.Pages() {
		origin := originOf(p.URL())
		items, ok := p.localStorage(ctx, origin)
		if _, known := s.persisted.origins[origin]; !ok || !known && len(s.persisted.origins) >= maxOrigins {
			continue
		}
		s.persisted.origins[origin] = items
		if len(items) == 0 {
			delete(s.persisted.origins, origin)
		}
	}
	state := &playwright.StorageState{Cookies: cookies, Origins: []playwright.Origin{}}
	for origin, items := range s.persisted.origins {
		state.Origins = append(state.Origins, playwright.Origin{Origin: origin, LocalStorage: slices.Clone(items)})
	}
	return state, nil
}

// readFullState is readState for a session that ends: sites that no tab is at
// any more are opened in hidden tabs. When that takes too long, the result of
// readState is used.
func (s *Session) readFullState(ctx context.Context) (*playwright.StorageState, error) {
	open, err := s.readState(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, stateTimeout/2)
	defer cancel()
	all, err := Within(limited, func() (*playwright.StorageState, error) { return s.context.StorageState() })
	if err != nil {
		return open, nil
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

// localStorage reads what the site that a tab is at has stored; false when it does
// not answer, or with too much. Only saveState calls it, by way of readState.
func (p *Page) localStorage(ctx context.Context, origin string) (items []playwright.NameValue, ok bool) {
	if origin == "" || !p.readingStorage.CompareAndSwap(false, true) {
		return nil, false // the call before has not returned yet
	}
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	got, err := Within(ctx, func() (any, error) {
		defer p.readingStorage.Store(false)
		if p.storageCDP == nil {
			opened, err := p.session.context.NewCDPSession(p.page)
			if err != nil {
				return nil, err
			}
			p.storageCDP = opened
		}
		return p.storageCDP.Send("DOMStorage.getDOMStorageItems", map[string]any{"storageId": map[string]any{"securityOrigin": origin, "isLocalStorage": true}})
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
