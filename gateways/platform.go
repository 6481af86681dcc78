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
	// that can tell a repeat.
	Key string
	// Skip is how many parts of it are out already, when a try before sent some.
	Skip int
	// Token is what an inbound message gave to answer it with (agent.Inbound);
	// empty: none.
	Token string
}

// Sent is a message that a platform has taken.
type Sent struct {
	ID      string // the platform's id of the message
	Channel string // where it was sent, as the platform names it
	Parts   int    // how many parts are out, those of Skip included; told beside an error too
}

// messenger is a platform that takes messages of text.
type messenger interface {
	platform
	// send hands a message over, or the parts of one that is longer than the
	// platform allows (see inParts), and returns the first part's id. An error
	// is certain when the platform does not have the part: the call was
	// refused, or never left. Every other error may have been a success.
	send(ctx context.Context, g *Gateways, config agent.GatewayConfig, m Message) (Sent, error)
	// address tells where an answer in a thread goes, that of a conversation or
	// of an Inbound: To and Thread of a Message.
	address(thread string) (to, within string)
}

// recognizer is a platform that tells a repeat of a message by its key.
type recognizer interface {
	platform
	// recognizes is how long after the first try it does, for this message.
	recognizes(m Message) time.Duration
}

// Post is what somebody posted to a gateway's webhook.
type Post struct {
	URL    string // where it was posted to, as the platform knows it: public address, path and query
	Header http.Header
	Body   []byte // as it came, for signatures
}

// Taken is what a platform's post comes to.
type Taken struct {
	Answer   Answer          // what the platform wants to hear
	Messages []agent.Inbound // none: the post tells of something else
	Payload  json.RawMessage // without messages: what the event gateway.event tells, free of secrets; nil: the body, which holds none
	EventID  string          // the platform's id of the post, or of a hash of it, by which a repeat is known; empty: it cannot be told
	Hashed   bool            // EventID is a hash of what honest senders may say again, see store.Receipt
	Delivery string          // see store.Receipt
	Silent   bool            // a handshake: neither counted nor an event
}

// Answer is what a post is answered with. The zero Answer is an empty 200.
type Answer struct {
	Status      int // 0: 200
	ContentType string
	Body        []byte
}

// listener is a platform that posts what happens to the gateway's webhook.
type listener interface {
	platform
	// take checks the signature over the raw body, then reads the post. A
	// signature that is missing, wrong or old, or a gateway without the secret
	// to check one, is UNAUTHORIZED; a body that is not understood is a
	// VALIDATION_ERROR. o.WebhookSecret is the secret that Satchel made for the gateway.
	take(o store.OpenGateway, p Post, now time.Time) (Taken, error)
}

// fetcher is a listener whose posts tell of messages without all of their text.
type fetcher interface {
	listener
	// fetch completes a message that take made, before it is stored. After an
	// error the post is answered with a 500, so that the platform sends it again.
	fetch(ctx context.Context, g *Gateways, config agent.GatewayConfig, m *agent.Inbound) error
}

// registrar is a platform that can be told where to post to.
type registrar interface {
	platform
	// register tells the platform the address of the gateway's webhook. For
	// one that can only be told by hand it does nothing and returns how.
	register(ctx context.Context, g *Gateways, o store.OpenGateway, webhookURL string) (instructions string, err error)
}
