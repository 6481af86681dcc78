// Package apis manages an agent's APIs, whose operations are read from
// descriptions, and builds requests for their operations.
package apis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/openapi"
	"satchel/store"
)

// APIs is safe for concurrent use.
type APIs struct {
	client      *egress.Client
	credentials store.CredentialFinder
	userAgent   string
}

// New returns APIs.
func New(env store.Env) *APIs {
	return &APIs{
		client:      egress.New(egress.Policy{Allow: env.Allow, MaxResponse: agent.MaxAPIDocument}),
		credentials: env.Credentials,
		userAgent:   "Satchel/" + env.Version,
	}
}

// Draft is an API to be created.
type Draft struct {
	Name       string
	URL        string // where its description is, or
	Document   string // the description itself
	Server     string // "": the first that the description names
	Credential string
}

// Create reads a description and stores the API with its operations.
func (a *APIs) Create(ctx context.Context, db *store.DB, draft Draft) (agent.API, error) {
	made := agent.API{
		Name:       strings.TrimSpace(draft.Name),
		URL:        draft.URL,
		Credential: draft.Credential,
	}
	read, err := a.read(ctx, db, &made, draft.Document)
	if err != nil {
		return made, err
	}
	made.ServerURL = trimServer(draft.Server)
	if made.ServerURL == "" && len(made.Servers) > 0 {
		made.ServerURL = made.Servers[0].URL
	}
	if err := a.check(&made, read); err != nil {
		return made, err
	}
	return db.CreateAPI(ctx, made, read)
}

func trimServer(address string) string {
	return strings.TrimRight(strings.TrimSpace(address), "/")
}

// check checks an API, and that requests to its servers are allowed.
func (a *APIs) check(made *agent.API, operations []agent.OperationDefinition) error {
	if err := made.Validate(); err != nil {
		return err
	}
	u, err := a.client.CheckField("server", made.ServerURL)
	if err == nil && u.User != nil {
		err = agent.Invalid("server", "must not contain credentials")
	}
	for i := range operations {
		if o := &operations[i]; err == nil && o.Server != "" && o.Server != made.ServerURL {
			_, err = a.client.CheckField("document", o.Server)
		}
	}
	return err
}

// readTime limits how long a description may take to arrive.
const readTime = 30 * time.Second

// read reads a description, from its URL unless document is given, and sets the
// fields of the API that it determines.
func (a *APIs) read(
	ctx context.Context,
	db *store.DB,
	api *agent.API,
	document string,
) ([]agent.OperationDefinition, error) {
	if (api.URL == "") == (document == "") {
		return nil, agent.Invalid("url", "or document must be given, and not both")
	}
	data := []byte(document)
	if document == "" {
		var err error
		if data, err = a.fetch(ctx, db, api); err != nil {
			return nil, err
		}
	}
	doc, err := openapi.Read(ctx, data, api.URL)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	api.SHA256 = hex.EncodeToString(sum[:])
	api.Title, api.Version, api.Format = doc.Title, doc.Version, doc.Format
	api.Servers, api.Security, api.Warnings =
		append([]agent.APIServer{}, doc.Servers...), append([]agent.CredentialDraft{}, doc.Security...),
		append([]string{}, doc.Warnings...)
	return doc.Operations, nil
}

// fetch downloads a description. The API's credential is sent if it is for that
// host.
func (a *APIs) fetch(ctx context.Context, db *store.DB, api *agent.API) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	address, err := a.client.CheckField("url", api.URL)
	if err != nil {
		return nil, err
	}
	call := egress.Call{URL: address, UserAgent: a.userAgent, Accept: "application/json, application/yaml, */*"}
	credential, err := a.credentials.Find(ctx, db, api.Credential)
	if err != nil {
		return nil, err
	}
	if credential != nil && credential.Fits(address) {
		call.Credential = credential
	}
	req, err := call.Request(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, readError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, agent.Invalid("url", "answered with status "+resp.Status)
	}
	data, err := io.ReadAll(resp.Body)
	if errors.Is(err, egress.ErrTooLarge) {
		return nil, agent.Errorf(
			agent.CodeFileTooLarge,
			"the description is larger than %d MB",
			agent.MaxAPIDocument>>20,
		).With("field", "url").Because(err)
	}
	return data, readError(err)
}

func readError(err error) error {
	if err == nil {
		return nil
	}
	return agent.Invalid("url", "cannot be read: "+agent.Explain(egress.Explain(err))).Because(err)
}

// Call is a call of an operation.
type Call struct {
	Arguments  map[string]any // checked against the operation's schema; numbers are json.Number
	Credential string         // in place of the API's
	Key        string         // for the header Idempotency-Key; "" sends none
}

// Request builds the request of an operation. Its credential goes to the host of
// the operation's server only.
func (a *APIs) Request(
	ctx context.Context,
	db *store.DB,
	api *agent.API,
	definition *agent.OperationDefinition,
	c Call,
) (*http.Request, error) {
	call, err := openapi.Request(api.ServerURL, definition, c.Arguments)
	if err != nil {
		return nil, err
	}
	ref := c.Credential
	if ref == "" {
		ref = api.Credential
	}
	credential, err := a.credentials.Find(ctx, db, ref)
	if err != nil {
		return nil, err
	}
	if credential != nil {
		own, err := egress.ParseHosts("server", []string{openapi.HostOf(call.URL.String())})
		if err != nil {
			return nil, err
		}
		call.Credential = hostCredential{credential, own}
	}
	call.UserAgent, call.IdempotencyKey = a.userAgent, c.Key
	return call.Request(ctx)
}

// hostCredential restricts a credential to an API's own host.
type hostCredential struct {
	egress.Credential
	host egress.Hosts
}

// Fits implements egress.Credential.
func (o hostCredential) Fits(u *url.URL) bool {
	return o.host.Fit(u) && o.Credential.Fits(u)
}
