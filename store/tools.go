package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

const toolColumns = "id, name, description, type, enabled, config, created_at, updated_at"

// maxTools limits an agent's tools, since a model gets all of them.
const maxTools = 200

var toolListing = listing[agent.Tool]{listed{
	table:   "tools",
	columns: toolColumns,
	order:   Order{"created_at", true},
	sort:    map[string]string{"name": "name COLLATE NOCASE", "type": "type", "created_at": "created_at"},
	search:  []string{"name", "description"},
}, scanTool}

func scanTool(rows *sqlite.Rows) (t agent.Tool, err error) {
	return t, rows.Scan(
		&t.ID, &t.Name, &t.Description, &t.Type, &t.Enabled, (*rawJSON)(&t.Config), &t.CreatedAt, &t.UpdatedAt,
	)
}

// Tools lists tools with their secrets masked.
func (db *DB) Tools(ctx context.Context, p Page) ([]agent.Tool, int, error) {
	return listPage(ctx, db, toolListing, filter{}, p)
}

// AllTools returns all tools of the agent, ordered by name.
func (db *DB) AllTools(ctx context.Context) ([]agent.Tool, error) {
	return Read(ctx, db, func(tx *Tx) ([]agent.Tool, error) {
		return all(tx, scanTool, "SELECT "+toolColumns+" FROM tools ORDER BY name LIMIT ?", maxTools)
	})
}

// Tool reads one tool with its secrets masked.
func (db *DB) Tool(ctx context.Context, id string) (agent.Tool, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.Tool, error) { return tx.tool(id) })
}

func (tx *Tx) tool(id string) (agent.Tool, error) {
	return one(tx, scanTool, "tool", "SELECT "+toolColumns+" FROM tools WHERE id = ?", id)
}

// CreateTool adds a tool. If its name is taken, the error is CONFLICT.
func (db *DB) CreateTool(ctx context.Context, change agent.ToolChange) (agent.Tool, error) {
	t := agent.Tool{Enabled: true}
	change.Apply(&t)
	secrets, _, err := takeToolSecrets(&t)
	if err != nil {
		return t, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.Tool, error) {
		t := t
		t.ID = agent.NewID(agent.KindTool)
		if err := tx.checkNewCredential(t.Config, nil); err != nil {
			return t, err
		}
		return tx.insertTool(t, secrets)
	})
}

// insertTool stores a tool. The credential that it names may be created later, as after an
// import; CreateTool refuses such a tool.
func (tx *Tx) insertTool(tool agent.Tool, secrets map[string]string) (agent.Tool, error) {
	var count int
	if err := tx.value(&count, "SELECT n FROM _counts WHERE name = 'tools'"); err != nil {
		return tool, err
	}
	if count >= maxTools {
		return tool, agent.Errorf(agent.CodeConflict, "an agent has at most %d tools", maxTools)
	}
	if err := tx.checkCalled(tool); err != nil {
		return tool, err
	}
	tool.CreatedAt, tool.UpdatedAt = tx.Now, tx.Now
	if _, err := tx.exec(
		"INSERT INTO tools("+toolColumns+") VALUES (?,?,?,?,?,?,?,?)",
		tool.ID, tool.Name, tool.Description, tool.Type, tool.Enabled, string(tool.Config),
		tool.CreatedAt, tool.UpdatedAt,
	); err != nil {
		return tool, toolNameError(err, tool.Name)
	}
	if err := tx.putSecrets(tool.ID, addressOf(tool.Config), secrets); err != nil {
		return tool, err
	}
	return tool, tx.audit("tool created", map[string]any{"tool_id": tool.ID})
}

// CreateOperationTools creates a tool for each of an API's operations, or none.
// Their names begin with the prefix.
func (db *DB) CreateOperationTools(
	ctx context.Context,
	apiRef string,
	operations []string,
	prefix string,
) ([]agent.Tool, error) {
	if len(operations) == 0 {
		return nil, agent.Invalid("operations", "must name at least one")
	}
	return Write(ctx, db, func(tx *Tx) ([]agent.Tool, error) {
		api, err := tx.api(apiRef)
		if err != nil {
			return nil, err
		}
		made := make([]agent.Tool, 0, len(operations))
		for index, ref := range operations {
			definition, err := tx.operation(api.ID, ref)
			if agent.ErrorCode(err) == agent.CodeNotFound {
				return nil, agent.Invalid(fmt.Sprintf("operations[%d]", index), "is not an operation of this API")
			} else if err != nil {
				return nil, err
			}
			config, err := json.Marshal(map[string]string{"api_id": api.ID, "operation": definition.ID})
			if err != nil {
				return nil, err
			}
			tool := agent.Tool{
				ID:          agent.NewID(agent.KindTool),
				Name:        prefix + definition.Name,
				Description: describeOperation(&definition),
				Type:        agent.ToolOperation,
				Enabled:     true,
				Config:      config,
			}
			tool.Name = tool.Name[:min(len(tool.Name), agent.MaxToolName)]
			if _, err := tool.Validate(); err != nil {
				return nil, err
			}
			if tool, err = tx.insertTool(tool, nil); err != nil {
				return nil, err
			}
			made = append(made, tool)
		}
		return made, nil
	})
}

// describeOperation returns a description of an operation for a model.
func describeOperation(o *agent.OperationDefinition) string {
	switch {
	case o.Summary == "":
		return o.Method + " " + o.Path
	case o.Description == "" || strings.HasPrefix(o.Description, o.Summary):
		return o.Summary
	}
	return o.Summary + "\n" + o.Description
}

// UpdateTool changes the given fields of a tool. A mask in a new config keeps the
// stored secret.
func (db *DB) UpdateTool(ctx context.Context, id string, change agent.ToolChange) (agent.Tool, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Tool, error) {
		tool, err := tx.tool(id)
		if err != nil {
			return tool, err
		}
		before := tool.Config
		change.Apply(&tool)
		secrets, keep, err := takeToolSecrets(&tool)
		if err != nil {
			return tool, err
		}
		if change.Type.Given || change.Config.Given {
			if err := tx.checkCalled(tool); err != nil {
				return tool, err
			}
			if err := tx.checkNewCredential(tool.Config, before); err != nil {
				return tool, err
			}
		}
		tool.UpdatedAt = tx.Now
		if _, err := tx.exec(
			"UPDATE tools SET name = ?, description = ?, type = ?, enabled = ?, config = ?, "+
				"updated_at = ? WHERE id = ?",
			tool.Name, tool.Description, tool.Type, tool.Enabled,
			string(tool.Config),
			tool.UpdatedAt,
			id,
		); err != nil {
			return tool, toolNameError(err, tool.Name)
		}
		if change.Config.Given {
			if err := tx.changeSecrets(id, addressOf(tool.Config), secrets, keep); err != nil {
				return tool, err
			}
		}
		return tool, tx.audit("tool updated", map[string]any{"tool_id": id})
	})
}

// checkCalled refuses a tool of an MCP server, an API, an operation or a workflow
// that the agent does not have.
func (tx *Tx) checkCalled(tool agent.Tool) error {
	config, err := tool.Validate()
	if err != nil {
		return err
	}
	field, issue := "config.server_id", "names no MCP server of this agent"
	switch tool.Type {
	case agent.ToolWorkflow:
		field, issue = "config.workflow_id", "is no workflow of this agent"
		if config.WorkflowID != "" {
			_, err = tx.workflow(config.WorkflowID)
		}
	case agent.ToolMCP:
		_, err = tx.mcpServer(config.ServerID)
	case agent.ToolOperation, agent.ToolAPISet:
		field, issue = "config.api_id", "names no API of this agent"
		var a agent.API
		if a, err = tx.api(config.APIID); err == nil && tool.Type == agent.ToolOperation {
			field, issue = "config.operation", "is not an operation of this API"
			_, err = tx.operation(a.ID, config.Operation)
		}
	}
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return agent.Invalid(field, issue)
	}
	return err
}

// DeleteTool removes a tool; a trigger deletes its secrets, as if SQL deleted it.
func (db *DB) DeleteTool(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("tools", "tool", id); err != nil {
			return err
		}
		return tx.audit("tool deleted", map[string]any{"tool_id": id})
	})
}

// ToolConfig returns a tool's config with its secrets filled in, for calling it. The
// result must not reach a client.
func (db *DB) ToolConfig(ctx context.Context, t agent.Tool) (agent.ToolConfig, error) {
	c, err := t.Validate() // it may have been written by SQL
	if err != nil {
		return c, err
	}
	secrets, err := db.Secrets(ctx, t.ID, c.URL)
	if err != nil {
		return c, err
	}
	c.PutSecrets(secrets)
	return c, nil
}

// takeToolSecrets validates a tool and takes the secrets out of its config: the given ones,
// and the names of those that stay as stored.
func takeToolSecrets(tool *agent.Tool) (given map[string]string, keep []string, err error) {
	config, err := tool.Validate()
	if err != nil {
		return nil, nil, err
	}
	given, keep = config.TakeSecrets()
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(tool.Config, &fields); err != nil {
		return nil, nil, fmt.Errorf("config: %w", err)
	}
	for name, value := range map[string]any{
		"auth":    config.Auth,
		"headers": config.Headers,
		"url":     config.URL,
		"query":   config.Query,
	} {
		if _, ok := fields[name]; !ok {
			continue
		}
		if fields[name], err = json.Marshal(value); err != nil {
			return nil, nil, err
		}
	}
	tool.Config, err = json.Marshal(fields)
	return given, keep, err
}

func toolNameError(err error, name string) error {
	if !isUnique(err) {
		return err
	}
	return agent.Errorf(agent.CodeConflict, "a tool of this name already exists").
		With("field", "name").
		With("name", name)
}
