package registry

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"satchel/agent"
	"satchel/agent/mcp"
	"satchel/store"
)

// Logins makes the credentials of servers that a person logs in to.
type Logins interface {
	// RedirectURL is the one redirect address of this server.
	RedirectURL() string
	// ClientDocument is the address of this server's metadata as a client; "" when
	// authorization servers cannot read it.
	ClientDocument() string
	// Put creates a credential, or changes the one that ref names.
	Put(ctx context.Context, db *store.DB, ref string, change agent.CredentialChange) (agent.Credential, error)
}

// PrepareLogin discovers how a person logs in to a server, creates or updates the
// server's credential accordingly, and returns its id. The credential is bound to
// the server's host. The first authorization server found is stored: no other gets
// the client's secret or a person's login.
func (r *Registry) PrepareLogin(ctx context.Context, db *store.DB, id string) (credential string, err error) {
	server, err := db.MCPServer(ctx, id)
	if err != nil {
		return "", err
	}
	if server.AuthType != agent.MCPAuthLogin {
		return "", agent.Errorf(agent.CodeConflict, "the MCP server has no login: its auth_type is %s", server.AuthType)
	}
	auth, client, err := db.MCPLogin(ctx, server)
	if err != nil {
		return "", err
	}
	found, err := r.client.DiscoverLogin(ctx, mcp.Server{URL: server.URL, Auth: auth})
	if err != nil {
		return "", err
	}
	known, err := db.Credential(ctx, server.Credential)
	if err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
		return "", err
	}
	p := login{
		r:      r,
		db:     db,
		server: server,
		auth:   auth,
		found:  found,
		known:  known,
	}
	made, client, err := p.put(ctx, client)
	if err != nil {
		return "", err
	}
	if err := db.PutMCPLogin(ctx, server, made.ID, found.Issuer, client); err != nil {
		if known.ID == "" {
			_ = db.DeleteCredential(ctx, made.ID) // another call made one at the same time
		}
		return "", err
	}
	return made.ID, nil
}

// login is a login being prepared.
type login struct {
	r      *Registry
	db     *store.DB
	server agent.MCPServer
	auth   agent.MCPAuth
	found  mcp.Login
	known  agent.Credential // of an earlier login; zero: none
}

// put creates or updates the credential. A client that was registered earlier is
// kept as long as it can be used.
func (p *login) put(ctx context.Context, client store.MCPClient) (agent.Credential, store.MCPClient, error) {
	if p.canReuse(client) {
		config := p.config(mcp.LoginClient{ID: client.ID, InBody: p.known.Config.TokenAuth == "body"})
		made, err := p.r.logins.Put(ctx, p.db, p.known.ID, agent.CredentialChange{Config: agent.Some(config)})
		return made, client, err
	}
	as, registered, err := p.client(ctx)
	if err != nil {
		return agent.Credential{}, client, err
	}
	client = store.MCPClient{}
	if registered {
		client = store.MCPClient{
			ID:          as.ID,
			RedirectURL: p.r.logins.RedirectURL(),
			Ends:        agent.At(as.Ends),
		}
	}
	secret := map[string]string{}
	if as.Secret != "" {
		secret["client_secret"] = as.Secret
	}
	change := agent.CredentialChange{
		Type:   agent.Some(agent.CredentialOAuth2),
		Hosts:  agent.Some([]string{hostOf(p.server.URL)}),
		Config: agent.Some(p.config(as)),
		Secret: agent.Some(secret),
	}
	if p.known.ID != "" {
		made, err := p.r.logins.Put(ctx, p.db, p.known.ID, change)
		return made, client, err
	}
	made, err := p.create(ctx, change)
	return made, client, err
}

// create creates a credential named like the server, with a number appended if that
// name is taken.
func (p *login) create(ctx context.Context, change agent.CredentialChange) (made agent.Credential, err error) {
	name := credentialName(p.server.Name)
	change.Name = agent.Some(name)
	for n := 2; n <= agent.MaxMCPServers; n++ {
		if made, err = p.r.logins.Put(ctx, p.db, "", change); agent.ErrorCode(err) != agent.CodeConflict {
			break
		}
		change.Name = agent.Some(name + " " + strconv.Itoa(n))
	}
	return made, err
}

// canReuse reports whether a client that was registered earlier can be used for the
// next login.
func (p *login) canReuse(client store.MCPClient) bool {
	c := p.known.Config
	return client.ID != "" && client.ID == c.ClientID && client.RedirectURL == p.r.logins.RedirectURL() &&
		p.known.Status != agent.CredentialFailing &&
		(client.Ends.IsZero() || p.r.now().Before(client.Ends.Time)) &&
		c.Issuer == p.found.Issuer && c.AuthURL == p.found.AuthURL && c.TokenURL == p.found.TokenURL &&
		c.RevokeURL == p.found.RevokeURL
}

// client returns the client of the login: the one set by the owner, or else the one
// that this server's client document describes, or else a newly registered one.
func (p *login) client(ctx context.Context) (as mcp.LoginClient, registered bool, err error) {
	document := p.r.logins.ClientDocument()
	switch {
	case p.auth.ClientID != "":
		return p.found.Client(p.auth.ClientID, p.auth.ClientSecret), false, nil
	case p.found.ClientDocuments && document != "":
		return mcp.LoginClient{ID: document}, false, nil
	case p.found.RegistrationURL == "":
		return as, false, agent.Invalid(
			"auth.client_id",
			"is required: the authorization server registers no clients by itself",
		)
	}
	as, err = p.r.client.Register(ctx, p.found, p.r.logins.RedirectURL())
	return as, true, err
}

func (p *login) config(as mcp.LoginClient) agent.CredentialConfig {
	f := p.found
	config := agent.CredentialConfig{
		Grant:     agent.GrantCode,
		AuthURL:   f.AuthURL,
		TokenURL:  f.TokenURL,
		RevokeURL: f.RevokeURL,
		Issuer:    f.Issuer,
		ClientID:  as.ID,
		Scope:     f.Scope,
		Resource:  f.Resource,
	}
	if f.Offline() {
		config.AuthParams = map[string]string{"prompt": "consent"}
	}
	if as.InBody {
		config.TokenAuth = "body"
	}
	return config
}

// hostOf returns a server's host in the form that credentials use.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if u.Scheme == "http" {
		return "http://" + u.Host
	}
	return u.Host
}

// credentialName converts the name of a server to a valid name of a credential.
func credentialName(name string) string {
	name = strings.TrimLeft(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("._@()+-", r) {
			return r
		}
		return ' '
	}, name), " ._@()+-")
	name = strings.TrimSpace(agent.Clip(strings.Join(strings.Fields(name), " "), 60))
	name = strings.TrimRight(name, "…")
	if name == "" || strings.HasPrefix(name, agent.KindCredential+"-") {
		return "MCP server"
	}
	return name
}
