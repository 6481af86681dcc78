package httpapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
)

// receivedOut describes the JSON response to a webhook request.
type receivedOut struct {
	Success bool   `json:"success,omitempty" doc:"For a custom webhook." example:"true"`
	Type    int    `json:"type,omitempty" doc:"For Discord: the type of the response."`
	EventID string `json:"event_id,omitempty" doc:"For a custom webhook: the id that identifies duplicates, of the message or else of the request." example:"msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"`
}

// postTimeout limits the time of a platform's request. Platforms themselves
// give up after seconds.
const postTimeout = 15 * time.Second

// receivePost receives a platform's webhook request. The body is read unchanged,
// as signatures cover its bytes.
func (s *Server) receivePost(call *rest.Call) error {
	in, err := rest.Bind[gatewayIn](call)
	if err != nil {
		return err
	}
	receiver, err := s.options.Gateways.Receiver(call, call.DB, in.ID)
	if err != nil {
		return err
	}
	_ = http.NewResponseController(call.HTTP.Response()).SetReadDeadline(time.Now().Add(postTimeout))
	body, err := call.ReadBody()
	if err != nil {
		return err
	}
	request := call.HTTP.Request()
	admit := func() error {
		if !s.gateways.known(in.ID) { // counted for its address
			return nil
		}
		return s.limiter.CountNamed(call.HTTP, rest.Inbound, in.ID, rest.InboundLimit)
	}
	answer, err := receiver.Receive(call, gateways.Post{
		URL:    request.URL.RequestURI(),
		Header: request.Header,
		Body:   body,
		Admit:  admit,
	})
	if code := agent.ErrorCode(err); err == nil || code == agent.CodeUnauthorized || code == agent.CodeValidation {
		s.gateways.add(in.ID)
	}
	if err != nil {
		return err
	}
	if answer.Status == 0 {
		answer.Status = http.StatusOK
	}
	if len(answer.Body) == 0 {
		return call.HTTP.NoContent(answer.Status)
	}
	call.HTTP.Response().Header().Set(echo.HeaderContentSecurityPolicy, "sandbox; default-src 'none'")
	return call.HTTP.Blob(answer.Status, answer.ContentType, answer.Body)
}

// maxCachedGateways limits the cached gateways.
const maxCachedGateways = 100_000

// gatewayCache caches which gateways exist, among those that received
// requests.
type gatewayCache struct {
	mu  sync.RWMutex
	ids map[string]bool
}

func (k *gatewayCache) known(id string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.ids[id]
}

func (k *gatewayCache) add(id string) {
	if k.known(id) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil || len(k.ids) >= maxCachedGateways {
		k.ids = map[string]bool{}
	}
	k.ids[id] = true
}

type registerGatewayIn struct {
	gatewayIn
	Body struct {
		BaseURL string `json:"baseUrl,omitempty" doc:"Public URL of this server. Default: SATCHEL_PUBLIC_URL." example:"https://satchel.example.com"`
	}
}

type registeredOut struct {
	Success      bool   `json:"success"`
	WebhookURL   string `json:"webhookUrl" doc:"The URL that the platform posts to."`
	Instructions string `json:"instructions,omitempty" doc:"What remains to be done manually."`
	Error        string `json:"error,omitempty" doc:"Why it failed; empty if it succeeded."`
}

func (s *Server) registerGateway(c *rest.Call, in *registerGatewayIn) (registeredOut, error) {
	r, err := s.options.Gateways.Register(c, c.DB, in.ID, in.Body.BaseURL)
	return registeredOut(r), err
}
