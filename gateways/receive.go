package gateways

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// MaxPost limits the body of a post to a gateway, in bytes.
const MaxPost = 1 << 20

// Receiver receives the posts to a gateway's webhook.
type Receiver struct {
	gateways *Gateways
	db       *store.DB
	gateway  store.OpenGateway
	platform receiver
}

// Receiver returns the receiver of a gateway, or NOT_FOUND.
func (g *Gateways) Receiver(ctx context.Context, db *store.DB, gatewayID string) (*Receiver, error) {
	o, err := db.OpenGateway(ctx, gatewayID)
	if err != nil {
		return nil, err
	}
	l, ok := platformOf(o.Type, o.Config).(receiver)
	if !ok {
		return nil, agent.Errorf(agent.CodeNotFound, "gateways of this type do not receive messages")
	}
	return &Receiver{g, db, o, l}, nil
}

// Receive handles a post and returns the response that the platform expects. p.URL is the
// path and query of the request. A post that is not authentic is UNAUTHORIZED, an invalid
// one a VALIDATION_ERROR; both are recorded on the gateway. Repeats get the same response
// as the first time.
func (r *Receiver) Receive(ctx context.Context, post Post) (Response, error) {
	gateways, db, gateway, receiver := r.gateways, r.db, r.gateway, r.platform
	parsed, err := gateways.parsePost(receiver, gateway, post)
	if err == nil && post.Admit != nil {
		err = post.Admit()
	}
	if err != nil {
		return Response{}, gateways.noteRejected(ctx, db, gateway.ID, err)
	}
	if parsed.Ignored {
		return parsed.Response, nil
	}
	if err := gateways.fetchOmitted(ctx, db, receiver, gateway, parsed.Messages); err != nil {
		return Response{}, err
	}
	if err := markUnanswerable(ctx, db, gateway.Type, parsed.Messages); err != nil {
		return Response{}, err
	}
	receipt := store.Receipt{
		EventID:  parsed.EventID,
		Hashed:   parsed.Hashed,
		Delivery: parsed.Delivery,
		Messages: parsed.Messages,
		Payload:  parsed.Payload,
		Moved:    parsed.Moved,
	}
	if len(parsed.Messages) == 0 && parsed.Payload == nil {
		receipt.Payload = payload(post)
	}
	_, err = db.ReceiveInbound(ctx, gateway.ID, []store.Receipt{receipt}, 0)
	return parsed.Response, err
}

// fetchOmitted fetches what the post omitted from new messages.
func (g *Gateways) fetchOmitted(
	ctx context.Context,
	db *store.DB,
	receiver receiver,
	gateway store.OpenGateway,
	messages []agent.Inbound,
) error {
	f, ok := receiver.(fetcher)
	if !ok || gateway.Status != agent.GatewayActive {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for i := range messages {
		known, err := db.KnowsInbound(ctx, gateway.ID, messages[i].ID)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		if err := f.fetch(ctx, g, gateway.Config, &messages[i]); err != nil {
			problem := "a message could not be fetched: " + clientMessage(err)
			e := agent.Errorf(agent.CodeUpstream, "%s", problem).Because(err)
			return errors.Join(e, db.NoteGatewayError(context.WithoutCancel(ctx), gateway.ID, problem))
		}
	}
	return nil
}

// parsePost has the platform verify and parse a post.
func (g *Gateways) parsePost(l receiver, o store.OpenGateway, p Post) (Parsed, error) {
	if o.Locked {
		return Parsed{}, agent.Errorf(
			agent.CodeUnauthorized,
			"the post cannot be verified: the gateway's secrets were encrypted with another master key",
		)
	}
	p.URL = g.publicBase(o) + p.URL
	return l.parsePost(o, p, g.now())
}

// publicBase returns the address under which a gateway's platform knows this server.
func (g *Gateways) publicBase(o store.OpenGateway) string {
	if o.WebhookBase != "" {
		return o.WebhookBase
	}
	return g.address
}

// noteRejected records on a gateway that a post was rejected, and returns the
// reason.
func (g *Gateways) noteRejected(ctx context.Context, db *store.DB, id string, err error) error {
	switch agent.ErrorCode(err) {
	case agent.CodeUnauthorized, agent.CodeValidation, agent.CodeInvalidJSON:
		if e := db.NoteGatewayError(ctx, id, "a post to the webhook was rejected: "+agent.Explain(err)); e != nil {
			g.log.Warn("store error of gateway", "agent", db.ID(), "gateway", id, "error", e)
		}
	}
	return err
}

// payload returns the event's payload for a post without a message: its JSON,
// the fields of a form as an object, or else its text.
func payload(post Post) json.RawMessage {
	body := bytes.TrimSpace(post.Body)
	if json.Valid(body) {
		return body
	}
	media, _, _ := mime.ParseMediaType(post.Header.Get("Content-Type"))
	if media == "application/x-www-form-urlencoded" {
		if form, err := url.ParseQuery(string(body)); err == nil {
			fields := map[string]string{}
			for name, values := range form {
				fields[validText(name)] = validText(strings.Join(values, ", "))
			}
			raw, _ := json.Marshal(fields)
			return raw
		}
	}
	raw, _ := json.Marshal(validText(string(body)))
	return raw
}

func validText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// jsonResponse returns a JSON response.
func jsonResponse(v any) Response {
	raw, err := json.Marshal(v)
	if err != nil {
		return Response{Status: http.StatusInternalServerError}
	}
	return Response{ContentType: "application/json", Body: raw}
}
