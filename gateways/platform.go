package gateways

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"satchel/agent"
	"satchel/store"
)

// platform is what is behind a type of gateway.
type platform interface {
	// missing names the config fields that are needed and not set.
	missing(agent.GatewayConfig) []string
	// verify asks the platform whether the config is good.
	verify(ctx context.Context, g *Gateways, config agent.GatewayConfig) (info any, err error)
}

// Message is a text to be sent to somebody on a platform.
type Message struct {
	To     string // the platform's name of a chat, channel or number
	Thread string // the message or thread that it answers; empty: none
	Text   string
	Format string // how the text is marked up, a platform's own word; empty: plain
	// Key is the same each time that the same message is tried, for platforms
	// that recognize a repeat.
	Key string
	// Skip is how many parts of it are out already, when a try before sent some.
	Skip int
	// Token is what an inbound message gave to answer it with (agent.Inbound);
	// empty: none.
	Token string
}

// Sent is a message that a platform has accepted.
type Sent struct {
	ID      string // the platform's id of the message
	Channel string // where it was sent, as the platform names it
	Parts   int    // how many parts are out, those of Skip included; set beside an error too
}

// messenger is a platform that accepts text messages.
type messenger interface {
	platform
	// send sends a message, or the parts of one that is longer than the
	// platform allows (see sendParts), and returns the first part's id. An error
	// means that the part was not sent only when notSent reports so: the call
	// was refused, or never left. After any other the outcome is unknown.
	send(ctx context.Context, g *Gateways, config agent.GatewayConfig, m Message) (Sent, error)
	// recipient returns where an answer in a thread goes, that of a conversation or
	// of an Inbound: To and Thread of a Message.
	recipient(thread string) (to, within string)
}

// deduplicator is a platform that recognizes a repeat of a message by its key.
type deduplicator interface {
	platform
	// dedupWindow is how long after the first try it does, for this message.
	dedupWindow(m Message) time.Duration
}

// Post is what somebody posted to a gateway's webhook.
type Post struct {
	URL    string // where it was posted to, as the platform knows it: public address, path and query
	Header http.Header
	Body   []byte // as it came, for signatures
}

// Parsed is the content of a platform's post.
type Parsed struct {
	Response Response        // what the platform expects
	Messages []agent.Inbound // none: the post is about something else
	Payload  json.RawMessage // without messages: the payload of the event gateway.event, free of secrets; nil: the body, which holds none
	EventID  string          // the platform's id of the post, or of a hash of it, by which a repeat is known; empty: it cannot be recognized
	Hashed   bool            // EventID is a hash of what honest senders may repeat, see store.Receipt
	Delivery string          // see store.Receipt
	Ignored  bool            // a handshake or a bot's own message: neither counted nor an event
}

// Response is what a post is answered with. The zero Answer is an empty 200.
type Response struct {
	Status      int // 0: 200
	ContentType string
	Body        []byte
}

// receiver is a platform that posts what happens to the gateway's webhook.
type receiver interface {
	platform
	// parsePost checks the signature over the raw body, then reads the post. A
	// signature that is missing, wrong or old, or a gateway without the secret
	// to check one, is UNAUTHORIZED; a body that is not understood is a
	// VALIDATION_ERROR. o.WebhookSecret is the secret that Satchel made for the gateway.
	parsePost(o store.OpenGateway, p Post, now time.Time) (Parsed, error)
}

// fetcher is a receiver whose posts leave out part of a message's text.
type fetcher interface {
	receiver
	// fetch completes a message that parsePost returned, before it is stored. After an
	// error the post is answered with a 500, so that the platform sends it again.
	fetch(ctx context.Context, g *Gateways, config agent.GatewayConfig, m *agent.Inbound) error
}

// registrar is a platform whose webhook address can be set.
type registrar interface {
	platform
	// register sets the address of the gateway's webhook at the platform. For
	// one where only a person can, it does nothing and returns how.
	register(ctx context.Context, g *Gateways, o store.OpenGateway, webhookURL string) (instructions string, err error)
}
