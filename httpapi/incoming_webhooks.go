package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/agent/charset"
	"satchel/agent/signature"
	"satchel/flow"
	"satchel/httpapi/auth"
	"satchel/httpapi/rest"
	"satchel/store"
)

type incomingWebhookIn struct {
	ID string `path:"workflowId" doc:"Id of the workflow." example:"workflow-06f1q2s3t4v5a6b7c8d9"`
}

// hookOut is the response of an incoming webhook whose workflow has no webhook-response.
// It is named for its schema, "HookDetails".
type hookOut struct {
	ExecutionID string                `json:"execution_id" example:"execution-06f1q2s3t4v5a6b7c8d9"`
	Status      agent.ExecutionStatus `json:"status" enum:"queued,running,complete,errored,terminated" example:"running"`
}

// incomingWait is how long a webhook waits for the workflow's webhook-response.
const incomingWait = 60 * time.Second

// maxIncomingBody limits the body of a webhook, in bytes.
const maxIncomingBody = 2 << 20

func (s *Server) callIncomingWebhook(call *rest.Call) error {
	in, err := rest.Bind[incomingWebhookIn](call)
	if err != nil {
		return err
	}
	incoming, err := s.admitIncomingWebhook(call, in.ID)
	if err != nil {
		return err
	}
	raw, err := call.ReadBody()
	if err != nil {
		return err
	}
	if incoming.Auth.Type != "" {
		if err := signature.VerifyIncoming(
			&incoming.Auth,
			call.HTTP.Request().Header.Get,
			raw,
			time.Now(),
		); err != nil {
			return err
		}
	}
	payload, err := incomingPayload(call.HTTP.Request(), raw, incoming.Auth.SecretHeader())
	if err != nil {
		return err
	}
	key, err := incomingIdempotencyKey(call.HTTP.Request().Header, in.ID)
	if err != nil {
		return err
	}
	replay := ""
	if incoming.Auth.SignsBodyOnly() {
		sum := sha256.Sum256(raw)
		replay = "hook:" + in.ID + ":" + hex.EncodeToString(sum[:])
	}
	started, err := s.execute(call, flow.Request{
		WorkflowID:     in.ID,
		Input:          payload,
		Trigger:        "webhook",
		IdempotencyKey: key,
		Replay:         replay,
		Queue:          true,
		Incoming:       true,
		Wait:           incomingWait,
	})
	if err != nil {
		return err
	}
	if started.Repeated {
		return s.repeatIncomingWebhook(call, key, replay)
	}
	if started.Response != nil {
		return answerIncomingWebhook(call.HTTP, started.Response)
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, hookOut{started.Execution.ID, started.Execution.Status})
}

// admitIncomingWebhook checks that the caller may start the workflow: with the
// credentials that its trigger requires, or, if it requires none, by the rules
// of all other routes. A signature of the body is verified when the body is there.
func (s *Server) admitIncomingWebhook(c *rest.Call, workflowID string) (store.IncomingWebhook, error) {
	incoming, err := c.DB.IncomingWebhook(c, workflowID, "webhook")
	switch {
	case incoming.Auth.Type != "" && err == nil:
		if c.DB.Agent().Status == agent.StatusDisabled {
			return incoming, agent.NotFound("active workflow with a webhook trigger", workflowID)
		}
		return incoming, signature.CheckIncoming(&incoming.Auth, c.HTTP.Request().Header.Get)
	case c.Refused != nil:
		return incoming, c.Refused
	}
	return incoming, err
}

// deliveryHeaders identify a delivery, so that it is handled once however often it is
// sent. Those of Standard Webhooks come first, because their signatures cover them.
var deliveryHeaders = []string{"Webhook-Id", "Svix-Id", "Idempotency-Key", "X-GitHub-Delivery", "X-Shopify-Webhook-Id"}

// maxDeliveryID limits the id of a delivery, in bytes.
const maxDeliveryID = 256

// incomingIdempotencyKey returns the key that the sender gave the request, or "".
func incomingIdempotencyKey(h http.Header, workflowID string) (string, error) {
	for _, name := range deliveryHeaders {
		if id := h.Get(name); id != "" {
			if len(id) > maxDeliveryID || !utf8.ValidString(id) {
				return "", agent.Invalid(
					strings.ToLower(name),
					fmt.Sprintf("must be text of at most %d bytes", maxDeliveryID),
				)
			}
			return "hook:" + workflowID + ":" + id, nil
		}
	}
	return "", nil
}

// repeatIncomingWebhook answers a repeated delivery like the first one, or with the state
// of its execution.
func (s *Server) repeatIncomingWebhook(c *rest.Call, key, replay string) error {
	id, err := c.DB.ExecutionOf(c, key, replay)
	if err != nil {
		return err
	}
	x, results, err := s.flow.Execution(c, c.DB, id)
	if err != nil {
		return err
	}
	for i := range results {
		if results[i].Type == "webhook-response" && results[i].Status == agent.NodeSuccess {
			return answerIncomingWebhook(c.HTTP, &results[i])
		}
	}
	return rest.WriteJSON(c.HTTP, http.StatusOK, hookOut{x.ID, x.Status})
}

// incomingPayload returns {method, query, headers, body} and the fields of a body
// that is an object. Headers with credentials for this server or the webhook are
// removed.
func incomingPayload(request *http.Request, raw []byte, secret string) (json.RawMessage, error) {
	body, err := incomingBody(request.Header.Get(echo.HeaderContentType), raw)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	for name, values := range request.Header {
		switch name = strings.ToLower(name); name {
		case "authorization", "x-api-key", "cookie", strings.ToLower(auth.TokenHeaders[0]),
			strings.ToLower(auth.TokenHeaders[1]), strings.ToLower(secret):
		default:
			headers[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
		}
	}
	payload := map[string]any{}
	if object, ok := body.(map[string]any); ok {
		maps.Copy(payload, object)
	}
	payload["method"], payload["query"], payload["headers"], payload["body"] =
		request.Method, firstOf(request.URL.Query()), headers, body
	return json.Marshal(payload)
}

// incomingBody parses a body as JSON or as a form; anything else is text.
func incomingBody(contentType string, raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == echo.MIMEApplicationJSON || strings.HasSuffix(media, "+json"):
		text := charset.Decode(raw, contentType)
		if err := agent.CheckNesting("body", text); err != nil {
			return nil, err
		}
		var body any
		if agent.DecodeJSON(text, &body) != nil {
			return nil, agent.Errorf(agent.CodeInvalidJSON, "the request body is not JSON")
		}
		return body, nil
	case media == echo.MIMEApplicationForm:
		form, err := url.ParseQuery(string(raw))
		if err != nil {
			return nil, agent.Errorf(agent.CodeInvalidJSON, "the request body is not a valid form")
		}
		return firstOf(formTexts(form, contentType)), nil
	}
	return strings.ReplaceAll(string(charset.Decode(raw, contentType)), "\x00", "\uFFFD"), nil
}

// formTexts decodes the names and values of a form, whose character set its Content-Type
// declares, or the field _charset_ that browsers fill in, or which is guessed.
func formTexts(form url.Values, contentType string) url.Values {
	if named := form.Get("_charset_"); charset.Named(named) != nil {
		contentType = mime.FormatMediaType(echo.MIMEApplicationForm, map[string]string{"charset": named})
	}
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(form)) {
		all = append(append(append(all, name...), '\n'), strings.Join(form[name], "\n")+"\n"...)
	}
	found := charset.Find(all, contentType)
	if found == nil {
		return form
	}
	decoder := found.NewDecoder()
	decode := func(text string) string {
		decoded, _ := decoder.String(text) // what is not valid is replaced
		return decoded
	}
	out := url.Values{}
	for name, values := range form {
		for _, value := range values {
			out.Add(decode(name), decode(value))
		}
	}
	return out
}

// firstOf returns a single value as text and several as a list.
func firstOf(values url.Values) map[string]any {
	out := map[string]any{}
	for name, list := range values {
		name = clean(name)
		if len(list) == 1 {
			out[name] = clean(list[0])
			continue
		}
		texts := make([]any, len(list))
		for i, v := range list {
			texts[i] = clean(v)
		}
		out[name] = texts
	}
	return out
}

func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// answerIncomingWebhook writes the response of a webhook-response. Its headers cannot
// replace those that the server sets itself.
func answerIncomingWebhook(c echo.Context, result *agent.NodeResult) error {
	var answer struct {
		Status  float64        `json:"status"`
		Headers map[string]any `json:"headers"`
		Body    any            `json:"body"`
	}
	if err := agent.DecodeJSON(result.Output, &answer); err != nil {
		return err
	}
	media := ""
	for name, v := range answer.Headers {
		value, _ := v.(string)
		switch {
		case agent.ResponseHeaderIssue(name, value) != "": // of an execution of an earlier version
		case strings.EqualFold(name, echo.HeaderContentType):
			media = value
		default:
			c.Response().Header().Set(name, value)
		}
	}
	// A workflow's response must not run as a page of this server.
	c.Response().Header().Set(echo.HeaderContentSecurityPolicy, "sandbox; default-src 'none'")
	if text, ok := answer.Body.(string); ok {
		if media == "" {
			media = "text/plain; charset=utf-8"
		}
		return c.Blob(int(answer.Status), media, []byte(text))
	}
	if media == "" {
		media = echo.MIMEApplicationJSON
	}
	if answer.Body == nil {
		return c.NoContent(int(answer.Status))
	}
	raw, err := json.Marshal(answer.Body)
	if err != nil {
		return err
	}
	return c.Blob(int(answer.Status), media, raw)
}
