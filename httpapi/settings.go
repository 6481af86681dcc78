package httpapi

import (
	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/httpapi/rest"
	"satchel/vector/encoder/pretrained"
)

// settingsOut is the settings, and the names of the stored credentials.
type settingsOut struct {
	agent.Settings
	Configured []string   `json:"configured_credentials" doc:"Names of stored credentials. Their values are never returned." example:"[\"openai_api_key\"]"`
	Locked     []string   `json:"locked_credentials" doc:"Stored credentials that are encrypted with another master key and must be set again."`
	UpdatedAt  agent.Time `json:"updated_at" format:"date-time"`
}

func (s *Server) getSettings(c *rest.Call, _ *agentIn) (settingsOut, error) {
	v, err := c.DB.Settings(c)
	return settingsOut{
		Settings:   v.Settings,
		Configured: v.Configured,
		Locked:     v.Locked,
		UpdatedAt:  v.UpdatedAt,
	}, err
}

type updateSettingsIn struct{ Body agent.SettingsChange }

func (s *Server) updateSettings(c *rest.Call, in *updateSettingsIn) (settingsOut, error) {
	if err := s.checkModels(c, in.Body); err != nil {
		return settingsOut{}, err
	}
	v, err := c.DB.UpdateSettings(c, in.Body)
	if err == nil && (in.Body.EmbeddingProvider.Given || in.Body.EmbeddingModel.Given) {
		err = s.index.Reembed(c, c.DB)
	}
	return settingsOut{
		Settings:   v.Settings,
		Configured: v.Configured,
		Locked:     v.Locked,
		UpdatedAt:  v.UpdatedAt,
	}, err
}

// checkModels validates changed settings of the providers, without using the network.
func (s *Server) checkModels(call *rest.Call, change agent.SettingsChange) error {
	answers := change.LLMProvider.Given || change.LLMBaseURL.Given
	embeddings := change.EmbeddingProvider.Given || change.EmbeddingBaseURL.Given || change.EmbeddingModel.Given
	if !answers && !embeddings {
		return nil
	}
	settings, err := call.DB.Settings(call)
	if err != nil {
		return err
	}
	change.Apply(&settings.Settings)
	if err := settings.Settings.Validate(); err != nil {
		return err
	}
	if answers {
		if err := s.options.Chat.CheckAddress(settings.Settings); err != nil {
			return err
		}
	}
	if embeddings {
		return s.index.CheckEmbedding(settings.Settings.Embedding())
	}
	return nil
}

type modelsIn struct {
	Provider string `query:"llm_provider" doc:"Replaces the provider in the settings: openai, anthropic, ollama or openai-compatible." example:"openai"`
	BaseURL  string `query:"llm_base_url" doc:"Replaces the base URL in the settings. A stored credential is only sent to the host that it was set for."`
}

type modelsOut struct {
	Provider string   `json:"provider" example:"openai"`
	Models   []string `json:"models" doc:"Values for llm_model, sorted." example:"[\"gpt-5\",\"gpt-5-mini\"]"`
}

// listModels returns the models of the language model provider.
func (s *Server) listModels(c *rest.Call, in *modelsIn) (modelsOut, error) {
	names, provider, err := s.chat.Models(c, c.DB, agentchat.Provider{
		Name:    optionalText(in.Provider),
		BaseURL: optionalText(in.BaseURL),
	})
	return modelsOut{provider, names}, err
}

type givenModelsIn struct {
	Body struct {
		Provider agent.Optional[string] `json:"llm_provider,omitempty" enum:"openai,anthropic,ollama,openai-compatible," example:"openai"`
		BaseURL  agent.Optional[string] `json:"llm_base_url,omitempty"`
		Key      string                 `json:"api_key,omitempty" doc:"Replaces the stored credential, which is only sent to the host that it was set for. It is not saved."`
	}
}

// listGivenModels is listModels with settings that are not saved.
func (s *Server) listGivenModels(c *rest.Call, in *givenModelsIn) (modelsOut, error) {
	names, provider, err := s.chat.Models(c, c.DB, agentchat.Provider{
		Name:    in.Body.Provider,
		BaseURL: in.Body.BaseURL,
		Key:     in.Body.Key,
	})
	return modelsOut{provider, names}, nameKeyField(err)
}

// nameKeyField names the field api_key in the error about a stored credential
// that was set for another host.
func nameKeyField(err error) error {
	if agent.ErrorCode(err) == agent.CodeConflict {
		return agent.Invalid("api_key", "must be given: "+rest.AsError(err).Message)
	}
	return err
}

// installedModel is a model installed on the server.
type installedModel struct {
	Name   string          `json:"name" doc:"Value for embedding_model, if it is an embedder." example:"multilingual-e5-small"`
	Kind   pretrained.Kind `json:"kind" enum:"embedder,reranker" doc:"A reranker is used by searches with rerank, and by chat." example:"embedder"`
	Dims   int             `json:"dimensions,omitempty" doc:"Length of an embedder's vectors." example:"384"`
	Tokens int             `json:"tokens" doc:"Longest input that it reads at a time." example:"512"`
	Size   int64           `json:"size" doc:"Bytes of its files." example:"471000000"`
}

type embeddingModelsOut struct {
	Models []installedModel `json:"models" doc:"By name."`
}

// listEmbeddingModels returns the models that are installed on the server.
func (s *Server) listEmbeddingModels(*rest.Call, *agentIn) (embeddingModelsOut, error) {
	list, err := s.index.Models().List()
	out := embeddingModelsOut{Models: make([]installedModel, len(list))}
	for i, m := range list {
		out.Models[i] = installedModel{
			Name:   m.Name,
			Kind:   m.Kind,
			Dims:   m.Dims,
			Tokens: m.Tokens,
			Size:   m.Size(),
		}
	}
	return out, err
}

func optionalText(text string) agent.Optional[string] {
	return agent.Optional[string]{Given: text != "", Value: text}
}

type testSettingsIn struct {
	Body struct {
		Provider agent.Optional[string] `json:"llm_provider,omitempty" enum:"openai,anthropic,ollama,openai-compatible," example:"openai"`
		Model    agent.Optional[string] `json:"llm_model,omitempty" example:"gpt-5-mini"`
		BaseURL  agent.Optional[string] `json:"llm_base_url,omitempty"`
		Key      string                 `json:"api_key,omitempty" doc:"Replaces the stored credential, which is only sent to the host that it was set for. It is not saved."`
	}
}

// testSettings makes one small call with settings, saved or not.
func (s *Server) testSettings(c *rest.Call, in *testSettingsIn) (agentchat.TestResult, error) {
	b := &in.Body
	out, err := s.chat.Test(c, c.DB, agentchat.Provider{
		Name:    b.Provider,
		Model:   b.Model,
		BaseURL: b.BaseURL,
		Key:     b.Key,
	})
	return out, nameKeyField(err)
}
