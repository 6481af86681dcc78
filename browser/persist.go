package browser

import (
	"context"
	"encoding/json"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// Bounds of what a persistent session leaves to the next.
const (
	maxState     = 8 << 20 // bytes as JSON
	stateTimeout = 5 * time.Second
)

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
	return &state, nil
}

// keepState seals cookies and storage in the agent's file for the next
// persistent session.
func (s *Session) keepState(ctx context.Context) {
	if !s.options.Persist || s.context == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	state, err := Within(ctx, func() (*playwright.StorageState, error) { return s.context.StorageState() })
	if err != nil {
		s.browser.log.Warn("cookies and storage of a browser session could not be read", "session", s.id, "error", err)
		return
	}
	text, err := json.Marshal(state)
	if err == nil && len(text) > maxState {
		state.Origins = nil // cookies are what logins live by
		text, err = json.Marshal(state)
	}
	if err == nil && len(text) <= maxState {
		err = s.db.SetBrowserState(ctx, string(text))
	}
	if err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
		s.browser.log.Error("cookies and storage of a browser session could not be kept", "session", s.id, "error", err)
	}
}
