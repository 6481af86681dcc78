package credentials

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

const (
	loginLife      = 10 * time.Minute
	maxDeviceLife  = 30 * time.Minute
	callbackPath   = "/oauth/callback"
	startPath      = "/oauth/start/"
	maxRedirected  = 8192 // bytes of the address that a person pastes
	deviceInterval = 5 * time.Second
)

// login is a login in progress. It is stored sealed with its credential, so it
// survives a restart; a new login replaces it. A ticket starts it, and the state
// that Start generates completes it. Each works once.
type login struct {
	Ticket   string     `json:"ticket,omitempty"` // hash
	State    string     `json:"state,omitempty"`  // hash
	Cookie   string     `json:"cookie,omitempty"` // hash
	Verifier string     `json:"verifier,omitempty"`
	Issuer   string     `json:"issuer,omitempty"` // that the callback names; IssRequired: must name
	Required bool       `json:"iss_required,omitempty"`
	Device   string     `json:"device,omitempty"`
	Interval int        `json:"interval,omitempty"` // seconds
	By       string     `json:"by,omitempty"`       // who asked for the login
	Ends     agent.Time `json:"ends"`
}

// Connection tells a person how to connect a credential.
type Connection struct {
	URL             string     `json:"url,omitempty" doc:"For authorization_code: the address to open in a browser. Its page says who asked for the login before it leads to the provider. It works once."`
	UserCode        string     `json:"user_code,omitempty" doc:"For device_code: the code to type at verification_url." example:"WDJB-MJHT"`
	VerificationURL string     `json:"verification_url,omitempty" doc:"For device_code."`
	Interval        int        `json:"interval,omitempty" doc:"For device_code: how many seconds to wait before each connect/complete." example:"5"`
	RedirectURL     string     `json:"redirect_url,omitempty" doc:"For authorization_code: the redirect address, to be registered with the provider."`
	ExpiresAt       agent.Time `json:"expires_at" format:"date-time"`
}

// RedirectURL returns the one redirect address of this server.
func (c *Credentials) RedirectURL() string { return c.address + callbackPath }

const clientPath = "/oauth/client.json"

// ClientDocument returns the address of ClientMetadata, which is this server's client
// id at authorization servers that read the metadata there. It returns "" without
// https, which they require.
func (c *Credentials) ClientDocument() string {
	if !strings.HasPrefix(c.address, "https://") {
		return ""
	}
	return c.address + clientPath
}

// ClientMetadata describes this server as an OAuth client, see RFC 7591 and
// draft-ietf-oauth-client-id-metadata-document.
type ClientMetadata struct {
	ClientID      string   `json:"client_id"`
	ClientName    string   `json:"client_name"`
	ClientURI     string   `json:"client_uri"`
	RedirectURIs  []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	TokenAuth     string   `json:"token_endpoint_auth_method"`
}

// ClientMetadata returns the document served at ClientDocument.
func (c *Credentials) ClientMetadata() ClientMetadata {
	return ClientMetadata{
		ClientID:      c.ClientDocument(),
		ClientName:    "Satchel",
		ClientURI:     c.address,
		RedirectURIs:  []string{c.RedirectURL()},
		GrantTypes:    []string{agent.GrantCode, "refresh_token"},
		ResponseTypes: []string{"code"},
		TokenAuth:     "none",
	}
}

// Connect begins a login. by describes who asked for it, for the person who signs in.
func (c *Credentials) Connect(ctx context.Context, db *store.DB, ref, by string) (Connection, error) {
	credential, err := db.OpenCredential(ctx, ref)
	if err != nil {
		return Connection{}, err
	}
	switch {
	case credential.Type == agent.CredentialOAuth2 && credential.Config.Grant == agent.GrantDevice:
		return c.connectDevice(ctx, db, credential)
	case credential.Type != agent.CredentialOAuth2 || credential.Config.Grant != agent.GrantCode:
		return Connection{}, agent.Errorf(
			agent.CodeConflict,
			"only a credential of type oauth2 with the grant authorization_code or "+
				"device_code is connected by a person",
		)
	}
	ticket := rand.Text()
	ends := agent.At(c.now().Add(loginLife))
	if err := putLogin(ctx, db, credential.ID, login{
		Ticket: hash(ticket),
		By:     by,
		Ends:   ends,
	}); err != nil {
		return Connection{}, err
	}
	return Connection{
		URL:         c.address + startPath + loginToken(db, credential.ID, ticket),
		RedirectURL: c.RedirectURL(),
		ExpiresAt:   ends,
	}, nil
}

func putLogin(ctx context.Context, db *store.DB, id string, l login) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return db.PutLogin(ctx, id, string(raw))
}

// loginToken returns a text that identifies a credential and contains a secret.
func loginToken(db *store.DB, id, secret string) string {
	return db.ID() + "." + id + "." + secret
}

// findByToken returns the agent, the credential id and the secret in a text made by join.
func (c *Credentials) findByToken(joined string) (db *store.DB, id, secret string, err error) {
	parts := strings.Split(joined, ".")
	if len(parts) != 3 || !strings.HasPrefix(parts[1], agent.KindCredential+"-") {
		return nil, "", "", invalidLoginError()
	}
	if db, err = c.folder.Agent(parts[0]); err != nil ||
		db.ID() != parts[0] ||
		db.Problem() != nil ||
		db.Agent().Status == agent.StatusDisabled {
		return nil, "", "", invalidLoginError()
	}
	return db, parts[1], parts[2], nil
}

// invalidLoginError returns the error for a login that is unknown, used or expired.
func invalidLoginError() error {
	return agent.Errorf(
		agent.CodeValidation,
		"this sign-in has expired or was already used; start again from Credentials",
	).With("field", "state")
}

func hash(text string) string {
	sum := sha256.Sum256([]byte("satchel login " + text))
	return hex.EncodeToString(sum[:])
}

func matchesHash(hashed, text string) bool {
	return hashed != "" && subtle.ConstantTimeCompare([]byte(hashed), []byte(hash(text))) == 1
}

// replaceLogin calls fn with a credential's current login and stores the login
// that fn returns instead; nil for none.
func (c *Credentials) replaceLogin(ctx context.Context, db *store.DB, id string, fn func(login) (*login, error)) error {
	return db.TakeLogin(ctx, id, func(raw string) (string, error) {
		var l login
		if raw == "" ||
			json.Unmarshal([]byte(raw), &l) != nil ||
			!c.now().Before(l.Ends.Time) {
			return "", invalidLoginError()
		}
		next, err := fn(l)
		if err != nil || next == nil {
			return "", err
		}
		text, err := json.Marshal(next)
		return string(text), err
	})
}

// Start begins a login in a browser: it returns the address where the person signs
// in, and a cookie that the callback must present. It uses up the ticket.
func (c *Credentials) Start(ctx context.Context, ticket string) (location string, cookie *http.Cookie, err error) {
	pending, err := c.pending(ctx, ticket)
	if err != nil {
		return "", nil, err
	}
	state, binding, verifier := rand.Text(), rand.Text(), rand.Text()+rand.Text()
	err = c.replaceLogin(ctx, pending.db, pending.open.ID, func(l login) (*login, error) {
		if !matchesHash(l.Ticket, pending.secret) {
			return nil, invalidLoginError()
		}
		return &login{
			State:    hash(state),
			Cookie:   hash(binding),
			Verifier: verifier,
			Issuer:   pending.endpoints.Issuer,
			Required: pending.endpoints.IssRequired,
			Ends:     l.Ends,
		}, nil
	})
	if err != nil {
		return "", nil, err
	}
	location, err = c.signIn(
		pending.open,
		pending.endpoints,
		loginToken(pending.db, pending.open.ID, state),
		verifier,
	)
	return location, c.cookie(state, binding), err
}

// signIn returns the address where the person signs in.
func (c *Credentials) signIn(
	credential store.OpenCredential,
	endpoints endpoints,
	state, verifier string,
) (string, error) {
	address, err := c.client.CheckURL(endpoints.Auth)
	if err != nil {
		return "", unreachableProvider()
	}
	challenge := sha256.Sum256([]byte(verifier))
	query := address.Query()
	for name, value := range credential.Config.AuthParams {
		query.Set(name, value)
	}
	for name, value := range map[string]string{
		"response_type":         "code",
		"client_id":             credential.Config.ClientID,
		"redirect_uri":          c.RedirectURL(),
		"state":                 state,
		"code_challenge":        base64.RawURLEncoding.EncodeToString(challenge[:]),
		"code_challenge_method": "S256",
	} {
		query.Set(name, value)
	}
	optional(query, "scope", credential.Config.Scope)
	optional(query, "resource", credential.Config.Resource)
	optional(query, "audience", credential.Config.Audience)
	address.RawQuery = query.Encode()
	return address.String(), nil
}

// cookie returns a cookie that binds a login to the browser that began it. Each login
// has its own, so that two at a time do not interfere.
func (c *Credentials) cookie(state, value string) *http.Cookie {
	return &http.Cookie{
		Name:     c.CookieName(state),
		Value:    value,
		Path:     "/",
		MaxAge:   int(loginLife.Seconds()),
		HttpOnly: true,
		Secure:   strings.HasPrefix(c.address, "https://"),
		SameSite: http.SameSiteLaxMode,
	}
}

// CookieName returns the name of the cookie of a login, by its state.
func (c *Credentials) CookieName(state string) string {
	_, _, secret := parseState(state)
	name := "satchel-login-" + hash(secret)[:16]
	if strings.HasPrefix(c.address, "https://") {
		return "__Host-" + name
	}
	return name
}

// parseState returns the parts of a state, or of its secret alone.
func parseState(state string) (agentID, id, secret string) {
	parts := strings.Split(state, ".")
	if len(parts) == 3 {
		return parts[0], parts[1], parts[2]
	}
	return "", "", state
}

// AgentOf returns the id of the agent named by a ticket or a state of a login, or ""
// if it names none.
func AgentOf(state string) string {
	id, _, _ := parseState(state)
	return id
}

// FinishedLogin describes a login that ended. Its names are empty if the state was not
// that of a login: they are not for everyone.
type FinishedLogin struct {
	Agent, AgentName           string // id and name
	Credential, CredentialName string
	Account                    string // that was connected, if the provider named it
}

// Callback completes a login with the query of the provider's redirect. cookie is
// the value of the login's cookie.
func (c *Credentials) Callback(ctx context.Context, query url.Values, cookie string) (done FinishedLogin, err error) {
	db, id, _, err := c.findByToken(query.Get("state"))
	if err != nil {
		return done, err
	}
	taken, err := c.takeState(ctx, db, id, query)
	if err != nil {
		return done, err
	}
	err = c.finish(ctx, db, id, query, taken, &cookie)
	if known, readErr := db.Credential(ctx, id); readErr == nil {
		done = FinishedLogin{db.ID(), db.Agent().Name, id, known.Name, ""}
		if err == nil {
			done.Account = known.Account
		}
	}
	return done, err
}

// takeState takes the login of a state, which works once.
func (c *Credentials) takeState(
	ctx context.Context,
	db *store.DB,
	id string,
	query url.Values,
) (taken login, err error) {
	_, _, secret := parseState(query.Get("state"))
	err = c.replaceLogin(ctx, db, id, func(l login) (*login, error) {
		if !matchesHash(l.State, secret) {
			return nil, invalidLoginError()
		}
		taken = l
		return nil, nil
	})
	return taken, err
}

// finish checks a provider's redirect and exchanges the code. A nil cookie is not
// checked: an admin of the agent pasted the address.
func (c *Credentials) finish(
	ctx context.Context,
	db *store.DB,
	id string,
	query url.Values,
	taken login,
	cookie *string,
) error {
	switch iss := query.Get("iss"); {
	case cookie != nil && !matchesHash(taken.Cookie, *cookie):
		return agent.Errorf(
			agent.CodeValidation,
			"this browser did not start the sign-in; start again from Credentials, or paste the "+
				"address of this page there",
		).With("field", "state")
	case taken.Issuer != "" && iss != taken.Issuer && (iss != "" || taken.Required):
		return agent.Errorf(
			agent.CodeValidation,
			"the response comes from a different provider than the request was sent to",
		).With("field", "iss")
	case query.Get("error") == "access_denied":
		return agent.Errorf(
			agent.CodeValidation,
			"the sign-in was declined at the provider (access_denied)",
		).With("field", "error")
	case query.Get("error") != "":
		return refusalError(
			http.StatusBadRequest,
			map[string]any{"error": query.Get("error"), "error_description": query.Get("error_description")},
			nil,
		)
	case query.Get("code") == "":
		return agent.Invalid("code", "is missing: the provider sent none")
	}
	return c.exchange(ctx, db, id, taken, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {query.Get("code")},
		"redirect_uri":  {c.RedirectURL()},
		"code_verifier": {taken.Verifier},
	})
}

// exchange asks for the first tokens of a login and stores them.
func (c *Credentials) exchange(
	ctx context.Context,
	db *store.DB,
	id string,
	_ login,
	form url.Values,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*requestTime) // a code works once
	defer cancel()
	unlock, err := c.lock(ctx, key(db, id))
	if err != nil {
		return err
	}
	defer unlock()
	o, err := db.OpenCredential(ctx, id)
	if err != nil {
		return err
	}
	e, err := c.endpoints(ctx, o)
	if err != nil {
		return err
	}
	optional(form, "resource", o.Config.Resource)
	tokens, err := c.askTokens(ctx, o, e.Token, form)
	if err != nil {
		return err
	}
	return db.PutTokens(ctx, o, tokens.CredentialTokens, tokens.account)
}

// Complete completes a login by hand: with the address to which the provider
// redirected the browser or, for a device, by polling once. connected is false until
// the person has agreed.
func (c *Credentials) Complete(ctx context.Context, db *store.DB, ref, redirected string) (connected bool, err error) {
	credential, err := db.OpenCredential(ctx, ref)
	if err != nil {
		return false, err
	}
	if credential.Config.Grant == agent.GrantDevice && redirected == "" {
		return c.pollDevice(ctx, db, credential)
	}
	address, err := url.Parse(strings.TrimSpace(redirected))
	if err != nil ||
		redirected == "" ||
		len(redirected) > maxRedirected ||
		address.Path != callbackPath && !strings.HasSuffix(address.Path, callbackPath) {
		return false, agent.Invalid(
			"redirected_to",
			"must be the whole address that the browser was sent to, with "+callbackPath,
		)
	}
	agentID, id, _ := parseState(address.Query().Get("state"))
	if agentID != db.ID() || id != credential.ID {
		return false, agent.Invalid("redirected_to", "belongs to the sign-in of another credential")
	}
	taken, err := c.takeState(ctx, db, credential.ID, address.Query())
	if err != nil {
		return false, err
	}
	err = c.finish(ctx, db, credential.ID, address.Query(), taken, nil)
	return err == nil, err
}

// Disconnect deletes the tokens of a credential, and revokes them if the revocation
// endpoint is known.
func (c *Credentials) Disconnect(ctx context.Context, db *store.DB, ref string) error {
	credential, err := db.OpenCredential(ctx, ref)
	if err != nil { // locked or not confirmed: only the stored tokens are deleted
		known, readErr := db.Credential(ctx, ref)
		if readErr != nil {
			return readErr
		}
		return db.DropTokens(ctx, known.ID)
	}
	unlock, err := c.lock(ctx, key(db, credential.ID))
	if err != nil {
		return err
	}
	defer unlock()
	if err := db.DropTokens(ctx, credential.ID); err != nil {
		return err
	}
	token := credential.Tokens.RefreshToken
	if token == "" {
		token = credential.Tokens.AccessToken
	}
	if token == "" {
		return nil
	}
	if e, err := c.endpoints(ctx, credential); err == nil && e.Revoke != "" {
		_, _, _, err = c.postClient(
			ctx,
			credential,
			e.Revoke,
			url.Values{"token": {token}},
		) // RFC 7009
		if err != nil {
			c.log.Info(
				"revoke token",
				"agent", db.ID(),
				"credential", credential.ID,
				"error", agent.Explain(err),
			)
		}
	}
	return nil
}
