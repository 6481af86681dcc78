package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// Limits of the catalogue.
const (
	catalogueTime  = 5 * time.Second
	catalogueBytes = 2 << 20 // of an answer of the registry
	catalogueLife  = time.Hour
	maxCachedPages = 200 // answers
	cataloguePage  = 30  // servers
	maxListed      = 20  // remotes, packages, headers, variables and arguments, each
)

// Catalogue searches a registry of MCP servers, see
// https://github.com/modelcontextprotocol/registry. A listing proves who owns a
// server's name, not that the server is harmless.
type Catalogue struct {
	client  *egress.Client
	address string
	version string
	now     func() time.Time

	mu    sync.Mutex
	pages map[string]cachedPage
}

type cachedPage struct {
	page  CataloguePage
	until time.Time
}

// NewCatalogue returns a Catalogue of the registry at an address; "" means none. The
// operator sets the address, so it may be private.
func NewCatalogue(address, version string) *Catalogue {
	client := egress.New(egress.Policy{AllowPrivate: true, MaxResponse: catalogueBytes})
	return &Catalogue{
		client:  client,
		address: strings.TrimSuffix(address, "/"),
		version: version,
		now:     time.Now,
		pages:   map[string]cachedPage{},
	}
}

// CataloguePage is a page of servers.
type CataloguePage struct {
	Enabled    bool              `json:"enabled" doc:"false: the operator turned the catalogue off."`
	Registry   string            `json:"registry" doc:"Address of the registry; empty if it is off." example:"https://registry.modelcontextprotocol.io"`
	Servers    []CatalogueServer `json:"servers"`
	NextCursor string            `json:"next_cursor" doc:"For the next page; empty on the last one."`
}

// CatalogueServer is a server that a registry lists, in its newest version.
type CatalogueServer struct {
	Name        string             `json:"name" example:"com.example/tickets"`
	Title       string             `json:"title" example:"Tickets"`
	Description string             `json:"description"`
	Version     string             `json:"version" example:"1.2.0"`
	Remotes     []CatalogueRemote  `json:"remotes" doc:"Addresses under which it can be registered."`
	Packages    []CataloguePackage `json:"packages" doc:"Programs that the operator can allow."`
}

// CatalogueRemote is an address of a server.
type CatalogueRemote struct {
	Type      string           `json:"type" enum:"streamable-http,sse" example:"streamable-http"`
	URL       string           `json:"url" doc:"May contain {variables}." example:"https://mcp.example.com/mcp"`
	Headers   []CatalogueInput `json:"headers"`
	Variables []CatalogueInput `json:"variables" doc:"Of the URL."`
}

// CatalogueInput is a value that the owner of an agent or the operator fills in.
type CatalogueInput struct {
	Name        string `json:"name" example:"Authorization"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Secret      bool   `json:"secret"`
	Value       string `json:"value" doc:"Its value or default; it may contain {variables}."`
}

// CataloguePackage is a program, and its entry for the operator's file.
type CataloguePackage struct {
	Registry   string           `json:"registry" example:"npm"`
	Identifier string           `json:"identifier" example:"@example/tickets-mcp"`
	Version    string           `json:"version" example:"1.2.0"`
	Entry      Command          `json:"entry" doc:"For mcpServers in the file of --allow-stdio-mcp. Values in <angle brackets> are to be filled in."`
	Secrets    []CatalogueInput `json:"secrets" doc:"Variables for a credential of type env."`
}

// Search returns the servers whose names contain a text, without deleted ones. cursor
// is that of the previous page, or "". Responses are cached for an hour.
func (c *Catalogue) Search(ctx context.Context, text, cursor string) (CataloguePage, error) {
	if c == nil || c.address == "" {
		return CataloguePage{Servers: []CatalogueServer{}}, nil
	}
	query := url.Values{"version": {"latest"}, "limit": {"30"}}
	for name, value := range map[string]string{"search": text, "cursor": cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	key := query.Encode()
	c.mu.Lock()
	known, ok := c.pages[key]
	c.mu.Unlock()
	if ok && c.now().Before(known.until) {
		return known.page, nil
	}
	page, err := c.fetch(ctx, key)
	if err != nil {
		return page, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pages) >= maxCachedPages {
		clear(c.pages)
	}
	c.pages[key] = cachedPage{page, c.now().Add(catalogueLife)}
	return page, nil
}

func (c *Catalogue) fetch(ctx context.Context, query string) (CataloguePage, error) {
	page := CataloguePage{
		Enabled:  true,
		Registry: c.address,
		Servers:  []CatalogueServer{},
	}
	ctx, cancel := context.WithTimeout(ctx, catalogueTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address+"/v0.1/servers?"+query, nil)
	if err != nil {
		return page, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Satchel/"+c.version)
	resp, err := c.client.Do(req)
	if err != nil {
		return page, unreachable(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	var answer registryAnswer
	switch {
	case err != nil:
		return page, unreachable(err)
	case resp.StatusCode != http.StatusOK:
		return page, agent.Errorf(
			agent.CodeUpstream,
			"the registry of MCP servers responded with HTTP %d",
			resp.StatusCode,
		).With("status", resp.StatusCode)
	case json.Unmarshal(raw, &answer) != nil:
		return page, agent.Errorf(agent.CodeUpstream, "the registry's answer is not a list of MCP servers")
	}
	for _, listed := range answer.Servers[:min(len(answer.Servers), cataloguePage)] {
		if cmp.Or(listed.Meta.Official.Status, listed.Server.Status) == "deleted" {
			continue
		}
		if server := listed.Server.server(); len(server.Remotes)+len(server.Packages) > 0 {
			page.Servers = append(page.Servers, server)
		}
	}
	page.NextCursor = agent.Clip(answer.Metadata.NextCursor, MaxCatalogueCursor)
	return page, nil
}

// MaxCatalogueCursor limits a cursor, in characters.
const MaxCatalogueCursor = 500

func unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return agent.Errorf(
		agent.CodeUpstream,
		"the registry of MCP servers cannot be reached: %s",
		egress.Explain(err).Message,
	).Because(err)
}
