package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
)

// MCPLogin decrypts what belongs to a login at a server: what its owner set, and the
// client that was registered for it, if any. Errors are those of MCPCredentials.
func (db *DB) MCPLogin(ctx context.Context, s agent.MCPServer) (agent.MCPAuth, MCPClient, error) {
	kept, err := Read(ctx, db, func(tx *Tx) (mcpSecret, error) {
		return tx.mcpSecret(s)
	})
	return kept.MCPAuth, kept.Client, err
}

// PutMCPLogin stores the credential with which a person logs in to a server, its
// authorization server, and the client that was registered for it. s is the server
// as it was read: if it has changed since, the error is CONFLICT.
func (db *DB) PutMCPLogin(
	ctx context.Context,
	server agent.MCPServer,
	credential, issuer string,
	client MCPClient,
) error {
	return db.Do(ctx, func(tx *Tx) error {
		now, err := tx.mcpServer(server.ID)
		if err != nil {
			return err
		}
		kept, err := tx.mcpSecret(now)
		if err != nil {
			return err
		}
		if now.Credential != server.Credential || now.URL != server.URL || now.AuthType != server.AuthType {
			return agent.Errorf(agent.CodeConflict, "the MCP server has been changed in the meantime")
		}
		kept.Issuer, kept.Client = issuer, client
		sealed, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		if err := tx.putSecret(server.ID, authField, string(sealed)); err != nil {
			return err
		}
		_, err = tx.exec("UPDATE mcp_servers SET credential = ? WHERE id = ?", credential, server.ID)
		return err
	})
}

// dropLogin deletes the login credential that the server used before, unless it is
// still in use.
func (tx *Tx) dropLogin(before agent.MCPServer) error {
	if before.AuthType != agent.MCPAuthLogin || before.Credential == "" {
		return nil
	}
	c, err := tx.credential(before.Credential)
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	references, err := tx.references(credentialReferences)
	if err != nil || len(usesOfCredential(&c, references)) > 0 {
		return err
	}
	return tx.deleteRow("_credentials", "credential", c.ID)
}
