package httpapi

import (
	"slices"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
	"satchel/store"
)

type listGatewaysIn struct {
	rest.ListParams
	Type   []string `query:"type" doc:"Gateways of this type; may be repeated." example:"email"`
	Status []string `query:"status" doc:"inactive, pending_verification, active or error; may be repeated." example:"active"`
}

type gatewaysOut struct {
	Gateways []agent.Gateway `json:"gateways"`
	Meta     rest.Meta       `json:"meta"`
}

func (s *Server) listGateways(call *rest.Call, in *listGatewaysIn) (gatewaysOut, error) {
	page, err := in.Page("created_at", "updated_at", "name", "type")
	if err != nil {
		return gatewaysOut{}, err
	}
	f := store.GatewayFilter{States: rest.CommaList(in.Status)}
	for _, name := range rest.CommaList(in.Type) {
		g, _ := agent.NewGateway(name)
		if !slices.Contains(agent.GatewayTypes, g.Type) {
			return gatewaysOut{}, agent.Invalid("type", "is not a type of gateway")
		}
		f.Types = append(f.Types, string(g.Type))
	}
	for _, status := range f.States {
		if !slices.Contains(agent.GatewayStates, agent.GatewayStatus(status)) {
			return gatewaysOut{}, agent.Invalid("status", "must be inactive, pending_verification, active or error")
		}
	}
	found, total, err := call.DB.Gateways(call, f, page)
	return gatewaysOut{found, rest.MetaOf(page, total)}, err
}

type createGatewayIn struct {
	Body struct {
		Type      string                                    `json:"type" required:"true" enum:"chatbot_a,email,chatbot_b,team_chat,community_chat,sms,webhook,web,telegram,resend,smtp,whatsapp,slack,discord,twilio" doc:"Types after web are aliases that also set the provider." example:"email"`
		Name      agent.Optional[string]                    `json:"name" required:"true" example:"Support mail"`
		IsDefault agent.Optional[bool]                      `json:"is_default,omitempty"`
		Config    agent.Optional[agent.GatewayConfigChange] `json:"config,omitempty" doc:"Credentials and addresses, write-only. The type determines which fields apply."`
	}
}

type secretGatewayOut struct {
	agent.Gateway
	WebhookSecret string `json:"webhook_secret" doc:"Signs and verifies requests to webhook_url. Only shown in this response." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`
}

func gatewayLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/gateways/" + out.(secretGatewayOut).ID
}

func (s *Server) createGateway(c *rest.Call, in *createGatewayIn) (secretGatewayOut, error) {
	change := agent.GatewayChange{
		Name:      in.Body.Name,
		IsDefault: in.Body.IsDefault,
		Config:    in.Body.Config,
	}
	made, secret, err := s.options.Gateways.Create(c, c.DB, in.Body.Type, change)
	return secretGatewayOut{made, secret}, err
}

type gatewayIn struct {
	ID string `path:"gatewayId" doc:"Id of the gateway." example:"gateway-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getGateway(c *rest.Call, in *gatewayIn) (agent.Gateway, error) {
	return c.DB.Gateway(c, in.ID)
}

type updateGatewayIn struct {
	gatewayIn
	Body agent.GatewayChange
}

func (s *Server) updateGateway(c *rest.Call, in *updateGatewayIn) (agent.Gateway, error) {
	return s.options.Gateways.Update(c, c.DB, in.ID, in.Body)
}

func (s *Server) deleteGateway(c *rest.Call, in *gatewayIn) (none, error) {
	return none{}, s.options.Gateways.Delete(c, c.DB, in.ID)
}

type verifyOut struct {
	Success bool   `json:"success"`
	Info    any    `json:"info,omitempty" doc:"The platform's data about the account; its fields depend on the type."`
	Error   string `json:"error,omitempty" doc:"Why it failed; empty if it succeeded."`
	Field   string `json:"field,omitempty" doc:"The config field that caused the error, if there is one." example:"config.botToken"`
}

func (s *Server) verifyGateway(c *rest.Call, in *gatewayIn) (verifyOut, error) {
	v, err := s.options.Gateways.Verify(c, c.DB, in.ID)
	return verifyOut(v), err
}

type testGatewayIn struct {
	gatewayIn
	Body struct {
		To   string `json:"to" required:"true" doc:"The recipient on the platform: a chat, a channel, a number, an address." example:"ada@example.com"`
		Text string `json:"text" required:"true" example:"Hello from Satchel"`
	}
}

type testGatewayOut struct {
	Success   bool   `json:"success"`
	MessageID string `json:"message_id,omitempty" doc:"The message's id on the platform." example:"4711"`
	Error     string `json:"error,omitempty" doc:"Why it was not sent; empty if it was."`
	Duration  int64  `json:"duration_ms" example:"120"`
}

func (s *Server) testGateway(c *rest.Call, in *testGatewayIn) (testGatewayOut, error) {
	t, err := s.options.Gateways.SendTest(c, c.DB, in.ID, gateways.TestMessage{To: in.Body.To, Text: in.Body.Text})
	return testGatewayOut{
		Success:   t.Error == "" && err == nil,
		MessageID: t.ID,
		Error:     t.Error,
		Duration:  t.Took.Milliseconds(),
	}, err
}
