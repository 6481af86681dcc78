package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"satchel/agent"
	"satchel/store/sqlite"
)

// authField is the field of _secrets that an MCP server has.
const authField = "auth"

const mcpColumns = "id, name, url, command, auth_type, credential, status, last_error, checked_at, created_at"

var mcpListing = listing[agent.MCPServer]{listed{
	table:   "mcp_servers",
	columns: mcpColumns,
	order:   Order{"created_at", true},
	sort:    map[string]string{"created_at": "created_at", "name": "name", "status": "status"},
	search:  []string{"name", "url", "command"},
}, scanMCPServer}

func scanMCPServer(rows *sqlite.Rows) (s agent.MCPServer, err error) {
	return s, rows.Scan(
		&s.ID, &s.Name, &s.URL, &s.Command, &s.AuthType, &s.Credential, &s.Status, &s.LastError, &s.CheckedAt,
		&s.CreatedAt,
	)
}

// mcpSecret is the encrypted data of a server: the credentials and the address that
// they are for. If SQL changed the server's address, it does not get them.
type mcpSecret struct {
	agent.MCPAuth
	URL    string    `json:"url"`
	Client MCPClient `json:"client,omitzero"` // for a login
}

// MCPClient is the client that was registered for a login.
type MCPClient struct {
	ID          string     `json:"id"`
	RedirectURL string     `json:"redirect_url"`
	Ends        agent.Time `json:"ends,omitzero"` // when its secret expires; zero: never
}

// MCPServers lists MCP servers, newest first.
func (db *DB) MCPServers(ctx context.Context, p Page) ([]agent.MCPServer, int, error) {
	return listPage(ctx, db, mcpListing, filter{}, p)
}

// MCPServer reads one MCP server.
func (db *DB) MCPServer(ctx context.Context, id string) (agent.MCPServer, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.MCPServer, error) {
		return tx.mcpServer(id)
	})
}

func (tx *Tx) mcpServer(id string) (agent.MCPServer, error) {
	return one(tx, scanMCPServer, "MCP server", "SELECT "+mcpColumns+" FROM mcp_servers WHERE id = ?", id)
}

// CreateMCPServer adds an MCP server with the result of its first check. Its
// credentials are encrypted; tools is its list of tools, nil if there is none.
func (db *DB) CreateMCPServer(
	ctx context.Context,
	server agent.MCPServer,
	auth agent.MCPAuth,
	tools []agent.MCPTool,
) (agent.MCPServer, error) {
	if err := server.Validate(auth); err != nil {
		return server, err
	}
	sealed, err := json.Marshal(mcpSecret{MCPAuth: auth, URL: server.URL})
	if err != nil {
		return server, err
	}
	listed, err := listedTools(tools)
	if err != nil {
		return server, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.MCPServer, error) {
		mcpServer := server
		mcpServer.ID, mcpServer.CreatedAt, mcpServer.CheckedAt =
			cmp.Or(mcpServer.ID, agent.NewID(agent.KindMCP)), tx.Now, tx.Now
		mcpServer.AuthType = auth.Type
		if mcpServer.AuthType == "" {
			mcpServer.AuthType = agent.MCPAuthNone
		}
		if err := tx.checkMCPServerLimit(); err != nil {
			return mcpServer, err
		}
		if err := tx.checkReference("credential", "credential", mcpServer.Credential); err != nil {
			return mcpServer, err
		}
		if _, err := tx.exec(
			"INSERT INTO mcp_servers(id, name, url, command, auth_type, credential, status, last_error, tools, "+
				"checked_at, created_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
			mcpServer.ID, mcpServer.Name, mcpServer.URL, mcpServer.Command, mcpServer.AuthType, mcpServer.Credential,
			mcpServer.Status, mcpServer.LastError, listed, tx.Now, tx.Now,
		); err != nil {
			return mcpServer, err
		}
		if mcpServer.AuthType != agent.MCPAuthNone {
			if err := tx.putSecret(mcpServer.ID, authField, string(sealed)); err != nil {
				return mcpServer, err
			}
		}
		return mcpServer, tx.audit("MCP server registered", map[string]any{"mcp_id": mcpServer.ID})
	})
}

// UpdateMCPServer stores a server that was changed and checked, and its credentials,
// encrypted. If tools is nil, its tools are kept.
func (db *DB) UpdateMCPServer(
	ctx context.Context,
	server agent.MCPServer,
	auth agent.MCPAuth,
	tools []agent.MCPTool,
) (agent.MCPServer, error) {
	listed, err := listedTools(tools)
	if err != nil {
		return server, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.MCPServer, error) {
		before, err := tx.mcpServer(server.ID)
		if err != nil {
			return server, err
		}
		if server.Credential != before.Credential {
			if err := tx.checkReference("credential", "credential", server.Credential); err != nil {
				return server, err
			}
		}
		kind := cmp.Or(auth.Type, agent.MCPAuthNone)
		secret, err := tx.resealMCP(before, server, auth)
		if err != nil {
			return server, err
		}
		if _, err := tx.exec(
			"UPDATE mcp_servers SET name = ?, url = ?, command = ?, auth_type = ?, credential = ?, status = ?, "+
				"last_error = ?, tools = coalesce(?, tools), checked_at = ? WHERE id = ?",
			server.Name, server.URL, server.Command, kind, server.Credential, server.Status, server.LastError, listed,
			tx.Now, server.ID,
		); err != nil {
			return server, err
		}
		if err := tx.putSecret(server.ID, authField, secret); err != nil {
			return server, err
		}
		if err := tx.dropLogin(before); err != nil {
			return server, err
		}
		if err := tx.audit("MCP server updated", map[string]any{"mcp_id": server.ID}); err != nil {
			return server, err
		}
		return tx.mcpServer(server.ID)
	})
}

// resealMCP returns the encrypted data of a changed server; "" without credentials.
func (tx *Tx) resealMCP(before, s agent.MCPServer, auth agent.MCPAuth) (string, error) {
	if cmp.Or(auth.Type, agent.MCPAuthNone) == agent.MCPAuthNone {
		return "", nil
	}
	now := mcpSecret{MCPAuth: auth, URL: s.URL}
	if before.AuthType == agent.MCPAuthLogin && s.Credential == before.Credential {
		if kept, err := tx.mcpSecret(before); err == nil { // otherwise a client is registered again
			now.Client = kept.Client
		}
	}
	sealed, err := json.Marshal(now)
	return string(sealed), err
}

// CheckMCPServerLimit returns CONFLICT if the agent has as many MCP servers as it
// may have.
func (db *DB) CheckMCPServerLimit(ctx context.Context) error {
	return db.read(ctx, true, (*Tx).checkMCPServerLimit)
}

func (tx *Tx) checkMCPServerLimit() error {
	var n int
	if err := tx.value(&n, "SELECT n FROM _counts WHERE name = 'mcp_servers'"); err != nil {
		return err
	}
	if n >= agent.MaxMCPServers {
		return agent.Errorf(
			agent.CodeConflict,
			"an agent has at most %d MCP servers",
			agent.MaxMCPServers,
		).With("limit", agent.MaxMCPServers)
	}
	return nil
}

// listedTools returns a listing in its stored form; NULL for none.
func listedTools(tools []agent.MCPTool) (any, error) {
	if tools == nil {
		return nil, nil
	}
	raw, err := json.Marshal(tools)
	return string(raw), err
}

// DeleteMCPServer removes an MCP server with its credentials.
func (db *DB) DeleteMCPServer(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		before, err := tx.mcpServer(id)
		if err != nil {
			return err
		}
		if err := tx.deleteRow("mcp_servers", "MCP server", id); err != nil {
			return err
		}
		if err := tx.dropLogin(before); err != nil {
			return err
		}
		return tx.audit("MCP server deleted", map[string]any{"mcp_id": id})
	})
}

// NoteMCPServer stores the result of checking a server; if tools is nil, its known
// tools are kept. If the server has been deleted or moved to another address in the
// meantime, nothing is stored.
func (db *DB) NoteMCPServer(ctx context.Context, s agent.MCPServer, tools []agent.MCPTool) error {
	listed, err := listedTools(tools)
	if err != nil {
		return err
	}
	return db.Do(ctx, func(tx *Tx) error {
		tx.claimWork(workMCPServers)
		_, err := tx.exec(
			`UPDATE mcp_servers SET status = ?, last_error = ?, checked_at = ?, tools = coalesce(?, tools) `+
				`WHERE id = ? AND url = ? AND command = ?`,
			s.Status, s.LastError, tx.Now, listed, s.ID, s.URL, s.Command,
		)
		return err
	})
}

// KeepMCPIssuer adds the authorization server that a server's credentials are for,
// unless they name one or are no longer those of s.
func (db *DB) KeepMCPIssuer(ctx context.Context, server agent.MCPServer, issuer string) error {
	return db.Do(ctx, func(tx *Tx) error {
		raw, err := tx.secret(server.ID, authField)
		if err != nil || raw == "" {
			return err
		}
		var kept mcpSecret
		if err := json.Unmarshal([]byte(raw), &kept); err != nil {
			return fmt.Errorf("sealed credentials of %s: %w", server.ID, err)
		}
		if kept.Issuer != "" ||
			kept.TokenURL != "" ||
			kept.URL != server.URL ||
			kept.Type != agent.MCPAuthOAuth2 {
			return nil
		}
		kept.Issuer = issuer
		sealed, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		return tx.putSecret(server.ID, authField, string(sealed))
	})
}

// MCPListing returns the most recently stored listing of a server; nil if its tools
// were never listed.
func (db *DB) MCPListing(ctx context.Context, id string) ([]agent.MCPTool, error) {
	return Read(ctx, db, func(tx *Tx) (tools []agent.MCPTool, err error) {
		var raw *string
		if err := tx.value(&raw, "SELECT tools FROM mcp_servers WHERE id = ?", id); err != nil {
			return nil, err
		}
		if raw == nil {
			return nil, nil
		}
		if err := json.Unmarshal([]byte(*raw), &tools); err != nil {
			return nil, nil // SQL wrote something else
		}
		return tools, nil
	})
}

// MCPCredentials decrypts the credentials of a server. If they are missing,
// encrypted with another master key, or for another address, the error is a CONFLICT
// that says so.
func (db *DB) MCPCredentials(ctx context.Context, s agent.MCPServer) (agent.MCPAuth, error) {
	if s.AuthType == agent.MCPAuthNone {
		return agent.MCPAuth{}, nil
	}
	kept, err := Read(ctx, db, func(tx *Tx) (mcpSecret, error) {
		return tx.mcpSecret(s)
	})
	return kept.MCPAuth, err
}

func (tx *Tx) mcpSecret(server agent.MCPServer) (kept mcpSecret, err error) {
	raw, err := tx.secret(server.ID, authField)
	if errors.Is(err, errLocked) {
		return kept, agent.Errorf(
			agent.CodeConflict,
			"the server's credentials are locked: they were encrypted with another master key; "+
				"register the server again",
		).Because(err)
	}
	if err != nil {
		return kept, err
	}
	if raw == "" {
		return kept, agent.Errorf(agent.CodeConflict, "the server's credentials are missing; register the server again")
	}
	if err := json.Unmarshal([]byte(raw), &kept); err != nil {
		return mcpSecret{}, fmt.Errorf("sealed credentials of %s: %w", server.ID, err)
	}
	if kept.URL != server.URL || kept.Type != server.AuthType {
		return mcpSecret{}, agent.Errorf(
			agent.CodeConflict,
			"the server's address was changed, and its credentials are for another one; register the server again",
		)
	}
	return kept, nil
}
