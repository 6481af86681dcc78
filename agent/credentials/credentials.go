// Package credentials uses the credentials of agents: it attaches them to
// requests to their hosts, signs people in with OAuth 2, and renews tokens.
//
// A credential is attached in package egress, when the URL is final. Tokens are
// renewed one request at a time for each credential, and a new refresh token is
// committed before its access token is used, so that a kill at any point leaves
// either the old token or the new one.
package credentials

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/signature"
	"satchel/store"
)

// Options configure Credentials.
type Options struct {
	store.Env
	// Address is the server's public address, without a slash at the end.
	Address string
}

// Credentials uses the credentials of all agents. It is safe for concurrent use.
type Credentials struct {
	folder  *store.Folder
	client  *egress.Client
	tokens  *http.Client // follows no redirects
	address string
	version string
	log     *slog.Logger
	now     func() time.Time

	mu    sync.Mutex
	locks map[string]*keyLock  // by agent and credential: held while tokens are renewed
	polls map[string]time.Time // by agent and credential: when a device may be polled next
}

// New returns Credentials.
func New(options Options) *Credentials {
	client := egress.New(egress.Policy{
		Allow:         options.Allow,
		MaxResponse:   4 << 20,
		HeaderTimeout: requestTime,
	})
	tokens := client.HTTP()
	tokens.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return &Credentials{
		folder:  options.Folder,
		client:  client,
		tokens:  tokens,
		address: options.Address,
		version: options.Version,
		log:     options.Logger(),
		now:     time.Now,
		locks:   map[string]*keyLock{},
		polls:   map[string]time.Time{},
	}
}

// requestTime limits one request to a provider.
const requestTime = 30 * time.Second

// Find returns a credential of an agent by its name or id, ready to be attached
// to requests. It is a store.CredentialFinder.
func (c *Credentials) Find(ctx context.Context, db *store.DB, ref string) (egress.Credential, error) {
	o, err := db.OpenCredential(ctx, ref)
	if err != nil {
		return nil, agent.InvalidReference(err, "credential", "credential")
	}
	return c.attach(db, o)
}

// Variables returns the environment variables of a credential of type env, by its
// name or id.
func (c *Credentials) Variables(ctx context.Context, db *store.DB, ref string) (map[string]string, error) {
	o, err := db.OpenCredential(ctx, ref)
	if err != nil {
		return nil, agent.InvalidReference(err, "credential", "credential")
	}
	if o.Type != agent.CredentialEnv {
		return nil, agent.Invalid("credential", "must be of type env")
	}
	return o.Values, nil
}

func (c *Credentials) attach(db *store.DB, o store.OpenCredential) (*attached, error) {
	if o.Type == agent.CredentialEnv {
		return nil, agent.Invalid("credential", "names one of type env, which requests cannot carry")
	}
	hosts, err := egress.ParseHosts("hosts", o.Hosts)
	if err != nil {
		return nil, err
	}
	return &attached{
		c:     c,
		db:    db,
		open:  o,
		hosts: hosts,
	}, nil
}

// attached is a credential that is attached to requests.
type attached struct {
	c     *Credentials
	db    *store.DB
	open  store.OpenCredential
	hosts egress.Hosts

	mu    sync.Mutex
	token string // of oauth2: the one that was attached last
}

// Fits implements egress.Credential.
func (a *attached) Fits(u *url.URL) bool {
	return a.hosts.Fit(u)
}

// Apply implements egress.Credential.
func (a *attached) Apply(req *http.Request) error {
	values := a.open.Values
	switch a.open.Type {
	case agent.CredentialHeader:
		return a.header(values).Apply(req)
	case agent.CredentialQuery:
		return setQuery(req, values)
	case agent.CredentialBasic:
		return a.header(map[string]string{"Authorization": "Basic " + basic(values)}).Apply(req)
	case agent.CredentialAWS:
		key := signature.AWSKey{
			ID:      values["access_key_id"],
			Secret:  values["secret_access_key"],
			Session: values["session_token"],
		}
		return signature.SignAWS(req, key, a.open.Config.Region, a.open.Config.Service, a.c.now())
	case agent.CredentialOAuth2:
		token, err := a.c.token(req.Context(), a.db, a.open.ID, "")
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.token = token
		a.mu.Unlock()
		return a.header(map[string]string{"Authorization": "Bearer " + token}).Apply(req)
	}
	return nil
}

func (a *attached) header(values map[string]string) egress.HeaderCredential {
	return egress.HeaderCredential{Hosts: a.hosts, Header: values}
}

func basic(values map[string]string) string {
	return base64.StdEncoding.EncodeToString([]byte(values["username"] + ":" + values["password"]))
}

// setQuery sets the parameters of a credential. After a redirect they may already be
// set.
func setQuery(req *http.Request, values map[string]string) error {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return agent.Invalid("url", "has a query that cannot be read")
	}
	for name, value := range values {
		if query.Has(name) && req.Response == nil {
			return agent.Invalid("query", "must not set "+agent.Clip(name, 60)+", which the credential sets")
		}
		query.Set(name, value)
	}
	target := *req.URL
	target.RawQuery = query.Encode()
	req.URL = &target
	return nil
}

// Renew implements egress.Credential.
func (a *attached) Renew(ctx context.Context) (bool, error) {
	if a.open.Type != agent.CredentialOAuth2 {
		return false, nil
	}
	a.mu.Lock()
	rejected := a.token
	a.mu.Unlock()
	token, err := a.c.token(ctx, a.db, a.open.ID, rejected)
	return token != rejected && token != "", err
}

// Secrets implements egress.Credential.
func (a *attached) Secrets() []string {
	values := a.open.Values
	switch a.open.Type {
	case agent.CredentialBasic:
		return []string{values["password"], basic(values)}
	case agent.CredentialAWS:
		return []string{values["secret_access_key"], values["session_token"]}
	case agent.CredentialOAuth2:
		a.mu.Lock()
		defer a.mu.Unlock()
		return []string{a.token}
	}
	var all []string
	for _, value := range values {
		all = append(all, value, url.QueryEscape(value))
		if _, token, ok := strings.Cut(value, " "); ok { // of an Authorization header, without its scheme
			all = append(all, token)
		}
	}
	return all
}

// key returns a key that identifies a credential across all agents.
func key(db *store.DB, id string) string {
	return db.ID() + " " + id
}

// keyLock is the lock of one credential. It is removed with its last user.
type keyLock struct {
	held  chan struct{}
	users int // guarded by mu of Credentials: that hold it or wait
}

// lock locks a credential, waiting for any renewal of its tokens to finish.
func (c *Credentials) lock(ctx context.Context, key string) (unlock func(), err error) {
	c.mu.Lock()
	l := c.locks[key]
	if l == nil {
		l = &keyLock{held: make(chan struct{}, 1)}
		c.locks[key] = l
	}
	l.users++
	c.mu.Unlock()
	leave := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(c.locks, key)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() {
			<-l.held
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
