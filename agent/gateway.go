package agent

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/mail"
	"slices"
	"strings"
)

// GatewayType is a gateway's kind of platform.
type GatewayType string

// The types of gateways. Their names on the wire differ from those of the
// platforms.
const (
	GatewayTelegram GatewayType = "chatbot_a"      // Telegram
	GatewayEmail    GatewayType = "email"          // SMTP or Resend
	GatewayWhatsApp GatewayType = "chatbot_b"      // WhatsApp through Twilio
	GatewaySlack    GatewayType = "team_chat"      // Slack
	GatewayDiscord  GatewayType = "community_chat" // Discord
	GatewaySMS      GatewayType = "sms"            // Twilio
	GatewayWebhook  GatewayType = "webhook"        // anything that speaks HTTP
	GatewayWeb      GatewayType = "web"            // the widget on websites
)

// GatewayTypes lists the types of gateways.
var GatewayTypes = []GatewayType{
	GatewayTelegram, GatewayEmail, GatewayWhatsApp, GatewaySlack, GatewayDiscord, GatewaySMS,
	GatewayWebhook, GatewayWeb,
}

// platformNames are the names of the platforms for people and models.
var platformNames = map[GatewayType]string{
	GatewayTelegram: "Telegram",
	GatewayWhatsApp: "WhatsApp",
	GatewaySlack:    "Slack",
	GatewayDiscord:  "Discord",
	GatewaySMS:      "SMS",
	GatewayEmail:    "e-mail",
	GatewayWebhook:  "webhook",
	GatewayWeb:      "website chat",
}

// PlatformName returns the name of a type's platform for people, such as Telegram: the
// names of the API are not shown to them.
func (t GatewayType) PlatformName() string {
	return cmp.Or(platformNames[t], string(t))
}

// The providers of the types that have several or name one.
const (
	ProviderResend = "email_provider_a"
	ProviderSMTP   = "email_provider_b"
	ProviderTwilio = "sms_provider"
)

// gatewayAliases are the platforms' own names, which clients may also use.
var gatewayAliases = map[string]struct {
	gateway  GatewayType
	provider string
}{
	"telegram": {GatewayTelegram, ""},
	"whatsapp": {GatewayWhatsApp, ProviderTwilio},
	"slack":    {GatewaySlack, ""},
	"discord":  {GatewayDiscord, ""},
	"twilio":   {GatewaySMS, ""},
	"resend":   {GatewayEmail, ProviderResend},
	"smtp":     {GatewayEmail, ProviderSMTP},
}

var providerAliases = map[string]string{"resend": ProviderResend, "smtp": ProviderSMTP, "twilio": ProviderTwilio}

// GatewayStatus is the state of a gateway.
type GatewayStatus string

// The states of a gateway.
const (
	GatewayInactive GatewayStatus = "inactive"
	GatewayPending  GatewayStatus = "pending_verification"
	GatewayActive   GatewayStatus = "active"
	GatewayFailed   GatewayStatus = "error"
)

// GatewayStates lists the states of a gateway.
var GatewayStates = []GatewayStatus{GatewayInactive, GatewayPending, GatewayActive, GatewayFailed}

// Gateway is a connection of an agent to a messaging platform.
type Gateway struct {
	ID               string        `json:"id" example:"gateway-06f1q2s3t4v5a6b7c8d9"`
	Type             GatewayType   `json:"type" enum:"chatbot_a,email,chatbot_b,team_chat,community_chat,sms,webhook,web" example:"email"`
	Name             string        `json:"name" example:"Support mail"`
	Status           GatewayStatus `json:"status" enum:"inactive,pending_verification,active,error" example:"active"`
	IsDefault        bool          `json:"is_default" doc:"Used for messages of this type that name no gateway. One per type."`
	Verified         bool          `json:"verified"`
	ConfiguredFields []string      `json:"configured_fields" doc:"Names of the config fields that are set. The config itself is never returned." example:"[\"apiKey\",\"fromAddress\",\"provider\"]"`
	WebhookURL       string        `json:"webhook_url" doc:"Path on this server to which the platform posts its events."`
	EventCount       int           `json:"event_count" doc:"Events received."`
	EventsToday      int           `json:"events_today" doc:"Today's events, in UTC."`
	LastEventAt      Time          `json:"last_event_at" format:"date-time" nullable:"true"`
	LastError        string        `json:"last_error"`
	LastErrorAt      Time          `json:"last_error_at" format:"date-time" nullable:"true"`
	CreatedAt        Time          `json:"created_at" format:"date-time"`
	UpdatedAt        Time          `json:"updated_at" format:"date-time"`
}

// GatewayChange is a partial update of a gateway. The type is set on creation
// and cannot change.
type GatewayChange struct {
	Name      Optional[string]              `json:"name,omitempty" example:"Support mail"`
	IsDefault Optional[bool]                `json:"is_default,omitempty"`
	Config    Optional[GatewayConfigChange] `json:"config,omitempty" doc:"Credentials and addresses, write-only. The type determines which fields apply. Omitted fields keep their value, null removes it."`
}

// GatewayConfig is how to reach a platform. It is stored encrypted in the
// agent's file and never returned.
type GatewayConfig struct {
	Provider      string            `json:"provider,omitempty"`
	BotToken      string            `json:"botToken,omitempty"`
	WebhookSecret string            `json:"webhookSecret,omitempty"`
	FromAddress   string            `json:"fromAddress,omitempty"`
	FromName      string            `json:"fromName,omitempty"`
	APIKey        string            `json:"apiKey,omitempty"`
	SMTPHost      string            `json:"smtpHost,omitempty"`
	SMTPPort      int               `json:"smtpPort,omitempty"`
	SMTPUsername  string            `json:"smtpUsername,omitempty"`
	SMTPPassword  string            `json:"smtpPassword,omitempty"`
	SMTPTLS       string            `json:"smtpTls,omitempty"`
	PhoneNumber   string            `json:"phoneNumber,omitempty"`
	AccountSID    string            `json:"accountSid,omitempty"`
	AuthToken     string            `json:"authToken,omitempty"`
	SigningSecret string            `json:"signingSecret,omitempty"`
	ApplicationID string            `json:"applicationId,omitempty"`
	PublicKey     string            `json:"publicKey,omitempty"`
	URL           string            `json:"url,omitempty"`
	Secret        string            `json:"secret,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	APIBaseURL    string            `json:"apiBaseUrl,omitempty"`
	WidgetConfig
}

// GatewayConfigChange is a partial update of a config.
type GatewayConfigChange struct {
	Provider      Optional[string]            `json:"provider,omitempty" enum:"email_provider_a,email_provider_b,sms_provider,resend,smtp,twilio" doc:"email: email_provider_a (Resend) or email_provider_b (SMTP). chatbot_b: sms_provider (Twilio)." example:"email_provider_b"`
	BotToken      Optional[string]            `json:"botToken,omitempty" doc:"chatbot_a, team_chat, community_chat."`
	WebhookSecret Optional[string]            `json:"webhookSecret,omitempty" doc:"chatbot_a, email: verifies incoming requests, instead of webhook_secret."`
	FromAddress   Optional[string]            `json:"fromAddress,omitempty" doc:"email." example:"support@example.com"`
	FromName      Optional[string]            `json:"fromName,omitempty" doc:"email." example:"Support"`
	APIKey        Optional[string]            `json:"apiKey,omitempty" doc:"email with Resend."`
	SMTPHost      Optional[string]            `json:"smtpHost,omitempty" doc:"email with SMTP." example:"mail.example.com"`
	SMTPPort      Optional[int]               `json:"smtpPort,omitempty" doc:"email with SMTP. Default: 587; 465 if smtpTls is tls, 25 if it is none." example:"587"`
	SMTPUsername  Optional[string]            `json:"smtpUsername,omitempty" doc:"email with SMTP. If omitted, there is no login."`
	SMTPPassword  Optional[string]            `json:"smtpPassword,omitempty" doc:"email with SMTP."`
	SMTPTLS       Optional[string]            `json:"smtpTls,omitempty" enum:"starttls,tls,none" doc:"email with SMTP. Default: starttls." example:"starttls"`
	PhoneNumber   Optional[string]            `json:"phoneNumber,omitempty" doc:"chatbot_b, sms."`
	AccountSID    Optional[string]            `json:"accountSid,omitempty" doc:"chatbot_b, sms."`
	AuthToken     Optional[string]            `json:"authToken,omitempty" doc:"chatbot_b, sms."`
	SigningSecret Optional[string]            `json:"signingSecret,omitempty" doc:"team_chat."`
	ApplicationID Optional[string]            `json:"applicationId,omitempty" doc:"community_chat."`
	PublicKey     Optional[string]            `json:"publicKey,omitempty" doc:"community_chat: 64 hexadecimal digits."`
	URL           Optional[string]            `json:"url,omitempty" doc:"webhook: URL that messages are posted to."`
	Secret        Optional[string]            `json:"secret,omitempty" doc:"webhook, web: secret for signatures, instead of webhook_secret."`
	Headers       Optional[map[string]string] `json:"headers,omitempty" doc:"webhook: header sent with each message."`
	APIBaseURL    Optional[string]            `json:"apiBaseUrl,omitempty" doc:"All except webhook, web and SMTP: another base URL of the platform's API."`
	WidgetConfigChange
}

// Apply writes the given fields into config.
func (ch GatewayConfigChange) Apply(config *GatewayConfig) {
	for _, f := range []struct {
		given Optional[string]
		dst   *string
	}{
		{ch.Provider, &config.Provider},
		{ch.BotToken, &config.BotToken},
		{ch.WebhookSecret, &config.WebhookSecret},
		{ch.FromAddress, &config.FromAddress},
		{ch.FromName, &config.FromName},
		{ch.APIKey, &config.APIKey},
		{ch.SMTPHost, &config.SMTPHost},
		{ch.SMTPUsername, &config.SMTPUsername},
		{ch.SMTPPassword, &config.SMTPPassword},
		{ch.SMTPTLS, &config.SMTPTLS},
		{ch.PhoneNumber, &config.PhoneNumber},
		{ch.AccountSID, &config.AccountSID},
		{ch.AuthToken, &config.AuthToken},
		{ch.SigningSecret, &config.SigningSecret},
		{ch.ApplicationID, &config.ApplicationID},
		{ch.PublicKey, &config.PublicKey},
		{ch.URL, &config.URL},
		{ch.Secret, &config.Secret},
		{ch.APIBaseURL, &config.APIBaseURL},
	} {
		f.given.Into(f.dst)
	}
	ch.SMTPPort.Into(&config.SMTPPort)
	ch.Headers.Into(&config.Headers)
	ch.WidgetConfigChange.apply(&config.WidgetConfig)
	if provider, ok := providerAliases[strings.ToLower(config.Provider)]; ok {
		config.Provider = provider
	}
}

// NewGateway returns a gateway of a type, or of a platform's own name such as
// "telegram" or "smtp", and the config that the name implies.
func NewGateway(name string) (Gateway, GatewayConfig) {
	if a, ok := gatewayAliases[strings.ToLower(name)]; ok {
		return Gateway{Type: a.gateway}, GatewayConfig{Provider: a.provider}
	}
	return Gateway{Type: GatewayType(name)}, GatewayConfig{}
}

// MaxGateways limits the gateways of one agent.
const MaxGateways = 100

// Validate checks the fields that clients set.
func (g *Gateway) Validate() error {
	var is Issues
	is.Check(g.Type != "", "type", "is required")
	is.Check(
		g.Type == "" || slices.Contains(GatewayTypes, g.Type),
		"type",
		"must be telegram, email, whatsapp, slack, discord, sms, webhook or web",
	)
	is.Check(strings.TrimSpace(g.Name) != "", "name", "is required")
	is.checkText("name", g.Name, 200)
	return is.Err()
}

// ClearOtherTypes clears the fields of other types.
func (c *GatewayConfig) ClearOtherTypes(gatewayType GatewayType) {
	var kept GatewayConfig
	switch gatewayType {
	case GatewayTelegram:
		kept = GatewayConfig{
			BotToken:      c.BotToken,
			WebhookSecret: c.WebhookSecret,
			APIBaseURL:    c.APIBaseURL,
		}
	case GatewayEmail:
		kept = GatewayConfig{
			Provider:      c.Provider,
			FromAddress:   c.FromAddress,
			FromName:      c.FromName,
			APIKey:        c.APIKey,
			WebhookSecret: c.WebhookSecret,
			SMTPHost:      c.SMTPHost,
			SMTPPort:      c.SMTPPort,
			SMTPUsername:  c.SMTPUsername,
			SMTPPassword:  c.SMTPPassword,
			SMTPTLS:       c.SMTPTLS,
			APIBaseURL:    c.APIBaseURL,
		}
	case GatewayWhatsApp, GatewaySMS:
		kept = GatewayConfig{
			Provider:    c.Provider,
			PhoneNumber: c.PhoneNumber,
			AccountSID:  c.AccountSID,
			AuthToken:   c.AuthToken,
			APIBaseURL:  c.APIBaseURL,
		}
	case GatewaySlack:
		kept = GatewayConfig{
			BotToken:      c.BotToken,
			SigningSecret: c.SigningSecret,
			APIBaseURL:    c.APIBaseURL,
		}
	case GatewayDiscord:
		kept = GatewayConfig{
			BotToken:      c.BotToken,
			ApplicationID: c.ApplicationID,
			PublicKey:     c.PublicKey,
			APIBaseURL:    c.APIBaseURL,
		}
	case GatewayWebhook:
		kept = GatewayConfig{
			URL:     c.URL,
			Secret:  c.Secret,
			Headers: c.Headers,
		}
	case GatewayWeb:
		kept = GatewayConfig{Secret: c.Secret, WidgetConfig: c.WidgetConfig}
	}
	*c = kept
}

// maxHeaders limits the headers of a config.
const maxHeaders = 50

// Validate checks the config for a type. It does not check for missing fields.
func (c *GatewayConfig) Validate(gatewayType GatewayType) error {
	var is Issues
	for field, value := range c.textFields() {
		is.checkText("config."+field, value, 8192)
		is.Check(!strings.ContainsAny(value, "\r\n"), "config."+field, "must be a single line")
	}
	providers := map[GatewayType][]string{
		GatewayEmail:    {ProviderResend, ProviderSMTP},
		GatewayWhatsApp: {ProviderTwilio},
		GatewaySMS:      {ProviderTwilio},
	}[gatewayType]
	is.Check(
		c.Provider == "" || slices.Contains(providers, c.Provider),
		"config.provider",
		"must be "+strings.Join(providers, " or "),
	)
	is.Check(c.SMTPPort >= 0 && c.SMTPPort <= 65535, "config.smtpPort", "must be from 1 to 65535")
	is.Check(
		slices.Contains([]string{"", "starttls", "tls", "none"}, c.SMTPTLS),
		"config.smtpTls",
		"must be starttls, tls or none",
	)
	if c.FromAddress != "" {
		parsed, err := mail.ParseAddress(c.FromAddress)
		is.Check(
			err == nil && parsed.Address == c.FromAddress && len(c.FromAddress) <= 254,
			"config.fromAddress",
			"must be an email address",
		)
	}
	is.checkURL("config.url", c.URL)
	is.checkURL("config.apiBaseUrl", c.APIBaseURL)
	key, err := hex.DecodeString(c.PublicKey)
	is.Check(c.PublicKey == "" || err == nil && len(key) == 32, "config.publicKey", "must be 64 hexadecimal digits")
	is.Check(len(c.Headers) <= maxHeaders, "config.headers", fmt.Sprintf("must have at most %d", maxHeaders))
	for name, value := range c.Headers {
		is.Check(
			headerName(name) && len(name) <= 100,
			"config.headers",
			"must have names of letters, digits and hyphens",
		)
		is.Check(
			len(value) <= 8192 && !strings.ContainsAny(value, "\r\n\x00"),
			"config.headers",
			"must have values of a single line",
		)
	}
	c.WidgetConfig.validate(&is)
	return is.Err()
}

func headerName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// textFields returns the text fields by name.
func (c *GatewayConfig) textFields() map[string]string {
	return map[string]string{
		"provider":      c.Provider,
		"botToken":      c.BotToken,
		"webhookSecret": c.WebhookSecret,
		"fromAddress":   c.FromAddress,
		"fromName":      c.FromName,
		"apiKey":        c.APIKey,
		"smtpHost":      c.SMTPHost,
		"smtpUsername":  c.SMTPUsername,
		"smtpPassword":  c.SMTPPassword,
		"smtpTls":       c.SMTPTLS,
		"phoneNumber":   c.PhoneNumber,
		"accountSid":    c.AccountSID,
		"authToken":     c.AuthToken,
		"signingSecret": c.SigningSecret,
		"applicationId": c.ApplicationID,
		"publicKey":     c.PublicKey,
		"url":           c.URL,
		"secret":        c.Secret,
		"apiBaseUrl":    c.APIBaseURL,
	}
}

// Fields returns the names of the fields that are set, sorted.
func (c *GatewayConfig) Fields() []string {
	fields := []string{}
	for field, value := range c.textFields() {
		if value != "" {
			fields = append(fields, field)
		}
	}
	if c.SMTPPort != 0 {
		fields = append(fields, "smtpPort")
	}
	if len(c.Headers) > 0 {
		fields = append(fields, "headers")
	}
	fields = append(fields, c.WidgetConfig.fields()...)
	slices.Sort(fields)
	return fields
}

// WebhookPath returns the path on this server to which a gateway's platform
// posts its events.
func WebhookPath(agentID, gatewayID string) string {
	return "/api/agents/" + agentID + "/gateways/" + gatewayID + "/webhook"
}
