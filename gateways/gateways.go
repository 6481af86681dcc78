package gateways

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/agent/egress"
	"satchel/agent/signature"
	"satchel/store"
)

// Options configure the gateways.
type Options struct {
	store.Env
	Address string // of this server, without a trailing slash
	Public  bool   // platforms can reach it
}

// Gateways sends to and receives from the platforms of all agents' gateways.
type Gateways struct {
	folder   *store.Folder
	guard    *egress.Client
	client   *http.Client
	version  string
	address  string // of this server, as platforms know it
	public   bool   // platforms can reach it
	log      *slog.Logger
	now      func() time.Time
	wait     func(context.Context, time.Duration) error // before a call is retried
	out      *outgoing
	files    *attachments
	visitors *visitors      // of websites
	roots    *x509.CertPool // trusted for TLS to mail servers; nil: the system's
}

// callTimeout limits a call to a platform, including retries.
const callTimeout = 60 * time.Second

// maxPlatformAnswer limits how much of a platform's response is read, in bytes.
const maxPlatformAnswer = 4 << 20

// New returns the gateways of a folder's agents.
func New(options Options) *Gateways {
	gateways := &Gateways{
		folder:  options.Folder,
		version: options.Version,
		address: options.Address,
		public:  options.Public,
		log:     options.Logger(),
		now:     time.Now,
		wait:    clock.Sleep,
		guard: egress.New(egress.Policy{
			Allow:         options.Allow,
			MaxResponse:   maxPlatformAnswer,
			HeaderTimeout: 30 * time.Second,
		}),
	}
	gateways.client = gateways.guard.HTTP()
	gateways.client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	gateways.out, gateways.visitors =
		newOutgoing(gateways), newVisitors(options.Folder.DerivedKey("visitors of websites"))
	gateways.files = newAttachments(
		gateways,
		egress.New(egress.Policy{
			Allow:         options.Allow,
			MaxResponse:   agent.MaxAttachmentBytes + 1,
			HeaderTimeout: 30 * time.Second,
		}),
	)
	gateways.folder.OnPending(func(db *store.DB, p store.Pending) {
		gateways.out.queue.agents.Notify(db, p.Messages.Time, p.Changed)
	})
	return gateways
}

// PublicURL returns the address at which platforms reach this server, or "" if
// they cannot.
func (g *Gateways) PublicURL() string {
	if !g.public {
		return ""
	}
	return g.address
}

// Close closes idle connections.
func (g *Gateways) Close() {
	g.guard.CloseIdleConnections()
	g.files.guard.CloseIdleConnections()
}

// Create creates a gateway of a type, or of a platform's own name such as
// "smtp", and returns it with its webhook secret, which is not shown again.
func (g *Gateways) Create(
	ctx context.Context,
	db *store.DB,
	kind string,
	change agent.GatewayChange,
) (agent.Gateway, string, error) {
	made, err := g.Prepare(kind, change)
	if err != nil {
		return made.Gateway, "", err
	}
	created, err := db.CreateGateway(ctx, made.Gateway, made.Config, made.Secret)
	return created, made.Secret, err
}

// Prepare checks a gateway as Create does, and stores nothing.
func (g *Gateways) Prepare(kind string, change agent.GatewayChange) (made store.BundledGateway, err error) {
	made.Gateway, made.Config = agent.NewGateway(kind)
	change.Name.Into(&made.Gateway.Name)
	change.IsDefault.Into(&made.Gateway.IsDefault)
	change.Config.Value.Apply(&made.Config)
	if err := made.Gateway.Validate(); err != nil {
		return made, err
	}
	if err := g.validateConfig(made.Gateway.Type, &made.Config); err != nil {
		return made, err
	}
	made.Secret = signature.NewSecret()
	return made, nil
}

// Update changes the given fields of a gateway.
func (g *Gateways) Update(
	ctx context.Context,
	db *store.DB,
	id string,
	change agent.GatewayChange,
) (agent.Gateway, error) {
	return db.UpdateGateway(ctx, id, change, g.validateConfig)
}

// Delete removes a gateway. Its conversations stay.
func (g *Gateways) Delete(ctx context.Context, db *store.DB, id string) error {
	return db.DeleteGateway(ctx, id)
}

// validateConfig removes from a config what does not apply to its type, and
// validates it.
func (g *Gateways) validateConfig(t agent.GatewayType, config *agent.GatewayConfig) error {
	config.ClearOtherTypes(t)
	if err := config.Validate(t); err != nil {
		return err
	}
	for field, address := range map[string]string{"config.url": config.URL, "config.apiBaseUrl": config.APIBaseURL} {
		if address == "" {
			continue
		}
		if _, err := g.guard.CheckField(field, address); err != nil {
			return err
		}
	}
	return nil
}

// Verified is the result of verifying a gateway.
type Verified struct {
	Success bool
	Info    any    // what the platform returned about the account; nil on failure
	Error   string // why it failed; empty on success
	Field   string // the config field that caused the error; empty if it is no single one
}

// clientError is an error with a text for clients.
type clientError struct {
	text  string
	cause error
}

func (p *clientError) Error() string { return p.text }
func (p *clientError) Unwrap() error { return p.cause }

func newClientError(text string, cause error) error { return &clientError{text, cause} }

// clientMessage returns what a client may see of an error.
func clientMessage(err error) string {
	var p *clientError
	if errors.As(err, &p) {
		return agent.Clip(p.text, 500)
	}
	return egress.Explain(err).Message
}

// platformOf returns the platform of a gateway, or nil if there is none.
func platformOf(gatewayType agent.GatewayType, config agent.GatewayConfig) platform {
	switch {
	case gatewayType == agent.GatewayEmail && config.Provider == agent.ProviderResend:
		return resend{}
	case gatewayType == agent.GatewayEmail:
		return smtp{}
	case gatewayType == agent.GatewaySlack:
		return slack{}
	case gatewayType == agent.GatewayDiscord:
		return discord{}
	case gatewayType == agent.GatewaySMS:
		return twilioSMS
	case gatewayType == agent.GatewayWhatsApp:
		return twilioWhatsApp
	case gatewayType == agent.GatewayTelegram:
		return telegram{}
	case gatewayType == agent.GatewayWebhook:
		return webhook{}
	case gatewayType == agent.GatewayWeb:
		return web{}
	}
	return nil
}

// Verify checks a gateway's config with the platform, and sets the gateway to
// active, or to error with the reason.
func (g *Gateways) Verify(ctx context.Context, db *store.DB, id string) (Verified, error) {
	gateway, err := db.OpenGateway(ctx, id)
	if err != nil {
		return Verified{}, err
	}
	p := platformOf(gateway.Type, gateway.Config)
	if p == nil {
		return Verified{Error: "this server does not support gateways of type " + string(gateway.Type) + ""}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v := Verified{}
	info, err := g.checkConfig(ctx, p, gateway)
	if err != nil {
		v.Error, v.Field = clientMessage(err), failedField(gateway, err)
		g.log.Info("verify gateway", "agent", db.ID(), "gateway", id, "error", err)
	} else {
		v = Verified{Success: true, Info: info}
	}
	return v, db.EndVerify(context.WithoutCancel(ctx), gateway.Gateway, v.Error)
}

func (g *Gateways) checkConfig(ctx context.Context, p platform, o store.OpenGateway) (any, error) {
	if o.Locked {
		return nil, newClientError(lockedConfig, nil)
	}
	if h, ok := p.(webhook); ok && o.Config.URL == "" {
		return h.verifyReceiver(o) // there is no target to check
	}
	if missing := p.missing(o.Config); len(missing) > 0 {
		return nil, newClientError(missingFields(missing), nil)
	}
	return p.verify(ctx, g, o.Config)
}

// missingFields returns a text about the config fields that are missing.
func missingFields(fields []string) string {
	text := ""
	for i, field := range fields {
		if i > 0 {
			text += ", "
		}
		text += "config." + field
	}
	return text + " missing"
}

// emptyFields returns the names of empty fields. pairs are name, value, ….
func emptyFields(pairs ...string) []string {
	var missing []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			missing = append(missing, pairs[i])
		}
	}
	return missing
}
