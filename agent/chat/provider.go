package chat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
)

// Provider identifies a provider of language models and a model. Omitted fields
// are taken from the agent's settings.
type Provider struct {
	Name    agent.Optional[string]
	Model   agent.Optional[string]
	BaseURL agent.Optional[string]
	Key     string // overrides the stored credential; empty: the stored one, if it is for the provider's host
}

// providerModel returns the model that provider describes. An error names the invalid setting; a
// stored credential for another host is a conflict.
func (c *Chat) providerModel(ctx context.Context, db *store.DB, provider Provider) (llm.Model, error) {
	settings, err := db.Settings(ctx)
	if err != nil {
		return llm.Model{}, err
	}
	provider.Name.Into(&settings.LLMProvider)
	provider.Model.Into(&settings.LLMModel)
	provider.BaseURL.Into(&settings.LLMBaseURL)
	if err := settings.Settings.Validate(); err != nil {
		return llm.Model{}, err
	}
	if err := c.CheckAddress(settings.Settings); err != nil {
		return llm.Model{}, err
	}
	if provider.Key != "" {
		m := settingsModel(settings)
		m.Key = provider.Key
		return m, nil
	}
	return storedModel(ctx, db, settings)
}

func settingsModel(s store.Settings) llm.Model {
	m := llm.Model{
		Provider:  s.LLMProvider,
		Name:      s.LLMModel,
		BaseURL:   s.LLMBaseURL,
		MaxTokens: s.LLMMaxTokens,
	}
	if s.TemperatureSet {
		m.Temperature = &s.LLMTemperature
	}
	return m
}

// storedModel returns the model of the settings, with the stored credential of
// its provider.
func storedModel(ctx context.Context, db *store.DB, s store.Settings) (m llm.Model, err error) {
	if m = settingsModel(s); m.Provider != "" {
		m.Key, err = db.SettingsCredential(ctx, llm.CredentialOf(m.Provider), m.Address())
	}
	return m, err
}

// Models returns the names of the models that a provider offers, at most a
// minute old, and the provider's name.
func (c *Chat) Models(ctx context.Context, db *store.DB, p Provider) (names []string, provider string, err error) {
	m, err := c.providerModel(ctx, db, p)
	if err != nil {
		return nil, "", err
	}
	key := listKey{db.ID(), llm.Model{Provider: m.Provider, BaseURL: m.BaseURL, Key: m.Key}}
	names, err = c.lists.of(key, func() ([]string, error) {
		return c.model.Models(ctx, m)
	})
	return names, m.Provider, err
}

// Limits of the cached lists of models.
const (
	modelListLifetime = time.Minute
	maxLists          = 200
)

type listKey struct {
	agent string
	from  llm.Model
}

type modelList struct {
	names []string
	until time.Time
}

// modelLists caches lists of models for a short time.
type modelLists struct {
	mu      sync.Mutex // protects kept
	entries map[listKey]modelList
}

func (l *modelLists) of(key listKey, ask func() ([]string, error)) ([]string, error) {
	l.mu.Lock()
	list, ok := l.entries[key]
	l.mu.Unlock()
	if ok && time.Now().Before(list.until) {
		return list.names, nil
	}
	names, err := ask()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil || len(l.entries) >= maxLists {
		l.entries = map[listKey]modelList{}
	}
	l.entries[key] = modelList{names, time.Now().Add(modelListLifetime)}
	return names, nil
}

// Limits of a provider test.
const (
	testTimeout = 30 * time.Second
	testTokens  = 16
	testReply   = 200 // characters that are shown
)

// TestResult is the outcome of a provider test.
type TestResult struct {
	OK       bool   `json:"ok" example:"true"`
	Duration int64  `json:"ms" doc:"How long the call took." example:"640"`
	Reply    string `json:"reply" doc:"The beginning of the model's reply." example:"OK"`
	Error    string `json:"error" doc:"Why the call failed; empty if it succeeded."`
}

// Test sends a tiny prompt to a model. A rejection by its provider is not an
// error but is reported in Tested.
func (c *Chat) Test(ctx context.Context, db *store.DB, provider Provider) (TestResult, error) {
	model, err := c.providerModel(ctx, db, provider)
	if err != nil {
		return TestResult{}, err
	}
	model.MaxTokens = testTokens
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	began := time.Now()
	reply, err := c.model.Chat(
		ctx,
		model,
		llm.Request{Messages: []llm.Message{{Role: agent.MessageUser, Content: "Reply with the word OK."}}},
		nil,
	)
	out := TestResult{
		OK:       err == nil,
		Duration: time.Since(began).Milliseconds(),
		Reply:    agent.Clip(model.MaskKey(reply.Text), testReply),
	}
	var known *agent.Error
	if !errors.As(err, &known) || known.Code != agent.CodeUpstream {
		return out, err
	}
	out.Error = known.Message
	if status := known.Details["status"]; status != nil {
		out.Error += fmt.Sprintf(" (status %v)", status)
	}
	if description := llm.Describe(err); description != "" {
		out.Error += ". The provider says: " + description
	}
	return out, nil
}
