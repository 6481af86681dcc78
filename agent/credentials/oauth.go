package credentials

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

const (
	maxAnswer = 1 << 20 // bytes of a token endpoint's or a metadata answer
)

// endpoints are the addresses of an authorization server.
type endpoints struct {
	Auth   string `json:"authorization_endpoint"`
	Token  string `json:"token_endpoint"`
	Device string `json:"device_authorization_endpoint"`
	Revoke string `json:"revocation_endpoint"`
	Issuer string `json:"issuer"`
	// IssRequired reports whether the callback names the issuer (RFC 9207).
	IssRequired bool `json:"authorization_response_iss_parameter_supported"`
}

// endpoints returns the addresses of a credential. Those that its config leaves
// out come from the issuer's metadata.
func (c *Credentials) endpoints(ctx context.Context, credential store.OpenCredential) (endpoints, error) {
	config := credential.Config
	e := endpoints{
		Auth:   config.AuthURL,
		Token:  config.TokenURL,
		Device: config.DeviceURL,
		Revoke: config.RevokeURL,
	}
	if config.Issuer == "" || e.Token != "" && !config.NeedsSignIn() {
		return e, nil
	}
	found, err := c.metadata(ctx, config.Issuer)
	if err != nil {
		return e, err
	}
	found.Auth, found.Token = cmp.Or(e.Auth, found.Auth), cmp.Or(e.Token, found.Token)
	found.Device, found.Revoke = cmp.Or(e.Device, found.Device), cmp.Or(e.Revoke, found.Revoke)
	if found.Token == "" {
		return found, agent.Errorf(agent.CodeUpstream, "the metadata of the issuer has no token endpoint")
	}
	return found, nil
}

// metadata reads the metadata of an authorization server (RFC 8414), or of an
// OpenID provider.
func (c *Credentials) metadata(ctx context.Context, issuer string) (endpoints, error) {
	address, err := url.Parse(issuer)
	if err != nil {
		return endpoints{}, agent.Invalid("config.issuer", "must be a URL")
	}
	base, path := address.Scheme+"://"+address.Host, strings.TrimSuffix(address.EscapedPath(), "/")
	var last error
	for _, place := range []string{
		base + "/.well-known/oauth-authorization-server" + path,
		base + path + "/.well-known/openid-configuration",
		base + "/.well-known/openid-configuration" + path,
	} {
		var found endpoints
		if last = c.getJSON(ctx, place, &found); last != nil {
			continue
		}
		if found.Issuer != issuer {
			return found, agent.Errorf(agent.CodeUpstream, "the metadata of the issuer names another issuer")
		}
		return found, nil
	}
	return endpoints{}, last
}

func (c *Credentials) getJSON(ctx context.Context, address string, into any) error {
	req, err := c.request(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	status, raw, _, err := c.ask(req)
	if err == nil && (status != http.StatusOK || json.Unmarshal(raw, into) != nil) {
		err = agent.Errorf(
			agent.CodeUpstream,
			"the issuer did not return metadata (status %d)",
			status,
		).With("status", status)
	}
	return err
}

// request builds a request to an endpoint, which must be https unless the
// operator opened its address.
func (c *Credentials) request(ctx context.Context, method, address string, form url.Values) (*http.Request, error) {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(egress.WithCredential(ctx, nil), method, address, body)
	if err != nil {
		return nil, agent.Errorf(agent.CodeUpstream, "an endpoint of the provider has no valid URL")
	}
	if err := c.client.CheckPrivate(ctx, req.URL); err != nil {
		return nil, egress.Explain(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Satchel/"+c.version)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req, nil
}

func (c *Credentials) ask(req *http.Request) (status int, raw []byte, contentType string, err error) {
	ctx, cancel := context.WithTimeout(req.Context(), requestTime)
	defer cancel()
	resp, err := c.tokens.Do(req.WithContext(ctx))
	if err != nil {
		return 0, nil, "", egress.Explain(err)
	}
	defer resp.Body.Close()
	raw, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, nil, "", egress.Explain(err)
	}
	return resp.StatusCode, raw, resp.Header.Get("Content-Type"), nil
}

// grantedTokens is what a token endpoint granted.
type grantedTokens struct {
	agent.CredentialTokens
	account string // of the ID token
}

// askTokens requests tokens from a token endpoint (RFC 6749). The error of a refusal
// has the code in its details, see oauthCode.
func (c *Credentials) askTokens(
	ctx context.Context,
	credential store.OpenCredential,
	endpoint string,
	form url.Values,
) (grantedTokens, error) {
	requestedAt := c.now()
	status, raw, contentType, err := c.postClient(ctx, credential, endpoint, form)
	if err != nil {
		return grantedTokens{}, err
	}
	fields := egress.ReadOAuth(raw, contentType)
	access, usable := fields.BearerToken()
	switch {
	case status/100 != 2 || access == "":
		return grantedTokens{}, refusalError(status, fields, secretsOf(credential, form))
	case !usable:
		return grantedTokens{}, agent.Errorf(agent.CodeUpstream, "the provider's answer has no bearer token")
	}
	a := grantedTokens{
		agent.CredentialTokens{
			AccessToken:  access,
			RefreshToken: fields.Text("refresh_token"),
			IssuedAt:     agent.At(requestedAt),
		},
		accountOf(fields.Text("id_token")),
	}
	if life := fields.Seconds("expires_in"); life > 0 {
		a.ExpiresAt = agent.At(requestedAt.Add(life))
	}
	return a, nil
}

// postClient posts a form as the client of a credential.
func (c *Credentials) postClient(
	ctx context.Context,
	credential store.OpenCredential,
	endpoint string,
	form url.Values,
) (status int, raw []byte, contentType string, err error) {
	secret := credential.Values["client_secret"]
	if credential.Config.ClientID != "" && (secret == "" || credential.Config.TokenAuth == "body") {
		form.Set("client_id", credential.Config.ClientID)
	}
	if secret != "" && credential.Config.TokenAuth == "body" {
		form.Set("client_secret", secret)
	}
	req, err := c.request(ctx, http.MethodPost, endpoint, form)
	if err != nil {
		return 0, nil, "", err
	}
	if secret != "" && credential.Config.TokenAuth != "body" {
		req.SetBasicAuth(url.QueryEscape(credential.Config.ClientID), url.QueryEscape(secret))
	}
	return c.ask(req)
}

var oauthError = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// temporaryCodes are the codes of refusals that may be temporary.
var temporaryCodes = map[string]bool{
	"":                        true,
	"temporarily_unavailable": true,
	"server_error":            true,
	"slow_down":               true,
}

// refusalError returns the error for a response without tokens. It includes the provider's
// text, with secrets masked.
func refusalError(status int, fields egress.OAuthAnswer, secrets []string) error {
	code, description := fields.Text("error"), cmp.Or(fields.Text("error_description"), fields.Text("message"))
	if listed, ok := fields["errors"].([]any); ok && code == "" && len(listed) > 0 {
		fields["error"] = listed[0] // Fitbit
	}
	if object, ok := fields["error"].(map[string]any); ok {
		inner := egress.OAuthAnswer(object)
		code, description =
			cmp.Or(inner.Text("type"), inner.Text("errorType"), inner.Text("code")), inner.Text("message")
	}
	if _, err := strconv.Atoi(fields.Text("status")); code == "" && err != nil {
		code = fields.Text("status") // HubSpot: BAD_REFRESH_TOKEN
	}
	if len(code) > 60 || !oauthError.MatchString(code) {
		code = ""
	}
	description = egress.NewMasker(secrets).Replace(description)
	for _, s := range secrets {
		if len(s) >= 4 {
			description = strings.ReplaceAll(description, s, agent.Mask)
		}
	}
	message := fmt.Sprintf("the provider grants no token (status %d)", status)
	if code != "" {
		message = "the provider grants no token: " + code
	}
	if description = strings.Join(strings.Fields(description), " "); description != "" && code != "" {
		message += ": " + agent.Clip(description, 300)
	}
	e := agent.Errorf(agent.CodeUpstream, "%s", message).With("status", status)
	if status < 500 && status != http.StatusTooManyRequests && !temporaryCodes[code] {
		e = e.With("oauth_error", code)
	}
	return e
}

// oauthCode returns the code with which a provider permanently refused a
// request, or "".
func oauthCode(err error) string {
	e, ok := errors.AsType[*agent.Error](err)
	if !ok {
		return ""
	}
	code, _ := e.Details["oauth_error"].(string)
	return code
}

// secretsOf returns the secret texts in a request for tokens.
func secretsOf(o store.OpenCredential, form url.Values) []string {
	all := []string{o.Tokens.AccessToken, o.Tokens.RefreshToken}
	for _, v := range o.Values {
		all = append(all, v)
	}
	for _, name := range []string{
		"code", "code_verifier", "refresh_token", "assertion", "client_secret", "device_code",
	} {
		all = append(all, form.Get(name))
	}
	return all
}

// accountOf returns the account named in an ID token. The token comes directly from
// the token endpoint and is only displayed, so its signature is not checked.
func accountOf(idToken string) string {
	parts := strings.Split(idToken, ".")
	if len(parts) != 3 {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Email    string `json:"email"`
		Username string `json:"preferred_username"`
		Name     string `json:"name"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	return agent.Clip(cmp.Or(claims.Email, claims.Username, claims.Name), 200)
}
