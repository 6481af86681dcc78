package httpapi

import (
	"satchel/agent"
	"satchel/httpapi/rest"
)

// settingsOut is the answer of settings: every field, and the names of the
// credentials that are there.
type settingsOut struct {
	agent.Settings
	Configured []string   `json:"configured_credentials" doc:"Credentials that are set; their values never come back." example:"[\"openai_api_key\"]"`
	Locked     []string   `json:"locked_credentials" doc:"Of these, the ones sealed with another master key: set them again."`
	UpdatedAt  agent.Time `json:"updated_at" format:"date-time"`
}

func (s *Server) getSettings(c *rest.Call, _ *agentIn) (settingsOut, error) {
	v, err := c.DB.Settings(c)
	return settingsOut{v.Settings, v.Configured, v.Locked, v.UpdatedAt}, err
}

type updateSettingsIn struct{ Body agent.SettingsChange }

func (s *Server) updateSettings(c *rest.Call, in *updateSettingsIn) (settingsOut, error) {
	if err := s.checkEmbedding(c, in.Body); err != nil {
		return settingsOut{}, err
	}
	if base := in.Body.LLMBaseURL.Value; base != "" {
		if err := s.options.Chat.CheckAddress(base); err != nil {
			return settingsOut{}, err
		}
	}
	v, err := c.DB.UpdateSettings(c, in.Body)
	return settingsOut{v.Settings, v.Configured, v.Locked, v.UpdatedAt}, err
}

// checkEmbedding says whether the embedding provider of changed settings can
// be reached, as far as that shows without the network.
func (s *Server) checkEmbedding(c *rest.Call, change agent.SettingsChange) error {
	if !change.EmbeddingProvider.Given && !change.EmbeddingBaseURL.Given {
		return nil
	}
	v, err := c.DB.Settings(c)
	if err != nil {
		return err
	}
	change.Apply(&v.Settings)
	if err := v.Settings.Validate(); err != nil {
		return err
	}
	return s.index.CheckEmbedding(v.Settings.Embedding())
}
