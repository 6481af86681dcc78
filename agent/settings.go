package agent

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"satchel/agent/clock"
)

// Settings are the options of one agent. Credentials are not included: they are
// stored encrypted in the agent's file, and only their names are returned.
type Settings struct {
	LLMProvider       string  `json:"llm_provider" enum:"openai,anthropic,ollama,openai-compatible," doc:"Empty if none is set." example:"openai"`
	LLMModel          string  `json:"llm_model" example:"gpt-5"`
	LLMTemperature    float64 `json:"llm_temperature" doc:"1 if none is set." example:"0.7"`
	TemperatureSet    bool    `json:"llm_temperature_set" doc:"llm_temperature was set, and is sent to the provider: many models accept only their own default."`
	LLMBaseURL        string  `json:"llm_base_url" doc:"Base URL of the provider's API, including /v1, if it is not the default."`
	LLMMaxTokens      int     `json:"llm_max_tokens" doc:"Maximum length of an answer, in tokens; 0 leaves it to the provider."`
	SystemPrompt      string  `json:"system_prompt"`
	Timezone          string  `json:"timezone" doc:"IANA name." example:"Europe/Berlin"`
	AutoReply         bool    `json:"auto_reply" doc:"Answer inbound messages that no workflow handles."`
	ChatBrowser       bool    `json:"chat_browser" doc:"The model may use the browser while it answers, in automatic replies too."`
	RetentionDays     int     `json:"retention_days" doc:"How long logs, events and finished work are kept." example:"30"`
	EmbeddingProvider string  `json:"embedding_provider" enum:"local,openai-compatible,file" doc:"local is the built-in model, file one that is installed on the server." example:"local"`
	EmbeddingModel    string  `json:"embedding_model" doc:"Of openai-compatible, or the name of the installed model."`
	EmbeddingBaseURL  string  `json:"embedding_base_url" doc:"Base URL of the provider's API, including /v1."`

	EmbeddingQueryPrefix   *string `json:"embedding_query_prefix" doc:"Put before queries. null: as the model's name says." example:"query: "`
	EmbeddingPassagePrefix *string `json:"embedding_passage_prefix" doc:"Put before passages. null: as the model's name says." example:"passage: "`
}

// Embedding is the model that computes an agent's vectors.
type Embedding struct {
	Provider, Model, BaseURL string

	QueryPrefix, PassagePrefix *string // prepended to texts; nil: derived from the model's name
}

// Embedding returns the embedding settings.
func (s Settings) Embedding() Embedding {
	return Embedding{
		Provider:      s.EmbeddingProvider,
		Model:         s.EmbeddingModel,
		BaseURL:       s.EmbeddingBaseURL,
		QueryPrefix:   s.EmbeddingQueryPrefix,
		PassagePrefix: s.EmbeddingPassagePrefix,
	}
}

// Providers of embeddings on this machine: the built-in model, and models that
// are installed as files.
const (
	LocalEmbedding = "local"
	FileEmbedding  = "file"
)

// Local reports whether the model is the built-in one.
func (e Embedding) Local() bool { return e.Provider == LocalEmbedding }

// File reports whether the model is an installed one.
func (e Embedding) File() bool { return e.Provider == FileEmbedding }

// Name returns a model's name with its host, since the same name may be a
// different model elsewhere. Vectors with different names cannot be compared.
func (e Embedding) Name() string {
	return e.Model + "@" + e.Host()
}

// Host returns the host and port of the provider's address.
func (e Embedding) Host() string {
	u, err := url.Parse(e.BaseURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// DefaultSettings returns the settings of a new agent.
func DefaultSettings() Settings {
	return Settings{LLMTemperature: 1, Timezone: "UTC", RetentionDays: 30, EmbeddingProvider: LocalEmbedding}
}

// Credentials lists the names of all credentials.
var Credentials = []string{"openai_api_key", "anthropic_api_key", "llm_api_key", "embedding_api_key", "chatbot_a_token"}

// SettingsChange is a partial update. null resets a field to its default and
// removes a credential.
type SettingsChange struct {
	LLMProvider       Optional[string]  `json:"llm_provider,omitempty" enum:"openai,anthropic,ollama,openai-compatible," example:"openai"`
	LLMModel          Optional[string]  `json:"llm_model,omitempty" example:"gpt-5"`
	LLMTemperature    Optional[float64] `json:"llm_temperature,omitempty" doc:"0 to 2; null sends none to the provider." example:"0.7"`
	LLMBaseURL        Optional[string]  `json:"llm_base_url,omitempty"`
	LLMMaxTokens      Optional[int]     `json:"llm_max_tokens,omitempty"`
	SystemPrompt      Optional[string]  `json:"system_prompt,omitempty"`
	Timezone          Optional[string]  `json:"timezone,omitempty" example:"Europe/Berlin"`
	AutoReply         Optional[bool]    `json:"auto_reply,omitempty"`
	ChatBrowser       Optional[bool]    `json:"chat_browser,omitempty"`
	RetentionDays     Optional[int]     `json:"retention_days,omitempty" doc:"1 to 3650."`
	EmbeddingProvider Optional[string]  `json:"embedding_provider,omitempty" enum:"local,openai-compatible,file" doc:"openai-compatible needs embedding_model and embedding_base_url, file embedding_model." example:"local"`
	EmbeddingModel    Optional[string]  `json:"embedding_model,omitempty"`
	EmbeddingBaseURL  Optional[string]  `json:"embedding_base_url,omitempty"`

	EmbeddingQueryPrefix   Optional[string] `json:"embedding_query_prefix,omitempty" doc:"At most 1000 characters." example:"query: "`
	EmbeddingPassagePrefix Optional[string] `json:"embedding_passage_prefix,omitempty" doc:"At most 1000 characters. Another one makes sources stale." example:"passage: "`

	OpenAIKey     Optional[string] `json:"openai_api_key,omitempty" doc:"Write-only."`
	AnthropicKey  Optional[string] `json:"anthropic_api_key,omitempty" doc:"Write-only."`
	LLMKey        Optional[string] `json:"llm_api_key,omitempty" doc:"Write-only."`
	EmbeddingKey  Optional[string] `json:"embedding_api_key,omitempty" doc:"Write-only."`
	ChatbotAToken Optional[string] `json:"chatbot_a_token,omitempty" doc:"Write-only."`
}

// Apply writes the given fields into s. null resets a field to its default.
func (c SettingsChange) Apply(settings *Settings) {
	d := DefaultSettings()
	setField(c.LLMProvider, &settings.LLMProvider, d.LLMProvider)
	setField(c.LLMModel, &settings.LLMModel, d.LLMModel)
	setField(c.LLMTemperature, &settings.LLMTemperature, d.LLMTemperature)
	if c.LLMTemperature.Given {
		settings.TemperatureSet = !c.LLMTemperature.Null
	}
	setField(c.LLMBaseURL, &settings.LLMBaseURL, d.LLMBaseURL)
	setField(c.LLMMaxTokens, &settings.LLMMaxTokens, d.LLMMaxTokens)
	setField(c.SystemPrompt, &settings.SystemPrompt, d.SystemPrompt)
	setField(c.Timezone, &settings.Timezone, d.Timezone)
	setField(c.AutoReply, &settings.AutoReply, d.AutoReply)
	setField(c.ChatBrowser, &settings.ChatBrowser, d.ChatBrowser)
	setField(c.RetentionDays, &settings.RetentionDays, d.RetentionDays)
	setField(c.EmbeddingProvider, &settings.EmbeddingProvider, d.EmbeddingProvider)
	setField(c.EmbeddingModel, &settings.EmbeddingModel, d.EmbeddingModel)
	setField(c.EmbeddingBaseURL, &settings.EmbeddingBaseURL, d.EmbeddingBaseURL)
	setNullableField(c.EmbeddingQueryPrefix, &settings.EmbeddingQueryPrefix)
	setNullableField(c.EmbeddingPassagePrefix, &settings.EmbeddingPassagePrefix)
}

func setNullableField[T any](o Optional[T], dst **T) {
	switch {
	case !o.Given:
	case o.Null:
		*dst = nil
	default:
		*dst = &o.Value
	}
}

func setField[T any](o Optional[T], dst *T, fallback T) {
	switch {
	case !o.Given:
	case o.Null:
		*dst = fallback
	default:
		*dst = o.Value
	}
}

// Credentials returns the credentials in the change by name. null and "" remove
// one.
func (c SettingsChange) Credentials() map[string]string {
	given := map[string]string{}
	for name, field := range map[string]Optional[string]{
		"openai_api_key":    c.OpenAIKey,
		"anthropic_api_key": c.AnthropicKey,
		"llm_api_key":       c.LLMKey,
		"embedding_api_key": c.EmbeddingKey,
		"chatbot_a_token":   c.ChatbotAToken,
	} {
		if field.Given {
			given[name] = field.Value
		}
	}
	return given
}

// Validate checks the credentials in the change. An error never contains their
// values.
func (c SettingsChange) Validate() error {
	var is Issues
	for _, name := range Credentials {
		is.checkText(name, c.Credentials()[name], 8192)
	}
	return is.Err()
}

// Validate checks the settings as a whole.
func (s *Settings) Validate() error {
	var is Issues
	is.Check(
		slices.Contains([]string{"", "openai", "anthropic", "ollama", "openai-compatible"}, s.LLMProvider),
		"llm_provider",
		"must be openai, anthropic, ollama or openai-compatible",
	)
	is.checkText("llm_model", s.LLMModel, 200)
	is.Check(s.LLMTemperature >= 0 && s.LLMTemperature <= 2, "llm_temperature", "must be from 0 to 2")
	is.checkURL("llm_base_url", s.LLMBaseURL)
	is.Check(s.LLMMaxTokens >= 0 && s.LLMMaxTokens <= 1_000_000, "llm_max_tokens", "must be from 0 to 1000000")
	is.checkText("system_prompt", s.SystemPrompt, 100_000)
	_, err := clock.Zone(s.Timezone)
	is.addError("timezone", err)
	is.Check(s.RetentionDays >= 1 && s.RetentionDays <= 3650, "retention_days", "must be from 1 to 3650")
	is.Check(
		slices.Contains([]string{LocalEmbedding, FileEmbedding, "openai-compatible"}, s.EmbeddingProvider),
		"embedding_provider",
		"must be local, openai-compatible or file",
	)
	is.Check(s.EmbeddingProvider != FileEmbedding || s.EmbeddingModel != "", "embedding_model", "is required for file")
	is.Check(
		s.EmbeddingProvider != "openai-compatible" || s.EmbeddingModel != "",
		"embedding_model",
		"is required for openai-compatible",
	)
	is.Check(
		s.EmbeddingProvider != "openai-compatible" || s.EmbeddingBaseURL != "",
		"embedding_base_url",
		"is required for openai-compatible",
	)
	is.checkText("embedding_model", s.EmbeddingModel, 200)
	is.checkURL("embedding_base_url", s.EmbeddingBaseURL)
	for field, prefix := range map[string]*string{
		"embedding_query_prefix":   s.EmbeddingQueryPrefix,
		"embedding_passage_prefix": s.EmbeddingPassagePrefix,
	} {
		if prefix != nil {
			is.checkText(field, *prefix, 1000)
		}
	}
	return is.Err()
}

// maxURLLength limits URLs from clients, in bytes.
const maxURLLength = 2048

func (i *Issues) checkURL(field, raw string) {
	if raw == "" {
		return
	}
	u, err := url.Parse(raw)
	switch {
	case len(raw) > maxURLLength:
		i.Add(field, fmt.Sprintf("must have at most %d characters", maxURLLength))
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		i.Add(field, "must be an http or https URL")
	case u.User != nil:
		i.Add(field, "must not contain a user name or password")
	}
}
