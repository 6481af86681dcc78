package httpapi

import (
	"satchel/agent"
)

// settingsOut is the answer of settings: every field, and the names of the
// credentials that are there.
type settingsOut struct {
	agent.Settings
	Configured []string   `json:"configured_credentials" doc:"Credentials that are set; their values never come back." example:"[\"openai_api_key\"]"`
	Locked     []string   `json:"locked_credentials" doc:"Of these, the ones sealed with another master key: set them again."`
	UpdatedAt  agent.Time `json:"updated_at" format:"date-time"`
}

func (s *Server) getSettings(c *Call, _ *agentIn) (settingsOut, error) {
	v, err := c.DB.Settings(c)
	return settingsOut{v.Settings, v.Configured, v.Locked, v.UpdatedAt}, err
}

type updateSettingsIn struct{ Body agent.SettingsChange }

func (s *Server) updateSettings(c *Call, in *updateSettingsIn) (settingsOut, error) {
	v, err := c.DB.UpdateSettings(c, in.Body)
	return settingsOut{v.Settings, v.Configured, v.Locked, v.UpdatedAt}, err
}
