package gateways

import (
	"context"
	"net/url"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Registered is the outcome of registering a webhook.
type Registered struct {
	Success      bool
	WebhookURL   string // absolute
	Instructions string // what is left to be done by hand
	Error        string // why not; empty with success
}

// Register sets the address of a gateway's webhook at its platform, below base, or, without one, below this server's usual address.
// A refusal of the platform is no error; an unknown gateway is, and a base
// that cannot be one.
func (g *Gateways) Register(ctx context.Context, db *store.DB, id, base string) (Registered, error) {
	base, err := cleanBase(base)
	if err != nil {
		return Registered{}, err
	}
	o, err := db.OpenGateway(ctx, id)
	if err != nil {
		return Registered{}, err
	}
	p, ok := platformOf(o.Type, o.Config).(registrar)
	switch local := o.Type == agent.GatewayWebhook || o.Type == agent.GatewayTelegram; {
	case !ok:
		return Registered{}, agent.Invalid("gatewayId", "names a gateway that receives nothing, so there is nothing to register")
	case base == "" && !g.public && !local:
		return Registered{}, agent.Invalid("baseUrl", "is needed: SATCHEL_PUBLIC_URL is not set, so the platform could not reach this server")
	}
	o.WebhookBase = base
	r := Registered{WebhookURL: g.base(o) + agent.WebhookPath(db.ID(), o.ID)}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if r.Instructions, err = g.registerWebhook(ctx, p, o, r.WebhookURL); err != nil {
		r.Error = clientMessage(err)
		g.log.Info("a webhook could not be registered", "agent", db.ID(), "gateway", id, "error", err)
		return r, db.NoteGatewayError(context.WithoutCancel(ctx), id, "the webhook could not be registered: "+r.Error)
	}
	r.Success = true
	return r, db.SetWebhookBase(context.WithoutCancel(ctx), id, base)
}

func (g *Gateways) registerWebhook(ctx context.Context, p registrar, o store.OpenGateway, address string) (string, error) {
	if o.Locked {
		return "", newClientError(lockedConfig, nil)
	}
	if missing := p.missing(o.Config); len(missing) > 0 && o.Type != agent.GatewayWebhook { // there is no platform to call
		return "", newClientError(missingFields(missing), nil)
	}
	return p.register(ctx, g, o, address)
}

const lockedConfig = "the config is locked: it was sealed with another master key; set it again"

// cleanBase checks an address of this server and trims slashes off its end.
func cleanBase(base string) (string, error) {
	if base == "" {
		return "", nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.ContainsAny(base, "?#\\ ") || len(base) > 1000 {
		return "", agent.Invalid("baseUrl", "must be an address such as https://satchel.example.com")
	}
	return strings.TrimRight(base, "/"), nil
}
