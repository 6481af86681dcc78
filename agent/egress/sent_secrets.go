package egress

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"satchel/agent"
)

// minCookie is from which length on the value of a cookie is a secret, in bytes.
const minCookie = 12

type secretsKey struct{}

// WithSecrets returns a context whose requests carry secrets in places that are not
// recognized: what comes back must not repeat them. Recognized are credentials, headers
// whose names say so, and the addresses of bots and webhooks.
func WithSecrets(ctx context.Context, secrets ...string) context.Context {
	known, _ := ctx.Value(secretsKey{}).([]string)
	return context.WithValue(ctx, secretsKey{}, slices.Concat(known, secrets))
}

// WithQuerySecrets is WithSecrets for the query parameters of an API whose names say that
// they are secrets. Pages are fetched without it: links in them may repeat parameters.
func WithQuerySecrets(ctx context.Context, address *url.URL) context.Context {
	if !strings.Contains(address.RawQuery, "=") {
		return ctx
	}
	var secrets []string
	for name, values := range address.Query() {
		secrets = append(
			secrets,
			slices.DeleteFunc(values, func(value string) bool {
				return !agent.IsSecretParameter(name, value)
			})...,
		)
	}
	if len(secrets) == 0 {
		return ctx
	}
	return WithSecrets(ctx, secrets...)
}

// secretsOf returns the secrets in a request as it is sent, and in those of its redirect
// chain, since a server may put them into the address it redirects to.
func secretsOf(sent *http.Request) []string {
	ctx := sent.Context()
	known, _ := ctx.Value(secretsKey{}).([]string)
	s := sentSecrets{all: slices.Clone(known)}
	s.named, _ = ctx.Value(credentialKey{}).(string)
	if c, _ := ctx.Value(attachKey{}).(Credential); c != nil {
		s.all = append(s.all, c.Secrets()...)
	}
	s.add(sent)
	for req := sent; req.Response != nil && req.Response.Request != nil; {
		req = req.Response.Request
		s.add(req)
	}
	return s.all
}

// sentSecrets collects the secrets in requests.
type sentSecrets struct {
	named string // a header with a credential, whatever its name
	all   []string
}

func (s *sentSecrets) add(req *http.Request) {
	for name, values := range req.Header {
		if isSecretHeader(name) || name == s.named {
			for _, value := range values {
				s.addHeader(name, value)
			}
		}
	}
	for _, found := range secretPath().FindAllStringSubmatch(req.URL.Path, -1) {
		s.all = append(s.all, found[1])
	}
}

// authParameter matches the parameters of an Authorization header that hold a secret.
var authParameter = agent.Pattern(
	`(?i)\b(?:[a-z_-]*token|[a-z_-]*key|[a-z_-]*secret|[a-z_-]*signature|password|response)="?([^",\s]+)`,
)

// addHeader adds the secrets in a header: of Basic the password, of Cookie each value, of
// other schemes what stands after the scheme.
func (s *sentSecrets) addHeader(name, value string) {
	if name == "Cookie" {
		for pair := range strings.SplitSeq(value, ";") {
			_, cookie, _ := strings.Cut(pair, "=")
			if cookie = strings.Trim(cookie, ` "`); len(cookie) >= minCookie { // shorter ones are settings
				s.all = append(s.all, cookie)
			}
		}
		return
	}
	value = strings.TrimSpace(value)
	scheme, token, found := strings.Cut(value, " ")
	if !found || !strings.HasSuffix(name, "Authorization") {
		s.all = append(s.all, value)
		return
	}
	token = strings.TrimSpace(token)
	s.all = append(s.all, token)
	for _, pair := range authParameter().FindAllStringSubmatch(token, -1) {
		s.all = append(s.all, pair[1])
	}
	if !strings.EqualFold(scheme, "Basic") {
		return
	}
	pair, err := base64.StdEncoding.DecodeString(token)
	user, password, ok := strings.Cut(string(pair), ":")
	if err != nil || !ok {
		return
	}
	s.all = append(s.all, string(pair), password)
	if !maskable(password) { // some APIs take their key as the name, with any password
		s.all = append(s.all, user)
	}
}

// isSecretHeader reports whether a header of this name carries a secret.
func isSecretHeader(name string) bool {
	if name == "Idempotency-Key" || strings.HasPrefix(name, "Sec-Websocket-") {
		return false
	}
	lower := strings.ToLower(name)
	has := func(word string) bool { return strings.Contains(lower, word) }
	return agent.IsSecretHeader(name) || has("auth") && !has("author") || has("password")
}

// secretPath matches the secret in the paths of Telegram's API and of the webhooks of
// Discord and Slack.
var secretPath = agent.Pattern(`(?:/bot[0-9]+:|/webhooks/[0-9]+/|/services/T[0-9A-Z]+/B[0-9A-Z]+/)([^/]+)`)
