// Package client is the command line as a client of a server: agents, sources,
// questions, workflows, logs and SQL over the API, and an agent's definition as
// text files.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// Limits of a request.
const (
	headerTimeout = 6 * time.Minute // the longest wait that the API offers is five
	maxAnswer     = 64 << 20        // bytes of an answer that is read whole
	maxTries      = 6
	maxDelay      = 90 * time.Second // rate windows are a minute
)

// api is a server, as seen by the holder of one key.
type api struct {
	base string // with /api
	key  string
	http *http.Client
	wait func(context.Context, time.Duration) error // sleeps
	note func(string)                               // says why a request waits
}

// newAPI returns the client of a server. address may leave out the scheme: plain
// HTTP is then for this machine only.
func newAPI(address, key string) (*api, error) {
	base, err := baseURL(address)
	if err != nil {
		return nil, err
	}
	out := egress.New(egress.Policy{
		AllowPrivate:  true,
		MaxResponse:   -1,
		Verbatim:      true,
		HeaderTimeout: headerTimeout,
	})
	a := &api{base: base, key: key, http: out.HTTP()}
	a.http.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return a, nil
}

func baseURL(address string) (string, error) {
	text := strings.TrimSuffix(strings.TrimRight(address, "/"), "/api")
	if !strings.Contains(text, "://") {
		scheme := "https://"
		if host, _, _ := strings.Cut(text, ":"); isLoopback(host) {
			scheme = "http://"
		}
		text = scheme + text
	}
	u, err := url.Parse(text)
	if err != nil ||
		(u.Scheme != "http" && u.Scheme != "https") ||
		u.Host == "" ||
		u.User != nil ||
		u.RawQuery != "" ||
		u.Fragment != "" {
		return "", errors.New("--server must be an address like https://agents.example.com")
	}
	return text + "/api", nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && addr.IsLoopback())
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// readKey returns the API key from the file, if one is named, or else from the
// variable. "" means none.
func readKey(file, variable string) (string, error) {
	if file == "" {
		return strings.TrimSpace(variable), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the API key: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" || strings.ContainsAny(key, " \t\r\n") || len(key) > 200 {
		return "", fmt.Errorf("%s does not hold one API key", file)
	}
	return key, nil
}

// Failure is an error that the server answered with.
type Failure struct {
	Status  int
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// Error returns the server's message, and the field at fault.
func (f *Failure) Error() string {
	text := clean(f.Message)
	if field, ok := f.Details["field"].(string); ok && !strings.Contains(text, field) {
		text = clean(field) + ": " + text
	}
	if f.Status == http.StatusUnauthorized || f.Details["role"] != nil { // not what is denied to every role
		text += "; the API key comes from SATCHEL_API_KEY or --key-file"
	}
	if f.Status == 0 { // an event of a stream
		return fmt.Sprintf("%s (%s)", text, clean(f.Code))
	}
	return fmt.Sprintf("%s (%d %s)", text, f.Status, clean(f.Code))
}

// request is one call of the API.
type request struct {
	method, path string
	query        url.Values
	body         any           // sent as JSON, unless open is set
	open         func() upload // makes the body, again for each try
	accept       string
}

// upload is a body that is not JSON.
type upload struct {
	body      io.ReadCloser
	mediaType string
	err       error
}

// send returns a successful response, whose body the caller closes. A request that
// exceeded a rate limit is sent again when the server allows it; a read is also
// retried after other temporary failures.
func (a *api) send(ctx context.Context, request request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := a.once(ctx, request)
		if err == nil && resp.StatusCode < 300 {
			return resp, nil
		}
		delay, again := retryAfter(request, resp, err, try)
		if err == nil {
			err = failure(resp)
		}
		if !again || try == maxTries || ctx.Err() != nil {
			return nil, a.explain(err)
		}
		if delay >= time.Second {
			a.note(fmt.Sprintf("waiting %s: %v", delay.Round(time.Second), a.explain(err)))
		}
		if err := a.wait(ctx, delay); err != nil {
			return nil, err
		}
	}
}

func (a *api) once(ctx context.Context, request request) (*http.Response, error) {
	up, err := request.encode()
	if err != nil {
		return nil, err
	}
	address := a.base + request.path
	if len(request.query) > 0 {
		address += "?" + request.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, request.method, address, up.body)
	if err != nil {
		return nil, err
	}
	if up.mediaType != "" {
		req.Header.Set("Content-Type", up.mediaType)
	}
	if request.accept != "" {
		req.Header.Set("Accept", request.accept)
	}
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	return a.http.Do(req)
}

// encode returns the body for one attempt, or the zero upload if there is none.
func (r *request) encode() (upload, error) {
	switch {
	case r.open != nil:
		up := r.open()
		return up, up.err
	case r.body == nil:
		return upload{}, nil
	}
	raw, err := json.Marshal(r.body)
	return upload{body: io.NopCloser(bytes.NewReader(raw)), mediaType: "application/json"}, err
}

// retryAfter reports whether a request that failed may be sent again, and when.
func retryAfter(r request, resp *http.Response, err error, try int) (time.Duration, bool) {
	backoff := min(time.Duration(1<<try)*250*time.Millisecond, 8*time.Second)
	reads := r.method == http.MethodGet
	if err != nil { // without a connection, the address is wrong or the server is down
		return backoff, reads && !egress.IsUnsent(err) && !errors.Is(err, context.Canceled)
	}
	again := resp.StatusCode == http.StatusTooManyRequests ||
		reads &&
			(resp.StatusCode == http.StatusBadGateway ||
				resp.StatusCode == http.StatusServiceUnavailable ||
				resp.StatusCode == http.StatusGatewayTimeout)
	if delay := egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now()); delay > 0 {
		backoff = delay
	}
	return backoff, again && backoff <= maxDelay
}

// failure reads the error of an answer and closes it.
func failure(resp *http.Response) error {
	defer resp.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var out struct {
		Error Failure `json:"error"`
	}
	if json.Unmarshal(raw, &out) != nil || out.Error.Message == "" {
		return &Failure{
			Status:  resp.StatusCode,
			Code:    "HTTP",
			Message: "the server answers " + resp.Status + "; is it Satchel?",
		}
	}
	out.Error.Status = resp.StatusCode
	return &out.Error
}

func (a *api) explain(err error) error {
	var answered *Failure
	if errors.As(err, &answered) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf(
		"the server at %s cannot be reached: %s",
		strings.TrimSuffix(a.base, "/api"),
		egress.Explain(err).Message,
	)
}

// raw makes a request and returns its answer's body.
func (a *api) raw(ctx context.Context, r request) (json.RawMessage, error) {
	resp, err := a.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, a.explain(err)
	}
	return body, nil
}

// call makes a request and decodes its answer into out, unless that is nil.
func (a *api) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	answer, err := a.raw(ctx, request{
		method: method,
		path:   path,
		query:  query,
		body:   body,
	})
	if err != nil || out == nil {
		return err
	}
	return agent.DecodeJSON(answer, out)
}

// list returns the first records of a list, at most limit, following its pages.
func (a *api) list(ctx context.Context, path, key string, query url.Values, limit int) ([]record, error) {
	const page = 100
	if limit < 1 {
		return nil, errors.New("--limit must be at least 1")
	}
	query = cloneValues(query)
	all := []record{}
	for len(all) < limit {
		query.Set("limit", strconv.Itoa(min(page, limit-len(all))))
		query.Set("offset", strconv.Itoa(len(all)))
		var answer map[string]json.RawMessage
		var records []record
		if err := a.call(ctx, http.MethodGet, path, query, nil, &answer); err != nil {
			return nil, err
		}
		if err := agent.DecodeJSON(answer[key], &records); err != nil {
			return nil, fmt.Errorf("the server's list has no %s", key)
		}
		all = append(all, records...)
		if len(records) < page {
			break
		}
	}
	return all, nil
}

func cloneValues(v url.Values) url.Values {
	out := url.Values{}
	for name, values := range v {
		out[name] = values
	}
	return out
}

func decode(body io.Reader, out any) error {
	return json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(out)
}
