package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/cluster/pg"
)

// agentRow is a row of the table agent.
type agentRow struct {
	id, owner      string
	head, infoHead int64
	fileVersion    int
	deleted        bool
	name           string
	summary        store.Summary
	changed        time.Time
}

const agentColumns = "a.id, a.name, a.owner, a.head, a.info_head, a.file_version, a.deleted, a.info, a.changed"

// scanner is a row, or where to get it.
type scanner interface{ Scan(to ...any) error }

func scanAgent(row scanner) (k agentRow, err error) {
	var info string
	if err := row.Scan(
		&k.id, &k.name, &k.owner, &k.head, &k.infoHead, &k.fileVersion, &k.deleted, &info, &k.changed,
	); err != nil {
		return k, err
	}
	if json.Unmarshal([]byte(info), &k.summary) != nil {
		k.infoHead = 0 // the file must be read
	}
	return k, nil
}

// readAgent reads the row of an agent, by id or else by name.
func (cluster *Cluster) readAgent(ctx context.Context, idOrName string) (agentRow, error) {
	row, err := scanAgent(cluster.pool.QueryRow(
		ctx,
		"SELECT "+agentColumns+
			" FROM agent a WHERE (id = $1 OR name_key = $2) AND NOT deleted ORDER BY id = $1 DESC LIMIT 1",
		idOrName,
		agent.NameKey(idOrName),
	))
	if errors.Is(err, pg.ErrNoRows) {
		return row, agent.NotFound("agent", idOrName)
	} else if err != nil {
		return row, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	cluster.mu.Lock()
	cluster.rememberLocked(row)
	cluster.mu.Unlock()
	return row, nil
}

// find returns an agent from memory.
func (cluster *Cluster) find(idOrName string) (agentRow, bool) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	k := cluster.agents[idOrName]
	if k == nil {
		k = cluster.agents[cluster.byName[agent.NameKey(idOrName)]]
	}
	if k == nil || k.deleted {
		return agentRow{}, false
	}
	return *k, true
}

// Owner implements Directory.
func (cluster *Cluster) Owner(ctx context.Context, idOrName string) (Node, string, error) {
	if k, ok := cluster.find(idOrName); ok {
		if n, err := cluster.node(k.owner); err == nil {
			return n, k.id, nil
		}
	}
	k, err := cluster.readAgent(ctx, idOrName)
	// the first server of a new cluster has not created it yet
	if idOrName == agent.DefaultID && agent.ErrorCode(err) == agent.CodeNotFound {
		err = fmt.Errorf("%w: the default agent is being created", ErrUnavailable)
	}
	if err != nil {
		return Node{}, "", err
	}
	n, err := cluster.node(k.owner)
	return n, k.id, err
}

// Refresh implements Directory.
func (cluster *Cluster) Refresh(ctx context.Context, id string) (Node, error) {
	k, err := cluster.readAgent(ctx, id)
	if err != nil {
		return Node{}, err
	}
	n, err := cluster.node(k.owner)
	if err == nil && n.Self {
		cluster.reconcile(n.Session)
	}
	return n, err
}

// node returns an owner that is alive.
func (cluster *Cluster) node(session string) (Node, error) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if session == cluster.self.Session || session == stopped { // every server can report that an agent is stopped
		return cluster.self, nil
	}
	if n := cluster.nodes[session]; n != nil && n.Alive {
		return n.Node, nil
	}
	return Node{}, fmt.Errorf("%w: no server has this agent", ErrUnavailable)
}

// Agents implements Directory.
func (cluster *Cluster) Agents(context.Context) ([]Entry, error) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if cluster.full.IsZero() || cluster.agents[agent.DefaultID] == nil {
		return nil, fmt.Errorf("%w: this server does not know the agents yet", ErrUnavailable)
	}
	all, now := make([]Entry, 0, len(cluster.agents)), agent.Now()
	for _, k := range cluster.agents {
		if !k.deleted {
			all = append(all, Entry{
				Agent:     k.summary.Agent,
				Admins:    k.summary.Admins,
				Owner:     k.owner,
				Attention: k.summary.Attention.At(now),
			})
		}
	}
	return all, nil
}

// note is information about an agent that is to be written to the database.
type note struct {
	session string
	head    int64 // at which it is complete; 0: never
	summary store.Summary
}

// Note implements store.Cluster.
func (cluster *Cluster) Note(id string, s store.Summary, rested bool) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	n := note{session: cluster.self.Session, summary: s}
	if f := cluster.files[id]; f != nil && rested {
		n.session, n.head = f.session, f.head
	}
	cluster.notes[id] = n
}

// noteWritten writes the pending work of recently written agents to the
// database, for the other servers' lists.
func (cluster *Cluster) noteWritten(ctx context.Context, now time.Time) {
	for _, id := range cluster.writtenLately(now) {
		db, err := cluster.folder.Agent(id)
		if err != nil {
			continue
		}
		s, err := db.Summary(ctx)
		cluster.mu.Lock()
		k := cluster.agents[id]
		known := err != nil ||
			k == nil ||
			k.summary.Attention == s.Attention ||
			cluster.notes[id].head > 0
		cluster.mu.Unlock()
		if !known {
			cluster.Note(id, s, false)
		}
	}
}

// writtenLately lists the agents that were written since its last call.
func (cluster *Cluster) writtenLately(now time.Time) (ids []string) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	for id, f := range cluster.files {
		if f.session == cluster.self.Session && f.written.After(f.noted) {
			f.noted = now
			ids = append(ids, id)
		}
	}
	return ids
}

// flushNotes writes the notes to the database.
func (cluster *Cluster) flushNotes(ctx context.Context) error {
	cluster.mu.Lock()
	notes := cluster.notes
	cluster.notes = map[string]note{}
	cluster.mu.Unlock()
	if len(notes) == 0 {
		return nil
	}
	err := cluster.writeNotes(ctx, notes)
	if err != nil {
		cluster.mu.Lock()
		defer cluster.mu.Unlock()
		for id, n := range notes {
			if _, newer := cluster.notes[id]; !newer {
				cluster.notes[id] = n
			}
		}
	}
	return err
}

func (cluster *Cluster) writeNotes(ctx context.Context, notes map[string]note) error {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	var ids, owners, infos []string
	var heads []int64
	for id, n := range notes {
		info, err := json.Marshal(n.summary)
		if err != nil {
			return err
		}
		ids, owners, heads, infos =
			append(ids, id), append(owners, n.session), append(heads, n.head), append(infos, string(info))
	}
	_, err := cluster.pool.Exec(ctx, `UPDATE agent a SET info = u.info, info_head = u.head, changed = clock_timestamp()
		FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS u(id, owner, head, info) WHERE a.id = u.id AND a.owner = u.owner`, ids, owners, heads, infos)
	return err
}

// uniqueViolation is PostgreSQL's code for a violated unique constraint
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const uniqueViolation = "23505"

// nameError converts the error of a statement that names an agent.
func nameError(err error, name string) error {
	var refused *pg.Error
	switch {
	case err == nil || agent.ErrorCode(err) == agent.CodeAgentNameExists:
		return err
	case errors.As(err, &refused) && refused.Code == uniqueViolation:
		return agent.NameExists(name)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Create implements store.Cluster.
func (cluster *Cluster) Create(id, path string, summary store.Summary) error {
	ctx, cancel := context.WithTimeout(context.Background(), restoreTime)
	defer cancel()
	cluster.mu.Lock()
	session, leaving := cluster.self.Session, cluster.leaving
	cluster.mu.Unlock()
	if err := cluster.Ready(); err != nil {
		return err
	}
	if leaving {
		return fmt.Errorf("%w: this server leaves", ErrUnavailable)
	}
	if err := cluster.insertAgent(ctx, session, id, path, summary); err != nil {
		return err
	}
	cluster.setCopy(id, &copyState{
		session: session,
		head:    1,
		stamp:   store.StampOf(path),
		written: time.Now(),
	})
	_, err := cluster.readAgent(ctx, id)
	return agent.IgnoreNotFound(err)
}

// insertAgent adds an agent with its file as the base.
func (cluster *Cluster) insertAgent(ctx context.Context, owner, id, path string, summary store.Summary) error {
	info, err := json.Marshal(summary)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	name := summary.Agent.Name
	err = cluster.pool.Transact(ctx, func(tx *pg.Tx) error {
		if err := checkNameIsNoID(ctx, tx, name, id); err != nil {
			return err
		}
		if _, err := tx.Exec(
			ctx,
			`INSERT INTO agent(id, name, name_key, owner, head, file_version, info, info_head) `+
				`VALUES ($1,$2,$3,$4,1,$5,$6,1)`,
			id,
			name,
			agent.NameKey(name),
			owner,
			store.FileVersion(),
			string(info),
		); err != nil {
			return err
		}
		return putBase(ctx, tx, id, file, 1)
	})
	return nameError(err, name)
}

// checkNameIsNoID returns an error if a name is the id of an agent other than the one with id.
func checkNameIsNoID(ctx context.Context, db interface {
	QueryRow(context.Context, string, ...any) pg.Scanner
}, name, id string) error {
	var taken bool
	err := db.QueryRow(
		ctx,
		"SELECT EXISTS (SELECT 1 FROM agent WHERE (id = $1 OR id = $2) AND id <> $3 AND NOT deleted)",
		name,
		agent.NameKey(name),
		id,
	).Scan(&taken)
	if err == nil && taken {
		return agent.NameExists(name)
	}
	return err
}

// FreeName implements store.Cluster.
func (cluster *Cluster) FreeName(name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	free := name
	for n := 2; ; n++ {
		var taken bool
		key := agent.NameKey(free)
		if err := cluster.pool.QueryRow(
			ctx,
			"SELECT EXISTS (SELECT 1 FROM agent WHERE NOT deleted AND (name_key = $1 OR id = $1 OR id = $2))",
			key,
			free,
		).Scan(&taken); err != nil {
			return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if !taken {
			return free, nil
		}
		free = agent.NumberedName(name, n)
	}
}

// Rename implements store.Cluster.
func (cluster *Cluster) Rename(id, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	err := checkNameIsNoID(ctx, cluster.pool, name, id)
	if err == nil {
		_, err = cluster.pool.Exec(
			ctx,
			"UPDATE agent SET name = $3, name_key = $4, changed = clock_timestamp() WHERE id = $1 AND owner = $2",
			id,
			cluster.Self().Session,
			name,
			agent.NameKey(name),
		)
	}
	return nameError(err, name)
}

// Delete implements store.Cluster.
func (cluster *Cluster) Delete(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	err := cluster.pool.Transact(ctx, func(tx *pg.Tx) error {
		done, err := tx.Exec(
			ctx,
			"UPDATE agent SET deleted = true, name_key = NULL, changed = clock_timestamp() WHERE id = $1 "+
				"AND owner = $2 AND NOT deleted",
			id,
			cluster.Self().Session,
		)
		if err != nil {
			return err
		}
		if done.RowsAffected() == 0 {
			return agent.NotFound("agent", id).Because(ErrNotOwner)
		}
		return tx.ExecBatch(ctx, pg.Batch{
			{SQL: "DELETE FROM log WHERE agent = $1", Args: []any{id}},
			{SQL: "DELETE FROM base WHERE agent = $1", Args: []any{id}},
			{SQL: "DELETE FROM block WHERE agent = $1", Args: []any{id}},
		})
	})
	if err != nil {
		return err
	}
	cluster.mu.Lock()
	delete(cluster.files, id)
	delete(cluster.notes, id)
	cluster.forgetLocked(id)
	cluster.mu.Unlock()
	return store.RemoveIfExists(cluster.copyPath(id))
}
