package gateways

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/agent/signature"
	"satchel/store"
)

// Lifetimes of visitors' tickets and tokens.
const (
	TicketLife  = 60 * time.Second
	VisitorLife = 180 * 24 * time.Hour
)

// Visitor is a visitor of a website, as in their signed token.
type Visitor struct {
	Kind    string `json:"k"` // ticketKind or visitorKind
	Agent   string `json:"a"`
	Gateway string `json:"g"`
	Origin  string `json:"o"`           // of the page
	ID      string `json:"v"`           // a ticket's one-time id, or the thread of a visitor's conversation
	User    string `json:"u,omitempty"` // the website's id of a verified user, or empty
	Expires int64  `json:"e"`           // Unix seconds

	Network netip.Prefix `json:"-"` // that the present request comes from; invalid: not known
}

const (
	ticketKind  = "ticket"
	visitorKind = "visitor"
)

// Widget is an active gateway of type web with its effective config.
type Widget struct {
	store.OpenGateway
	agent.WidgetConfig
	gateways *Gateways
	db       *store.DB
}

// DB returns the agent that the widget belongs to.
func (w *Widget) DB() *store.DB { return w.db }

// Widget returns a website's widget. An inactive one is NOT_FOUND.
func (g *Gateways) Widget(ctx context.Context, db *store.DB, id string) (*Widget, error) {
	o, err := db.OpenGateway(ctx, id)
	if err == nil &&
		(o.Type != agent.GatewayWeb ||
			o.Status != agent.GatewayActive ||
			o.Locked ||
			db.Agent().Status == agent.StatusDisabled) {
		err = agent.NotFound("widget", id)
	}
	return &Widget{
		OpenGateway:  o,
		WidgetConfig: o.Config.WidgetConfig.WithDefaults(),
		gateways:     g,
		db:           db,
	}, err
}

// Ticket returns a ticket for a page of an origin, which opens the widget once
// within TicketLife.
func (w *Widget) Ticket(origin string) (string, error) {
	if !w.Allows(origin) {
		return "", agent.Errorf(
			agent.CodeForbidden,
			"this widget is not shown on pages of this origin; its settings list the allowed origins",
		).With("origin", agent.Clip(origin, 300))
	}
	return w.token(Visitor{Kind: ticketKind, Origin: origin, ID: randomID()}, TicketLife), nil
}

// Entry is a visitor's request for a token.
type Entry struct {
	Ticket   string
	Origin   string // of the page that passed the ticket to the frame
	User     string // the website's own user id, or empty
	UserHash string // HMAC-SHA256 of User with the gateway's secret, in hexadecimal
}

// Enter exchanges a ticket for a visitor's token: that of a new visitor, or of
// the user verified by the website.
func (w *Widget) Enter(entry Entry) (token string, visitor Visitor, err error) {
	t, err := w.read(entry.Ticket, ticketKind)
	if err != nil || t.Origin != entry.Origin {
		return "", visitor, agent.Errorf(agent.CodeUnauthorized, "the ticket is wrong, was used before, or has expired")
	}
	if visitor.User = entry.User; visitor.User != "" {
		if len(visitor.User) > 190 ||
			w.Config.Secret == "" ||
			!signature.VerifyHMAC(entry.UserHash, w.Config.Secret, []byte(visitor.User)) {
			return "", visitor, agent.Invalid(
				"user_hash",
				"is not the HMAC-SHA256 of the user's id with the gateway's secret",
			)
		}
	}
	if !w.gateways.visitors.markTicketUsed(
		t.ID,
		time.Unix(t.Expires, 0),
		w.gateways.now(),
	) {
		return "", visitor, agent.Errorf(agent.CodeUnauthorized, "the ticket is wrong, was used before, or has expired")
	}
	visitor.Kind, visitor.Origin, visitor.ID = visitorKind, entry.Origin, randomID()
	if visitor.User != "" { // the same on every device
		visitor.ID = hex.EncodeToString(
			w.gateways.mac("user\x00" + w.db.ID() + "\x00" + w.ID + "\x00" + visitor.User)[:16],
		)
	}
	return w.token(visitor, VisitorLife), visitor, nil
}

// Visitor verifies a token. A token that is forged, expired, of another widget, or of
// an origin that is no longer allowed is UNAUTHORIZED.
func (w *Widget) Visitor(token string) (Visitor, error) {
	return w.read(token, visitorKind)
}

func randomID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	return hex.EncodeToString(random[:])
}

// mac returns the signature of a text.
func (g *Gateways) mac(text string) []byte {
	mac := hmac.New(sha256.New, g.visitors.key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func (w *Widget) token(v Visitor, life time.Duration) string {
	v.Agent, v.Gateway, v.Expires = w.db.ID(), w.ID, w.gateways.now().Add(life).Unix()
	raw, _ := json.Marshal(v) // cannot fail
	payload := base64.RawURLEncoding.EncodeToString(raw)
	return payload + "." + base64.RawURLEncoding.EncodeToString(w.gateways.mac(payload))
}

// maxVisitorToken limits the length of a token, in bytes.
const maxVisitorToken = 2048

func (w *Widget) read(token, kind string) (v Visitor, err error) {
	payload, sum, _ := strings.Cut(token, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err == nil && len(token) <= maxVisitorToken && hmac.Equal(given, w.gateways.mac(payload)) {
		raw, err := base64.RawURLEncoding.DecodeString(payload)
		if err == nil && json.Unmarshal(raw, &v) == nil && v.Kind == kind &&
			v.Agent == w.db.ID() && v.Gateway == w.ID &&
			w.Allows(v.Origin) && w.gateways.now().Unix() < v.Expires {
			return v, nil
		}
	}
	return Visitor{}, agent.Errorf(agent.CodeUnauthorized, "the visitor's token is missing, invalid or expired")
}

// Receive receives a visitor's message like that of any platform, with files that have
// already been received. isNew is false for a duplicate.
func (w *Widget) Receive(
	ctx context.Context,
	visitor Visitor,
	message agent.VisitorMessage,
	files ...*store.Upload,
) (isNew bool, err error) {
	if err := message.Validate(len(files)); err != nil {
		return false, err
	}
	in := agent.Inbound{
		ID:          visitor.ID + ":" + message.ID,
		Thread:      visitor.ID,
		Text:        message.Text,
		Person:      message.Person,
		Email:       message.Email,
		From:        visitor.contact(),
		Attachments: store.Attachments(files),
	}
	if strings.TrimSpace(in.Text) == "" {
		in.Text = agent.FilesText(in.Attachments)
	}
	known, err := w.db.KnowsInbound(ctx, w.ID, in.ID)
	if err != nil {
		return false, err
	}
	if !known {
		refund, err := w.takeMessage(ctx, &visitor)
		if err != nil {
			return false, err
		}
		defer func() {
			if !isNew {
				refund()
			}
		}()
	}
	if in.Metadata, err = json.Marshal(map[string]string{"origin": visitor.Origin}); err != nil {
		return false, err
	}
	r, err := w.db.ReceiveInbound(
		ctx,
		w.ID,
		[]store.Receipt{{
			EventID:  in.ID,
			Messages: []agent.Inbound{in},
			Files:    files,
		}},
		0,
	)
	w.gateways.visitors.notify(w.visit(visitor))
	return len(r.Messages) > 0, err
}

// contact returns the visitor's contact: for a website's user the one with
// that external_id, or else a new one.
func (v *Visitor) contact() agent.ContactChange {
	if v.User != "" {
		return agent.ContactChange{ExternalID: agent.Some(v.User)}
	}
	return agent.ContactChange{
		ExternalID: agent.Some(agent.WebContact + v.ID),
		Name:       agent.Some("Visitor " + strings.ToUpper(v.ID[:4])),
	}
}

// SetEmail stores the email address of a visitor who has sent a message.
func (w *Widget) SetEmail(ctx context.Context, v Visitor, address string) error {
	if err := agent.CheckEmail("email", address); err != nil {
		return err
	}
	visit, err := w.db.Visit(ctx, w.ID, v.ID, 0, 0)
	if err != nil {
		return err
	}
	if visit.ConversationID == "" {
		return agent.Errorf(agent.CodeConflict, "the visitor has not sent a message yet")
	}
	defer w.gateways.visitors.notify(w.visit(v))
	return w.db.StoreUnverifiedEmail(ctx, visit.ConversationID, address)
}

// Hours reports whether the widget is within its opening hours, and if not, when it
// next will be.
func (w *Widget) Hours(ctx context.Context) (open bool, next time.Time) {
	hours, err := agent.ParseHours(w.WidgetConfig.Hours)
	if err != nil {
		return true, next
	}
	zone := time.UTC
	if name, err := w.db.Timezone(ctx); err == nil {
		if z, err := clock.Zone(name); err == nil {
			zone = z
		}
	}
	now := w.gateways.now().In(zone)
	if hours.Open(now) {
		return true, next
	}
	return false, hours.Next(now)
}

// Read returns a visitor's conversation after a message.
func (w *Widget) Read(ctx context.Context, v Visitor, after int64, limit int) (store.Visit, error) {
	return w.db.Visit(ctx, w.ID, v.ID, after, limit)
}
