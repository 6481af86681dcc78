package httpapi

import (
	"satchel/agent"
	"satchel/agent/credentials"
	"satchel/httpapi/rest"
)

type listCredentialsIn struct{ rest.ListParams }

type credentialsOut struct {
	Credentials []agent.Credential `json:"credentials"`
	RedirectURL string             `json:"redirect_url" doc:"The redirect address of this server, to be registered with providers." example:"https://satchel.example.com/oauth/callback"`
	Meta        rest.Meta          `json:"meta"`
}

func (s *Server) listCredentials(c *rest.Call, in *listCredentialsIn) (credentialsOut, error) {
	page, err := in.Page("name", "created_at", "status")
	if err != nil {
		return credentialsOut{}, err
	}
	found, total, err := c.DB.Credentials(c, page)
	return credentialsOut{found, s.options.Credentials.RedirectURL(), rest.MetaOf(page, total)}, err
}

type createCredentialIn struct {
	Body struct {
		Preset string            `json:"preset,omitempty" doc:"A preset of /api/credential-presets, which fills in omitted fields." example:"github"`
		Values map[string]string `json:"values,omitempty" doc:"Values for the fields of the preset." example:"{\"token\":\"YOUR_TOKEN\"}"`
		agent.CredentialChange
	}
}

func credentialLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/credentials/" + out.(agent.Credential).ID
}

func (s *Server) createCredential(c *rest.Call, in *createCredentialIn) (agent.Credential, error) {
	return s.options.Credentials.Create(c, c.DB, credentials.Draft{
		Preset:           in.Body.Preset,
		Values:           in.Body.Values,
		CredentialChange: in.Body.CredentialChange,
	})
}

type credentialIn struct {
	ID string `path:"credentialId" doc:"Id or name of the credential." example:"credential-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getCredential(c *rest.Call, in *credentialIn) (agent.Credential, error) {
	return c.DB.Credential(c, in.ID)
}

type updateCredentialIn struct {
	credentialIn
	Body agent.CredentialChange
}

func (s *Server) updateCredential(c *rest.Call, in *updateCredentialIn) (agent.Credential, error) {
	return s.options.Credentials.Update(c, c.DB, in.ID, in.Body)
}

func (s *Server) deleteCredential(c *rest.Call, in *credentialIn) (none, error) {
	return none{}, c.DB.DeleteCredential(c, in.ID)
}

func (s *Server) testCredential(c *rest.Call, in *credentialIn) (credentials.TestResult, error) {
	return s.options.Credentials.Test(c, c.DB, in.ID)
}

func (s *Server) confirmCredential(c *rest.Call, in *credentialIn) (agent.Credential, error) {
	return c.DB.ConfirmCredential(c, in.ID)
}

func (s *Server) connectCredential(c *rest.Call, in *credentialIn) (credentials.Connection, error) {
	return s.options.Credentials.Connect(c, c.DB, in.ID, askedBy(c.Identity))
}

type completeConnectionIn struct {
	credentialIn
	Body struct {
		RedirectedTo string `json:"redirected_to,omitempty" doc:"For authorization_code: the whole address that the browser was sent to and could not open. For device_code: leave it out, and call again after the interval." example:"http://localhost:1/callback?code=4f9c2a&state=k3J9"`
	}
}

type completeConnectionOut struct {
	Connected  bool             `json:"connected" doc:"false: the person has not agreed on the other device yet."`
	Credential agent.Credential `json:"credential"`
}

func (s *Server) completeConnection(c *rest.Call, in *completeConnectionIn) (completeConnectionOut, error) {
	connected, err := s.options.Credentials.Complete(c, c.DB, in.ID, in.Body.RedirectedTo)
	if err != nil {
		return completeConnectionOut{}, err
	}
	found, err := c.DB.Credential(c, in.ID)
	return completeConnectionOut{connected, found}, err
}

func (s *Server) deleteConnection(c *rest.Call, in *credentialIn) (none, error) {
	return none{}, s.options.Credentials.Disconnect(c, c.DB, in.ID)
}

type listPresetsIn struct {
	Search string `query:"search" doc:"Words of the name or the category." example:"google"`
}

type presetsOut struct {
	Presets []credentials.Preset `json:"presets"`
}

func (s *Server) listPresets(_ *rest.Call, in *listPresetsIn) (presetsOut, error) {
	return presetsOut{credentials.Presets(in.Search)}, nil
}
