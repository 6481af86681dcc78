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

// Limits of what a persistent session saves for the next.
const (
	maxState     = 8 << 20 // bytes as JSON
	maxOrigins   = 200     // origins whose storage is known while the session is open
	stateTimeout = 5 * time.Second
)

// How often the state of a persistent session is saved while it is open, so
// that little is lost when the server is killed.
const (
	saveEvery         = 2 * time.Second
	saveAfterActivity = 10 * time.Second // after activity: pages store the effects of a click some time later
	savePause         = 20               // a slow read is followed by a pause this many times as long
	storageTimeout    = time.Second      // per tab; a busy tab is read the next time
)

// persisted is the known state of a persistent session.
type persisted struct {
	mu      sync.Mutex // held while the state is read and stored
	origins map[string][]playwright.NameValue
	stored  [sha256.Size]byte // hash of the state last exchanged with the agent's file
}

// savedState returns what the agent's last persistent session saved, or nil if
// there is nothing usable.
func (session *Session) savedState(ctx context.Context) (*playwright.OptionalStorageState, error) {
	if !session.options.Persist {
		return nil, nil
	}
	text, locked, err := session.db.BrowserState(ctx)
	if err != nil {
		return nil, err
	}
	if locked {
		return nil, session.db.Log(
			ctx,
			agent.LevelWarn,
			"browser",
			"the saved browser logins were encrypted with another master key; the session starts without them",
			map[string]any{"session_id": session.id},
		)
	}
	var state playwright.OptionalStorageState
	if text == "" || json.Unmarshal([]byte(text), &state) != nil {
		return nil, nil
	}
	for _, o := range state.Origins {
		session.persisted.origins[o.Origin] = o.LocalStorage
	}
	session.persisted.stored = sha256.Sum256([]byte(text))
	return &state, nil
}

// saveStates stores cookies and storage periodically while the session is open
// and active. It is the body of a goroutine.
func (session *Session) saveStates() {
	timer := time.NewTimer(saveEvery)
	defer timer.Stop()
	for {
		select {
		case <-session.life.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		if session.Status() == agent.SessionTakeover || began.Sub(session.LastActivity()) <= saveAfterActivity {
			session.saveState(session.life, session.readState)
		}
		timer.Reset(saveEvery + savePause*time.Since(began))
	}
}

// saveState encrypts and stores the state that read returns for the next
// persistent session, if it has changed.
func (session *Session) saveState(ctx context.Context, read func(context.Context) (*playwright.StorageState, error)) {
	if !session.options.Persist || session.context == nil {
		return
	}
	session.persisted.mu.Lock()
	defer session.persisted.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	state, err := read(limited)
	if err != nil {
		if ctx.Err() == nil {
			session.browser.log.Warn("read cookies and storage of browser session", "session", session.id, "error", err)
		}
		return
	}
	text, err := marshalState(state)
	if sum := sha256.Sum256(text); err == nil && sum != session.persisted.stored && len(text) <= maxState {
		if err = session.db.SetBrowserState(limited, string(text)); err == nil {
			session.persisted.stored = sum
		}
	}
	if err != nil && agent.ErrorCode(err) != agent.CodeNotFound && ctx.Err() == nil {
		session.browser.log.Error("store cookies and storage of browser session", "session", session.id, "error", err)
	}
}

// marshalState encodes the state as JSON, equal for equal states.
func marshalState(state *playwright.StorageState) ([]byte, error) {
	for _, o := range state.Origins {
		agent.Sort(o.LocalStorage, func(a, b playwright.NameValue) int {
			return cmp.Compare(a.Name, b.Name)
		})
	}
	agent.Sort(state.Origins, func(a, b playwright.Origin) int {
		return cmp.Compare(a.Origin, b.Origin)
	})
	agent.Sort(state.Cookies, func(a, b playwright.Cookie) int {
		return cmp.Or(
			cmp.Compare(a.Domain, b.Domain),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Value, b.Value),
		)
	})
	text, err := json.Marshal(state)
	if err == nil && len(text) > maxState {
		state.Origins = nil // logins depend on cookies
		text, err = json.Marshal(state)
	}
	return text, err
}

// readState reads all cookies, and the storage of the sites open in tabs. For
// other sites it uses the last known storage. Pages do not notice.
func (session *Session) readState(ctx context.Context) (*playwright.StorageState, error) {
	cookies, err := Within(ctx, func() ([]playwright.Cookie, error) {
		return session.context.Cookies()
	})
	if err != nil {
		return nil, err
	}
	for _, p := range session.Pages() {
		origin := originOf(p.Address())
		items, ok := p.localStorage(ctx, origin)
		if _, known := session.persisted.origins[origin]; !ok ||
			!known && len(session.persisted.origins) >= maxOrigins {
			continue
		}
		session.persisted.origins[origin] = items
		if len(items) == 0 {
			delete(session.persisted.origins, origin)
		}
	}
	state := &playwright.StorageState{Cookies: cookies, Origins: []playwright.Origin{}}
	for origin, items := range session.persisted.origins {
		state.Origins = append(state.Origins, playwright.Origin{Origin: origin, LocalStorage: slices.Clone(items)})
	}
	return state, nil
}

// readFullState is readState for a session that ends: sites no longer open in
// tabs are opened in hidden tabs. If that takes too long, the result of
// readState is used.
func (session *Session) readFullState(ctx context.Context) (*playwright.StorageState, error) {
	open, err := session.readState(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, stateTimeout/2)
	defer cancel()
	all, err := Within(limited, func() (*playwright.StorageState, error) {
		return session.context.StorageState()
	})
	if err != nil {
		return open, nil
	}
	return all, nil
}

// originOf returns the origin of a web URL, or "".
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// localStorage returns the storage of the site open in a tab, or false if it
// does not respond or has too much. Only saveState calls it, through readState.
func (p *Page) localStorage(ctx context.Context, origin string) (items []playwright.NameValue, ok bool) {
	if origin == "" || !p.readingStorage.CompareAndSwap(false, true) {
		return nil, false // the previous call has not returned yet
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
		return p.storageCDP.Send("DOMStorage.getDOMStorageItems", map[string]any{
			"storageId": map[string]any{"securityOrigin": origin, "isLocalStorage": true},
		})
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
