package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent/egress"
)

// Remote is a Chromium on another machine, reached by the Chrome DevTools Protocol.
type Remote struct {
	// URL is its endpoint: ws:// or wss://, or http:// of a debugging port,
	// from which the former is read. User information and query may contain
	// credentials.
	URL string
	// ProxyAddr is where this server listens for the requests of pages, and where the
	// remote Chromium reaches it: host:port.
	ProxyAddr string
}

// Limits of a remote Chromium.
const (
	discoverTimeout  = 10 * time.Second
	maxVersionAnswer = 64 << 10 // bytes of /json/version
	authorizeTimeout = 10 * time.Second
)

// connect starts the driver and connects it to a remote Chromium.
func connect(ctx context.Context, program Program, address string, log *slog.Logger) (*chromium, error) {
	target, err := discover(ctx, address)
	if err != nil {
		return nil, err
	}
	folder, err := newFolder(program, false)
	if err != nil {
		return nil, err
	}
	relay, err := newRelay(target)
	if err != nil {
		return nil, errors.Join(err, folder.remove())
	}
	c := &chromium{
		headless: true,
		relay:    relay,
		folder:   folder,
		log:      log,
		done:     make(chan struct{}),
		cleaned:  make(chan struct{}),
	}
	return c.begin(ctx, func() (playwright.Browser, error) {
		made, err := c.driver.Chromium.ConnectOverCDP(relay.URL(), playwright.BrowserTypeConnectOverCDPOptions{
			Timeout: playwright.Float(startTimeout.Seconds() * 1000),
		})
		if err != nil {
			return nil, fmt.Errorf(
				"connect to the browser at %s: %w",
				target.address.Host,
				errors.Join(relay.failure(), err),
			)
		}
		return made, nil
	})
}

// endpoint is where to connect to.
type endpoint struct {
	address *url.URL // http or https, without user information
	host    string   // the Host header
	header  http.Header
}

// discover returns the endpoint of an address in the settings. Errors do not contain
// its credentials.
func discover(ctx context.Context, address string) (endpoint, error) {
	target, err := url.Parse(address)
	if err != nil {
		return endpoint{}, errors.New("the address of the remote browser is malformed")
	}
	e := endpoint{
		address: target,
		host:    target.Host,
		header:  http.Header{},
	}
	if target.User != nil {
		password, _ := target.User.Password()
		basic := &http.Request{Header: e.header}
		basic.SetBasicAuth(target.User.Username(), password)
		target.User = nil
	}
	switch target.Scheme {
	case "ws":
		target.Scheme = "http"
	case "wss":
		target.Scheme = "https"
	default:
		// Chromium's own port refuses names other than localhost.
		e.host = "localhost"
		target.Path, err = e.socketPath(ctx)
	}
	return e, err
}

// socketPath asks a debugging port for the path of the browser's WebSocket, which
// changes with each start.
func (e endpoint) socketPath(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	u := *e.address
	u.Path = "/json/version"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", errors.New("the address of the remote browser is malformed")
	}
	req.Header, req.Host = e.header.Clone(), e.host
	resp, err := remoteClient(maxVersionAnswer).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var version struct {
		Socket string `json:"webSocketDebuggerUrl"`
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s/json/version answers with status %d", e.address.Host, resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&version); err != nil {
		return "", fmt.Errorf("%s/json/version does not answer as a browser does", e.address.Host)
	}
	socket, err := url.Parse(version.Socket)
	if err != nil || socket.Path == "" {
		return "", fmt.Errorf("%s/json/version names no WebSocket", e.address.Host)
	}
	return socket.Path, nil
}

// remoteClient returns a client for the endpoint. The operator configures the endpoint,
// so its address may be private.
func remoteClient(maxResponse int64) *egress.Client {
	return egress.New(egress.Policy{
		AllowPrivate:  true,
		MaxResponse:   maxResponse,
		HeaderTimeout: startTimeout,
	})
}

// endProblem returns the error of sessions whose Chromium ended.
func (c *chromium) endProblem() string {
	if c.relay != nil {
		return "the connection to the remote browser was lost"
	}
	return "the browser ended unexpectedly"
}

// newProfile creates a profile whose traffic goes through a proxy.
func (c *chromium) newProfile(
	ctx context.Context,
	proxy *egress.Proxy,
	options playwright.BrowserNewContextOptions,
) (playwright.BrowserContext, error) {
	options.Proxy = &playwright.Proxy{Server: proxy.URL()}
	made, err := Within(ctx, func() (playwright.BrowserContext, error) {
		made, err := c.browser.NewContext(options)
		if err == nil && ctx.Err() != nil {
			return nil, made.Close() // no caller is waiting anymore
		}
		return made, err
	})
	if err != nil {
		return nil, err
	}
	if user, password := proxy.Credentials(); user != "" {
		if err := authorize(ctx, made, user, password); err != nil {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			defer cancel()
			_, _ = Within(closing, func() (any, error) {
				return nil, made.Close()
			}) // the first error matters
			return nil, fmt.Errorf(
				"the remote browser does not get through the proxy of this server at %s: %w",
				proxy.URL(),
				err,
			)
		}
	}
	return made, nil
}

// authorize provides a new profile with the credentials of its proxy, which the
// profile's network stack then remembers. Playwright would send them to every server
// that asks for credentials, and route all requests through the driver.
func authorize(ctx context.Context, profile playwright.BrowserContext, user, password string) error {
	ctx, cancel := context.WithTimeout(ctx, authorizeTimeout)
	defer cancel()
	_, err := Within(ctx, func() (any, error) {
		page, err := profile.NewPage()
		if err != nil {
			return nil, err
		}
		cdp, err := profile.NewCDPSession(page)
		if err != nil {
			return nil, err
		}
		answers := &proxyLogin{cdp: cdp, user: user, password: password}
		// Handlers must not call Playwright themselves.
		cdp.On("Fetch.requestPaused", func(e map[string]any) {
			go answers.proceed(e)
		})
		cdp.On("Fetch.authRequired", func(e map[string]any) { go answers.logIn(e) })
		if _, err := cdp.Send("Fetch.enable", map[string]any{"handleAuthRequests": true}); err != nil {
			return nil, err
		}
		resp, err := page.Goto(egress.ProxyCheckURL, playwright.PageGotoOptions{
			Timeout: playwright.Float(float64(authorizeTimeout.Milliseconds())),
		})
		if err != nil {
			return nil, err
		}
		if resp == nil || resp.Status() != http.StatusOK {
			return nil, errors.New("it was not let in")
		}
		return nil, page.Close() // which ends the interception
	})
	return err
}

// proxyLogin answers the requests of a profile's proxy for credentials.
type proxyLogin struct {
	cdp            playwright.CDPSession
	user, password string
}

// proceed lets a request continue.
func (l *proxyLogin) proceed(e map[string]any) {
	// otherwise the page fails to load
	_, _ = l.cdp.Send("Fetch.continueRequest", map[string]any{"requestId": e["requestId"]})
}

// logIn answers a proxy's request for credentials, but never a server's.
func (l *proxyLogin) logIn(e map[string]any) {
	answer := map[string]any{"response": "CancelAuth"}
	if challenge, _ := e["authChallenge"].(map[string]any); challenge["source"] == "Proxy" {
		answer = map[string]any{
			"response": "ProvideCredentials",
			"username": l.user,
			"password": l.password,
		}
	}
	// as in proceed
	_, _ = l.cdp.Send("Fetch.continueWithAuth", map[string]any{
		"requestId":             e["requestId"],
		"authChallengeResponse": answer,
	})
}
