package gateways

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"satchel/agent"
	"satchel/store"
)

// platform implements a type of gateway.
type platform interface {
	// missing returns the names of required config fields that are not set.
	missing(agent.GatewayConfig) []string
	// verify checks the config with the platform.
	verify(ctx context.Context, g *Gateways, config agent.GatewayConfig) (info any, err error)
}

// Message is a text to send on a platform.
type Message struct {
	To     string // the platform's id of a chat, channel or number
	Thread string // the message or thread that it answers; empty: none
	Text   string
	Format string // the platform's name of the text's markup; empty: plain
	// Key is the same for each attempt of a message, for platforms that
	// recognize repeats.
	Key string
	// Skip is how many parts an earlier attempt has already sent.
	Skip int
	// Token is the reply token of the inbound message (agent.Inbound); empty:
	// none.
	Token string
}

// Sent is a message that a platform has accepted.
type Sent struct {
	ID      string // the platform's id of the message
	Channel string // where it was sent, as the platform names it
	Parts   int    // number of parts sent, including Skip; also set with an error
}

// messenger is a platform that accepts text messages.
type messenger interface {
	platform
	// send sends a message, in parts if it is longer than the platform allows
	// (see sendParts), and returns the first part's id. An error means that the
	// part was not sent only if isUnsent reports so: the call was rejected, or
	// never made. After any other error the outcome is unknown.
	send(ctx context.Context, g *Gateways, config agent.GatewayConfig, m Message) (Sent, error)
	// recipient returns To and Thread of a Message that answers in a thread of
	// a conversation or of an Inbound.
	recipient(thread string) (to, within string)
}

// deduplicator is a platform that recognizes a repeated message by its key.
type deduplicator interface {
	platform
	// dedupWindow is how long after the first attempt it does so, for this
	// message.
	dedupWindow(m Message) time.Duration
}

// Post is a request to a gateway's webhook.
type Post struct {
	URL    string // the URL as the platform knows it: public address, path and query
	Header http.Header
	Body   []byte // as received, for signatures

	Admit func() error // called once the post is known to be authentic; nil: always admitted
}

// Parsed is the content of a platform's post.
type Parsed struct {
	Response Response        // what the platform expects
	Messages []agent.Inbound // none: the post is about something else
	// without messages: the payload of the event gateway.event, without secrets; nil: the body, which contains none
	Payload json.RawMessage
	// the platform's id of the post, or a hash of the post, by which a repeat is recognized; empty: a repeat cannot be
	// recognized
	EventID  string
	Hashed   bool              // EventID is a hash of content that honest senders may repeat, see store.Receipt
	Delivery string            // see store.Receipt
	Moved    store.MovedThread // a thread that has another id now; zero: none
	Ignored  bool              // a handshake or a bot's own message: neither counted nor an event
}

// Response is the response to a post. The zero Response is an empty 200.
type Response struct {
	Status      int // 0 means 200
	ContentType string
	Body        []byte
}

// receiver is a platform that posts events to the gateway's webhook.
type receiver interface {
	platform
	// parsePost verifies the signature of the raw body, then parses the post. A
	// signature that is missing, invalid or expired, or a gateway without the
	// secret to verify it, is UNAUTHORIZED; an invalid body is a
	// VALIDATION_ERROR. o.WebhookSecret is the secret that Satchel generated
	// for the gateway.
	parsePost(o store.OpenGateway, p Post, now time.Time) (Parsed, error)
}

// fetcher is a receiver whose posts omit part of a message's text.
type fetcher interface {
	receiver
	// fetch completes a message from parsePost before it is stored. After an
	// error the response is 500, so that the platform sends the post again.
	fetch(ctx context.Context, g *Gateways, config agent.GatewayConfig, m *agent.Inbound) error
}

// registrar is a platform whose webhook URL can be set.
type registrar interface {
	platform
	// register sets the URL of the gateway's webhook at the platform. If only a
	// person can do that, it does nothing and returns instructions.
	register(ctx context.Context, g *Gateways, o store.OpenGateway, webhookURL string) (instructions string, err error)
}
