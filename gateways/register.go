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
	Instructions string // steps left to do manually
	Error        string // why it failed; empty on success
}

// Register sets the URL of a gateway's webhook at its platform, based on base
// or, if empty, on this server's address. A rejection by the platform is not an
// error; an unknown gateway is, and an invalid base.
func (g *Gateways) Register(ctx context.Context, db *store.DB, id, base string) (Registered, error) {
	base, err := cleanBase(base)
	if err != nil {
		return Registered{}, err
	}
	gateway, err := db.OpenGateway(ctx, id)
	if err != nil {
		return Registered{}, err
	}
	p, ok := platformOf(gateway.Type, gateway.Config).(registrar)
	if !ok {
		return Registered{}, agent.Invalid(
			"gatewayId",
			"refers to a gateway that does not receive messages, so there is nothing to register",
		)
	}
	gateway.WebhookBase = base
	r := Registered{WebhookURL: g.publicBase(gateway) + agent.WebhookPath(db.ID(), gateway.ID)}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if r.Instructions, err = g.registerWebhook(ctx, p, gateway, r.WebhookURL); err != nil {
		r.Error = clientMessage(err)
		g.log.Info("register webhook with platform", "agent", db.ID(), "gateway", id, "error", err)
		return r, db.NoteGatewayError(context.WithoutCancel(ctx), id, "the webhook could not be registered: "+r.Error)
	}
	r.Success = true
	return r, db.SetWebhookBase(context.WithoutCancel(ctx), id, base)
}

func (g *Gateways) registerWebhook(
	ctx context.Context,
	registrar registrar,
	gateway store.OpenGateway,
	address string,
) (string, error) {
	if gateway.Locked {
		return "", newClientError(lockedConfig, nil)
	}
	// there is no platform to call
	if missing := registrar.missing(gateway.Config); len(missing) > 0 && gateway.Type != agent.GatewayWebhook {
		return "", newClientError(missingFields(missing), nil)
	}
	how, err := registrar.register(ctx, g, gateway, address)
	local := gateway.Type == agent.GatewayWebhook || gateway.Type == agent.GatewayTelegram
	if how != "" && !local && g.reachable(gateway) != nil {
		how = "The platform cannot reach this address until SATCHEL_PUBLIC_URL is set. " + how
	}
	return how, err
}

// reachable returns why a platform cannot reach the webhook's URL, if so.
func (g *Gateways) reachable(o store.OpenGateway) error {
	if o.WebhookBase == "" && !g.public {
		return newClientError(
			"SATCHEL_PUBLIC_URL is not set, so the platform could not reach this server; "+
				"baseUrl may name another address",
			nil,
		)
	}
	return nil
}

const lockedConfig = "the config is locked: it was encrypted with another master key; set it again"

// cleanBase validates a base URL of this server and trims trailing slashes.
func cleanBase(base string) (string, error) {
	if base == "" {
		return "", nil
	}
	u, err := url.Parse(base)
	if err != nil ||
		u.Scheme != "https" && u.Scheme != "http" ||
		u.Host == "" ||
		u.User != nil ||
		strings.ContainsAny(base, "?#\\ ") ||
		len(base) > 1000 {
		return "", agent.Invalid("baseUrl", "must be a URL such as https://satchel.example.com")
	}
	return strings.TrimRight(base, "/"), nil
}
