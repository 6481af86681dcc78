package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

const workflowColumns = "id, name, description, nodes, edges, settings, status, version, " +
	"created_at, updated_at, updated_by"

// triggerNodes selects the triggers among a workflow's nodes.
const triggerNodes = "(SELECT json_group_array(json(value)) FROM json_each(nodes) WHERE CASE type WHEN 'object' " +
	"THEN value ->> '$.type' END = 'trigger')"

var workflowListing = listing[agent.Workflow]{listed{
	table: "workflows",
	columns: "id, name, description, " + triggerNodes +
		", '[]', '{}', status, version, created_at, updated_at, updated_by",
	order: Order{"created_at", true},
	sort: map[string]string{
		"name":       "name COLLATE NOCASE",
		"status":     "status",
		"created_at": "created_at",
		"updated_at": "updated_at",
	},
	search: []string{"name", "description"},
}, scanWorkflow}

func scanWorkflow(rows *sqlite.Rows) (w agent.Workflow, err error) {
	var nodes, edges, settings []byte
	if err := rows.Scan(
		&w.ID, &w.Name, &w.Description, &nodes, &edges, &settings, &w.Status, &w.Version, &w.CreatedAt, &w.UpdatedAt,
		&w.UpdatedBy,
	); err != nil {
		return w, err
	}
	return w, readGraph(&w, nodes, edges, settings)
}

// readGraph decodes the columns of a graph. Invalid settings, written by SQL, are
// read as the defaults.
func readGraph(w *agent.Workflow, nodes, edges, settings []byte) error {
	w.Nodes, w.Edges, w.Settings = []agent.RawNode{}, []agent.RawEdge{}, agent.DefaultWorkflowSettings()
	if err := json.Unmarshal(nodes, &w.Nodes); err != nil {
		return fmt.Errorf("stored nodes: %w", err)
	}
	if err := json.Unmarshal(edges, &w.Edges); err != nil {
		return fmt.Errorf("stored edges: %w", err)
	}
	given := w.Settings
	if json.Unmarshal(settings, &given) == nil {
		w.Settings = given
	}
	return nil
}

// Workflows lists workflows with any of the given statuses, without edges and with
// only the triggers among their nodes, and returns their total number.
func (db *DB) Workflows(ctx context.Context, statuses []string, p Page) ([]agent.Workflow, int, error) {
	var f filter
	f.in("status", statuses...)
	return listPage(ctx, db, workflowListing, f, p)
}

// Workflow reads a workflow.
func (db *DB) Workflow(ctx context.Context, id string) (agent.Workflow, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.Workflow, error) {
		return tx.workflow(id)
	})
}

func (tx *Tx) workflow(id string) (agent.Workflow, error) {
	return one(tx, scanWorkflow, "workflow", "SELECT "+workflowColumns+" FROM workflows WHERE id = ?", id)
}

// CreateWorkflow creates a workflow, which the caller has validated.
func (db *DB) CreateWorkflow(ctx context.Context, w agent.Workflow) (agent.Workflow, error) {
	w.ID = agent.NewID(agent.KindWorkflow)
	return Write(ctx, db, func(tx *Tx) (agent.Workflow, error) {
		return tx.insertWorkflow(w)
	})
}

func (tx *Tx) insertWorkflow(workflow agent.Workflow) (agent.Workflow, error) {
	workflow.Version, workflow.CreatedAt, workflow.UpdatedAt = 1, tx.Now, tx.Now
	if err := tx.sealNodes(&workflow); err != nil {
		return workflow, err
	}
	nodes, edges, settings, err := writeGraph(&workflow)
	if err != nil {
		return workflow, err
	}
	if _, err := tx.exec(
		"INSERT INTO workflows("+workflowColumns+") VALUES (?,?,?,?,?,?,?,?,?,?,'')", workflow.ID,
		workflow.Name, workflow.Description, nodes, edges, settings, workflow.Status, workflow.Version,
		workflow.CreatedAt, workflow.UpdatedAt,
	); err != nil {
		return workflow, err
	}
	if err := tx.recordAuthor(&workflow, true); err != nil {
		return workflow, err
	}
	return workflow, tx.audit("workflow created", map[string]any{"workflow_id": workflow.ID, "name": workflow.Name})
}

func writeGraph(w *agent.Workflow) (nodes, edges, settings string, err error) {
	var raw [3][]byte
	for i, v := range []any{w.Nodes, w.Edges, w.Settings} {
		if raw[i], err = json.Marshal(v); err != nil {
			return "", "", "", err
		}
	}
	return string(raw[0]), string(raw[1]), string(raw[2]), nil
}

// recordAuthor records who saved a workflow, and the note about its version.
func (tx *Tx) recordAuthor(w *agent.Workflow, made bool) error {
	w.UpdatedBy = tx.actor
	if _, err := tx.exec(
		"UPDATE workflows SET updated_by = ? WHERE id = ?",
		w.UpdatedBy, w.ID,
	); err != nil || !made && w.Note == "" {
		return err
	}
	_, err := tx.exec(
		"UPDATE _workflow_versions SET author = iif(?, ?, author), note = ? WHERE workflow_id = ? AND version = ?",
		made, w.UpdatedBy, w.Note, w.ID, w.Version,
	)
	return err
}

// UpdateWorkflow changes a workflow by calling change with its current state; change
// may refuse. A changed graph becomes a new version.
func (db *DB) UpdateWorkflow(
	ctx context.Context,
	id string,
	change func(*agent.Workflow) error,
) (agent.Workflow, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Workflow, error) {
		workflow, err := tx.workflow(id)
		if err != nil {
			return workflow, err
		}
		before, version := workflow.Nodes, workflow.Version
		if err := change(&workflow); err != nil {
			return workflow, err
		}
		workflow.UpdatedAt = tx.Now
		if !slices.EqualFunc(before, workflow.Nodes, func(a, b agent.RawNode) bool {
			return bytes.Equal(a, b)
		}) {
			err = tx.sealNodes(&workflow)
		}
		if err != nil {
			return workflow, err
		}
		nodes, edges, settings, err := writeGraph(&workflow)
		if err != nil {
			return workflow, err
		}
		if _, err := tx.exec(
			"UPDATE workflows SET name = ?, description = ?, nodes = ?, edges = ?, settings = ?, status = ?, "+
				"updated_at = ? WHERE id = ?",
			workflow.Name, workflow.Description, nodes, edges, settings, workflow.Status, workflow.UpdatedAt, id,
		); err != nil {
			return workflow, err
		}
		if err := tx.value(&workflow.Version, "SELECT version FROM workflows WHERE id = ?", id); err != nil {
			return workflow, err
		}
		if err := tx.recordAuthor(&workflow, workflow.Version > version); err != nil {
			return workflow, err
		}
		return workflow, tx.audit("workflow updated", map[string]any{
			"workflow_id": id,
			"version":     workflow.Version,
			"status":      workflow.Status,
		})
	})
}

// sealNodes encrypts the secrets of nodes and leaves their masks. A mask refers
// to the stored secret, and only for the host that it was set for.
func (tx *Tx) sealNodes(workflow *agent.Workflow) error {
	nodes, secrets, err := agent.TakeNodeSecrets(workflow.Nodes)
	if err != nil {
		return err
	}
	workflow.Nodes = nodes
	for _, name := range secrets.Unchanged {
		if err := tx.keepNodeSecret(workflow.ID, name, secrets); err != nil {
			return err
		}
	}
	for name, value := range secrets.Given {
		if err := checkNodeHost(name, secrets); err != nil {
			return err
		}
		if len(value) > maxNodeSecret {
			return invalidSecret(name, fmt.Sprintf("must have at most %d bytes", maxNodeSecret))
		}
		if err := tx.putSecretFor(
			agent.Origin(secrets.Addresses[name]),
			workflow.ID,
			name,
			value,
		); err != nil {
			return err
		}
	}
	return nil
}

// keepNodeSecret checks that a mask refers to a stored secret that was set for
// the host that the node calls.
func (tx *Tx) keepNodeSecret(workflowID, name string, secrets agent.NodeSecrets) error {
	secret, known, err := tx.sealedSecret(workflowID, name)
	if err != nil {
		return err
	}
	if _, field, _ := strings.Cut(name, "/"); !known &&
		(strings.HasPrefix(field, "url.") || strings.HasPrefix(field, "query.")) {
		return nil // an imported draft; it fails when it runs
	}
	if !known {
		return invalidSecret(name, "must be the secret itself and not its mask")
	}
	if err := checkNodeHost(name, secrets); err != nil {
		return err
	}
	if address, sent := secrets.Addresses[name]; sent && address != "" && !secret.isForHost(address) {
		return invalidSecret(name, "must be given again, for it was given for another host than url names now")
	}
	return nil
}

// checkNodeHost refuses a node that has a secret and whose host is not fixed.
func checkNodeHost(name string, secrets agent.NodeSecrets) error {
	if address := secrets.Addresses[name]; address == "" || agent.Origin(address) != "" {
		return nil
	}
	node, _, _ := strings.Cut(name, "/")
	return agent.Invalid(
		"data.url",
		"must have scheme, host and port without a template, because the node has a stored credential",
	).With("node_id", node)
}

// invalidSecret returns a validation error about a secret of a node.
func invalidSecret(name, issue string) error {
	node, field, _ := strings.Cut(name, "/")
	return agent.Invalid("data."+field, issue).With("node_id", node)
}

// maxNodeSecret limits a secret of a node, in bytes.
const maxNodeSecret = 8192

// NodeSecret decrypts a secret of a workflow's node, to be sent to an address. If it
// was encrypted with another master key, or given for another host, the error says
// so.
func (db *DB) NodeSecret(ctx context.Context, workflowID, name, address string) (string, error) {
	return Read(ctx, db, func(tx *Tx) (string, error) {
		secret, ok, err := tx.sealedSecret(workflowID, name)
		if err != nil {
			return "", err
		}
		_, field, _ := strings.Cut(name, "/")
		if !ok {
			return "", agent.Errorf(
				agent.CodeExecution,
				"%s is a mask, but no secret is stored for it; set it again",
				field,
			)
		}
		plain, err := db.openFor(secret, address)
		if err != nil {
			return "", unusable(agent.CodeExecution, field, err)
		}
		return plain, nil
	})
}

// DeleteWorkflow removes a workflow with its versions and executions.
func (db *DB) DeleteWorkflow(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("workflows", "workflow", id); err != nil {
			return err
		}
		return tx.audit("workflow deleted", map[string]any{"workflow_id": id})
	})
}

// WorkflowVersions lists the stored versions of a workflow, newest first, and
// returns their total number.
func (db *DB) WorkflowVersions(ctx context.Context, id string, page Page) ([]agent.WorkflowVersion, int, error) {
	var total int
	found, err := Read(ctx, db, func(tx *Tx) ([]agent.WorkflowVersion, error) {
		workflow, err := tx.workflow(id)
		if err != nil {
			return nil, err
		}
		if err := tx.value(&total, "SELECT count(*) FROM _workflow_versions WHERE workflow_id = ?", id); err != nil {
			return nil, err
		}
		versions, err := all(tx, func(rows *sqlite.Rows) (v agent.WorkflowVersion, err error) {
			err = rows.Scan(&v.Version, &v.Nodes, &v.Edges, &v.CreatedAt, &v.Author, &v.Note)
			v.Current = v.Version == workflow.Version
			return v, err
		}, `SELECT version, json_array_length(nodes), json_array_length(edges), created_at, author, note FROM _workflow_versions
			WHERE workflow_id = ? ORDER BY version DESC LIMIT ? OFFSET ?`, id, page.Limit, page.Offset)
		if err != nil || len(versions) == 0 {
			return versions, err
		}
		return versions, tx.countExecutions(id, versions)
	})
	return found, total, err
}

// versionExecutions counts the executions of versions, which the index
// executions_version has.
const versionExecutions = `SELECT version, count(*), count(*) FILTER (WHERE status = 'errored') FROM executions
	WHERE workflow_id = ? AND version BETWEEN ? AND ? AND trigger <> 'test' GROUP BY version`

// countExecutions adds to versions of a workflow, the newest first, how often they were
// executed.
func (tx *Tx) countExecutions(id string, versions []agent.WorkflowVersion) error {
	if err := tx.wantFor("executions", "executions_version"); err != nil {
		return err
	}
	counted, err := all(tx, func(rows *sqlite.Rows) (v agent.WorkflowVersion, err error) {
		return v, rows.Scan(&v.Version, &v.Executions, &v.Failed)
	}, versionExecutions, id, versions[len(versions)-1].Version, versions[0].Version)
	for _, c := range counted {
		if i := slices.IndexFunc(versions, func(v agent.WorkflowVersion) bool {
			return v.Version == c.Version
		}); i >= 0 {
			versions[i].Executions, versions[i].Failed = c.Executions, c.Failed
		}
	}
	return err
}

// WorkflowVersion reads the graph of a version into a workflow that otherwise has
// its current state.
func (db *DB) WorkflowVersion(ctx context.Context, id string, version int) (agent.Workflow, error) {
	return Read(ctx, db, func(tx *Tx) (agent.Workflow, error) {
		w, err := tx.workflow(id)
		if err != nil {
			return w, err
		}
		return w, tx.version(&w, version)
	})
}

// version puts the graph of a version into w.
func (tx *Tx) version(w *agent.Workflow, version int) error {
	found, err := all(tx, func(rows *sqlite.Rows) (graph [3][]byte, err error) {
		return graph, rows.Scan(&graph[0], &graph[1], &graph[2])
	}, "SELECT nodes, edges, settings FROM _workflow_versions WHERE workflow_id = ? AND version = ?", w.ID, version)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return agent.NotFound("version", fmt.Sprint(version))
	}
	w.Version = version
	return readGraph(w, found[0][0], found[0][1], found[0][2])
}

// maxVersions is how many versions of a workflow are kept besides those that
// executions use.
const maxVersions = 100

// trimVersions deletes old versions, a batch at a time.
const trimVersions = `DELETE FROM _workflow_versions WHERE rowid IN (SELECT v.rowid FROM _workflow_versions v JOIN workflows w ON w.id = v.workflow_id
	WHERE v.version <= w.version - ? AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.workflow_id = v.workflow_id AND e.version = v.version
	AND e.status IN ('queued','running')) LIMIT ?)`

// Listener is a trigger of an active workflow, and the event or pattern that it
// listens to. Events up to number Since are from before it listened.
type Listener struct {
	WorkflowID, NodeID, Pattern string
	Since                       int64
}

// Subscribers are the triggers and the waits of an agent that events may start
// or end.
type Subscribers struct {
	Listeners []Listener
	Waits     []Wait
	Status    agent.Status // of the agent
	// ActiveSince is the newest event from before the agent last became active:
	// events up to it start nothing.
	ActiveSince int64
}

// Subscribers returns the triggers and waits that listen to any of these events, by
// name or by a pattern.
func (db *DB) Subscribers(ctx context.Context, events []string) (Subscribers, error) {
	var args []any
	seen := map[string]bool{}
	for _, event := range events {
		for _, p := range agent.EventPatterns(event) {
			if !seen[p] {
				seen[p] = true
				args = append(args, p)
			}
		}
	}
	return Read(ctx, db, func(tx *Tx) (subscribers Subscribers, err error) {
		in := " IN (" + placeholders(len(args)) + ")"
		subscribers.Listeners, err = all(
			tx,
			func(rows *sqlite.Rows) (l Listener, err error) {
				return l, rows.Scan(&l.WorkflowID, &l.NodeID, &l.Pattern, &l.Since)
			},
			"SELECT workflow_id, node_id, event, since_seq FROM _triggers WHERE event"+in+
				" ORDER BY workflow_id, node_id",
			args...,
		)
		if err != nil {
			return subscribers, err
		}
		if subscribers.Waits, err = tx.waits("event"+in+notPaused, args...); err != nil {
			return subscribers, err
		}
		return subscribers, tx.row("SELECT status, active_since_seq FROM _agent").Scan(
			&subscribers.Status,
			&subscribers.ActiveSince,
		)
	})
}
