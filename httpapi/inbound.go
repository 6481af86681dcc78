package httpapi

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
)

// receivedOut describes the JSON that answers a post.
type receivedOut struct {
	Success bool   `json:"success,omitempty" doc:"Of a custom webhook." example:"true"`
	Type    int    `json:"type,omitempty" doc:"Of community_chat: what kind of answer this is."`
	EventID string `json:"event_id,omitempty" doc:"Of a custom webhook. By which a repeat is known: the message's id, else the post's." example:"msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"`
}

// postTimeout bounds how long a platform may take to send a post. Platforms
// give up on us after seconds themselves.
const postTimeout = 15 * time.Second

// takePost takes in what a platform posts. The body is read as it comes:
// signatures are over its bytes, whatever it says it is.
func (s *Server) takePost(c *rest.Call) error {
	in, err := rest.Bind[gatewayIn](c)
	if err != nil {
		return err
	}
	r := c.HTTP.Request()
	if r.ContentLength > gateways.MaxPost {
		return postTooLarge()
	}
	_ = http.NewResponseController(c.HTTP.Response()).SetReadDeadline(time.Now().Add(postTimeout))
	body, err := io.ReadAll(io.LimitReader(r.Body, gateways.MaxPost+1))
	switch {
	case err != nil:
		return agent.Errorf(agent.CodeInvalidJSON, "the request body could not be read whole").Because(err)
	case len(body) > gateways.MaxPost:
		return postTooLarge()
	}
	answer, err := s.options.Gateways.Receive(c, c.DB, in.ID, gateways.Post{URL: r.URL.RequestURI(), Header: r.Header, Body: body})
	if code := agent.ErrorCode(err); err == nil || code == agent.CodeUnauthorized || code == agent.CodeValidation {
		s.gateways.meet(in.ID)
	}
	if err != nil {
		return err
	}
	if answer.Status == 0 {
		answer.Status = http.StatusOK
	}
	if len(answer.Body) == 0 {
		return c.HTTP.NoContent(answer.Status)
	}
	c.HTTP.Response().Header().Set(echo.HeaderContentSecurityPolicy, "sandbox; default-src 'none'")
	return c.HTTP.Blob(answer.Status, answer.ContentType, answer.Body)
}

func postTooLarge() error {
	return agent.Errorf(agent.CodeFileTooLarge, "a post to a gateway may have at most %d MB", gateways.MaxPost>>20).With("limit_bytes", gateways.MaxPost)
}

// maxKnownGateways bounds the gateways that are remembered.
const maxKnownGateways = 100_000

// knownGateways remembers which gateways there are, of those that were posted
// to.
type knownGateways struct {
	mu  sync.RWMutex
	ids map[string]bool
}

func (k *knownGateways) known(id string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.ids[id]
}

func (k *knownGateways) meet(id string) {
	if k.known(id) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil || len(k.ids) >= maxKnownGateways {
		k.ids = map[string]bool{}
	}
	k.ids[id] = true
}

type registerGatewayIn struct {
	gatewayIn
	Body struct {
		BaseURL string `json:"baseUrl,omitempty" doc:"This server's address as the platform reaches it; SATCHEL_PUBLIC_URL without one." example:"https://satchel.example.com"`
	}
}

type registeredOut struct {
	Success      bool   `json:"success"`
	WebhookURL   string `json:"webhookUrl" doc:"Where the platform is to post to."`
	Instructions string `json:"instructions,omitempty" doc:"What is left to be done by hand."`
	Error        string `json:"error,omitempty" doc:"Why not, without success."`
}

func (s *Server) registerGateway(c *rest.Call, in *registerGatewayIn) (registeredOut, error) {
	r, err := s.options.Gateways.Register(c, c.DB, in.ID, in.Body.BaseURL)
	return registeredOut(r), err
}
