package flow

import (
	"context"
	"encoding/base64"
	"errors"
	"html"
	"math"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/agent/mailbox"
	"satchel/agent/template"
	"satchel/gateways"
)

// MessageKinds returns the node types that send through gateways.
func MessageKinds(g *gateways.Gateways) map[string]*Kind {
	kinds := map[string]*Kind{
		"email": {
			Run: func(ctx context.Context, c *Call) (Outcome, error) {
				return runEmail(ctx, g, c)
			},
			Escape: func(data map[string]any, key string) func(string) string {
				if key != "body" || data["html"] != true && data["html"] != "true" {
					return nil
				}
				return html.EscapeString
			},
		},
	}
	kinds["attachment"] = &Kind{
		Run: func(ctx context.Context, c *Call) (Outcome, error) {
			return runAttachment(ctx, g, c)
		},
		Repeatable: true,
	}
	for gateway, node := range textNodes {
		kinds[string(gateway)] = &Kind{
			Run: func(ctx context.Context, c *Call) (Outcome, error) {
				return runText(ctx, g, gateway, node, c)
			},
			Escape: func(data map[string]any, key string) func(string) string {
				if key != "message" || node.format == "" {
					return nil
				}
				return gateways.EscapeFor(gateway, template.Text(data[node.format]))
			},
		}
	}
	return kinds
}

// runAttachment reads a file of a message, in the form in which http-request sends
// files.
func runAttachment(ctx context.Context, g *gateways.Gateways, call *Call) (Outcome, error) {
	id, index := call.Number("message_id", 0), call.Number("index", 0)
	if id < 1 || id != math.Trunc(id) {
		return Outcome{}, agent.Invalid("message_id", "must be the id of a message")
	}
	if index < 0 || index >= agent.MaxMessageAttachments || index != math.Trunc(index) {
		return Outcome{}, agent.Invalid(
			"index",
			"must be a number from 0 to "+strconv.Itoa(agent.MaxMessageAttachments-1),
		)
	}
	f, err := g.Attachment(ctx, call.DB, int64(id), int(index))
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Output: map[string]any{
			"name":      f.Name,
			"mime_type": f.MediaType,
			"size":      len(f.Data),
			"data":      base64.StdEncoding.EncodeToString(f.Data),
		},
	}, nil
}

// textNode describes a node type that sends text: the keys of its data and of
// its output.
type textNode struct {
	to, thread, format string // keys of its data; "": none
	id, channel        string // keys of its output
	numbers            bool   // ids that are numeric are returned as numbers
}

var textNodes = map[agent.GatewayType]textNode{
	agent.GatewayTelegram: {
		to:      "to",
		format:  "parse_mode",
		id:      "message_id",
		channel: "chat_id",
		numbers: true,
	},
	agent.GatewayWhatsApp: {to: "to", id: "message_id", channel: "to"},
	agent.GatewaySMS:      {to: "to", id: "message_id", channel: "to"},
	agent.GatewaySlack: {
		to:      "channel",
		thread:  "thread_ts",
		format:  "format",
		id:      "ts",
		channel: "channel",
	},
	agent.GatewayDiscord: {
		to:      "channel",
		thread:  "reply_to",
		id:      "message_id",
		channel: "channel",
	},
}

// runText sends a text message. Its idempotency key is the same for each
// attempt of this run of the node.
func runText(
	ctx context.Context,
	g *gateways.Gateways,
	gateway agent.GatewayType,
	node textNode,
	call *Call,
) (Outcome, error) {
	request := gateways.SendRequest{
		Type:      gateway,
		GatewayID: call.Text("gateway_id"),
		Key:       call.Key,
		Origin:    call.messageOrigin(),
		To:        template.Text(call.Data[node.to]),
		Text:      template.Text(call.Data["message"]),
		Thread:    template.Text(call.Data[node.thread]),
	}
	if format := call.Text(node.format); format != "plain" {
		request.Format = format
	}
	var err error
	if request.KeepReferences, err = call.keepsReferences(ctx, request.Text); err != nil {
		return Outcome{}, err
	}
	sent, err := g.Send(ctx, call.DB, request)
	if outcome, ok := notAnswered(err, map[string]any{node.id: "", node.channel: node.formatID(request.To)}); ok {
		return outcome, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	output := map[string]any{node.id: node.formatID(sent.ID), node.channel: node.formatID(sent.Channel)}
	return Outcome{Output: output, Warnings: simulatedWarning(sent.ID, request.To, request.Text)}, nil
}

// messageOrigin returns what a message of the node is stored with.
func (c *Call) messageOrigin() agent.MessageOrigin {
	return agent.MessageOrigin{
		Author:      agent.AuthorWorkflow,
		WorkflowID:  c.Program.ID,
		ExecutionID: c.ExecutionID,
		NodeID:      c.Node.ID,
	}
}

// simulatedWarning says what would have been sent, if the message was only simulated.
func simulatedWarning(id, to, text string) []string {
	if !gateways.IsSimulated(id) {
		return nil
	}
	return []string{
		"not sent, because the execution results from a simulated message; to " + agent.Clip(to, 200) +
			": " + agent.Clip(text, 500),
	}
}

// notAnswered returns the outcome of a message that is not sent, because it would be an
// automatic answer to a program, or one too many.
func notAnswered(err error, output map[string]any) (Outcome, bool) {
	var unanswered *gateways.NotAnsweredError
	if !errors.As(err, &unanswered) {
		return Outcome{}, false
	}
	return Outcome{Output: output, Warnings: []string{unanswered.Error()}}, true
}

// formatID returns an id in the type that the platform uses.
func (n textNode) formatID(id string) any {
	if number, err := strconv.ParseInt(id, 10, 64); n.numbers && err == nil {
		return number
	}
	return id
}

// runEmail sends an email. Its idempotency key is the same for each attempt of
// this run of the node, so that platforms that support keys send the email
// once.
func runEmail(ctx context.Context, g *gateways.Gateways, call *Call) (Outcome, error) {
	email := &gateways.Email{
		To:             addresses(call.Data["to"]),
		CC:             addresses(call.Data["cc"]),
		BCC:            addresses(call.Data["bcc"]),
		ReplyTo:        call.Text("reply_to"),
		Subject:        call.Text("subject"),
		IdempotencyKey: call.Key,
		Origin:         call.messageOrigin(),
	}
	if call.Bool("html", false) {
		email.HTML = call.Text("body")
	} else {
		email.Text = call.Text("body")
	}
	var err error
	if email.KeepReferences, err = call.keepsReferences(ctx, email.Subject, email.Text, email.HTML); err != nil {
		return Outcome{}, err
	}
	id, accepted, err := g.SendExecutionEmail(
		ctx,
		call.DB,
		call.Chain.Root,
		call.Text("gateway_id"),
		email,
	)
	if outcome, ok := notAnswered(err, map[string]any{"message_id": "", "accepted": []string{}}); ok {
		return outcome, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	output := map[string]any{"message_id": id, "accepted": accepted}
	return Outcome{Output: output, Warnings: simulatedWarning(id, strings.Join(accepted, ", "), email.Subject)}, nil
}

// addresses reads a list of addresses, or a comma-separated string. A comma
// inside a name does not separate; empty entries are dropped.
func addresses(value any) []string {
	var found []string
	switch v := value.(type) {
	case string:
		found = mailbox.Split(v)
	case []any:
		for _, item := range v {
			found = append(found, template.Text(item))
		}
	}
	kept := []string{}
	for _, address := range found {
		if address = strings.TrimSpace(address); address != "" {
			kept = append(kept, address)
		}
	}
	return kept
}
