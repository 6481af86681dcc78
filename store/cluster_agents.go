package store

import (
	"context"
	"errors"
	"fmt"

	"satchel/agent"
	"satchel/store/capture"
)

// Cluster owns the agents of a Folder if several servers share them. The Folder has
// those that this server owns; their files are copies of the cluster's state. Its
// methods are safe for concurrent use.
type Cluster interface {
	capture.Durable

	// Mark returns what agents' files record as their owner, in place of the path of
	// a data folder.
	Mark() string
	// Fetch writes the agent's file in the cluster's state. The file must not be
	// open.
	Fetch(id, path string) error
	// Refused is called once when a commit to an agent's file does not count. It
	// must return immediately.
	Refused(id string, err error)
	// Create adds an agent, whose file is complete at path and will be moved to its
	// place. If an agent with this id or name exists, the error is
	// AGENT_NAME_EXISTS.
	Create(id, path string, s Summary) error
	// FreeName returns the name, with a number appended if an agent has it.
	FreeName(name string) (string, error)
	// Rename changes an agent's name; see Create.
	Rename(id, name string) error
	// Delete removes an agent.
	Delete(id string) error
	// Note stores what is now known about an agent. rested reports that its file was
	// just closed, so that this is everything known about it.
	Note(id string, s Summary, rested bool)
	// Access returns the API keys and the decisions about access.
	Access() (agent.Access, error)
	// SaveAccess replaces them. Only the default agent's owner does so.
	SaveAccess(agent.Access) error
}

// Summary is what the catalog knows about an agent without its file.
type Summary struct {
	Agent   agent.Agent           `json:"agent"`
	Admins  map[string]agent.Role `json:"admins,omitempty"`
	Pending Pending               `json:"pending,omitzero"` // when the file was read or closed last

	Attention Attention `json:"attention,omitzero"`
}

func (r *record) summary() Summary {
	return Summary{
		Agent:     r.agent,
		Admins:    r.admins,
		Pending:   r.pending,
		Attention: r.attention,
	}
}

// Summary returns what the catalog knows about the agent, with the work that is now
// pending in it.
func (db *DB) Summary(ctx context.Context) (Summary, error) {
	a, err := db.Attention(ctx)
	s := db.record.Load().summary()
	s.Attention = a
	return s, err
}

func (s Summary) record() record {
	if s.Admins == nil {
		s.Admins = map[string]agent.Role{}
	}
	return record{
		agent:     s.Agent,
		admins:    s.Admins,
		pending:   s.Pending,
		attention: s.Attention,
	}
}

// ErrNotOwner is returned if another server of the cluster, or none, owns an agent.
// Nothing has been done.
var ErrNotOwner = errors.New("another server of the cluster has this agent")

func notOwner(id string) error {
	return agent.NotFound("agent", id).Because(ErrNotOwner)
}

// mark returns what files of this folder record as their owner.
func (folder *Folder) mark() string {
	if folder.cluster != nil {
		return folder.cluster.Mark()
	}
	return folder.path
}

// join prepares a folder whose agents belong to a cluster. It has none yet.
func (folder *Folder) join() error {
	folder.absent = newDB(folder, agent.DefaultID, folder.filePath(agent.DefaultID))
	folder.absent.record.Store(&record{agent: agent.Agent{ID: agent.DefaultID}, problem: notOwner(agent.DefaultID)})
	a, err := folder.cluster.Access()
	folder.SetAccess(a)
	return err
}

// claimShared is claim for an agent of the cluster.
func (folder *Folder) claimShared(id string) (unclaim func(), err error) {
	unclaim, free := folder.claim(id)
	if !free {
		return nil, agent.Errorf(agent.CodeConflict, "agent %s is being added or removed", id)
	}
	return unclaim, nil
}

// AddAgent adds an agent that this server now owns. Its file need not exist.
func (folder *Folder) AddAgent(id string, s Summary) error {
	unclaim, err := folder.claimShared(id)
	if err != nil {
		return err
	}
	defer unclaim()
	folder.registerShared(id, row{record: s.record()})
	return nil
}

func (folder *Folder) registerShared(id string, found row) {
	folder.register(id, found)
	if id != agent.DefaultID || found.problem != nil {
		return
	}
	if err := folder.loadAccess(); err != nil {
		folder.log.Error("read API keys", "error", err)
	}
}

// AddUnreadAgent is AddAgent for an agent whose due work is only known from its file.
func (folder *Folder) AddUnreadAgent(id string) error {
	unclaim, err := folder.claimShared(id)
	if err != nil {
		return err
	}
	defer unclaim()
	if err := folder.cluster.Fetch(id, folder.filePath(id)); err != nil {
		return err
	}
	found := inspectShared(folder.filePath(id))
	if found.problem == nil && (found.id != id || found.folder != folder.mark()) {
		return fmt.Errorf("the file of agent %s belongs to another agent", id)
	}
	if found.problem == nil {
		folder.cluster.Note(id, found.summary(), true)
	}
	folder.registerShared(id, found)
	return nil
}

// inspectShared is inspect for a file of the cluster, which the servers have made: its
// schema was examined when they took it in.
func inspectShared(path string) row {
	c, err := openConn(unlockedSource(path))
	if err != nil {
		return row{record: record{problem: refused(err)}}
	}
	defer c.close()
	r, err := readRow(c)
	if err != nil {
		return row{record: record{problem: refused(err)}}
	}
	if a, err := c.attention(agent.Now()); err == nil {
		r.attention = a
	}
	return r
}

// AddStoppedAgent adds an agent that does no work and answers requests with an error.
func (folder *Folder) AddStoppedAgent(id string, problem error) {
	folder.register(id, row{record: record{problem: problem}})
}

// RemoveAgent closes an agent's file and removes the agent from the folder, since this
// server no longer owns it. The file stays in its place. It waits for running
// transactions.
func (folder *Folder) RemoveAgent(id string) error {
	unclaim, err := folder.claimShared(id)
	if err != nil {
		return err
	}
	defer unclaim()
	db := folder.known(id)
	if db == nil {
		return nil
	}
	err = db.closeWhenUnused(true)
	folder.mu.Lock()
	folder.releaseName(db, db.Agent().Name)
	if folder.byID[id] == db {
		delete(folder.byID, id)
	}
	folder.mu.Unlock()
	db.notify(workAll, 0)
	return err
}

// MakeDefault creates the default agent of a cluster that has none.
func (folder *Folder) MakeDefault() error { return folder.makeDefault() }

// SetAccess replaces the API keys and the choice about access that the folder knows.
func (folder *Folder) SetAccess(a agent.Access) {
	byHash := make(map[string]*agent.Key, len(a.Keys))
	for _, k := range a.Keys {
		byHash[k.Hash] = k
	}
	folder.apiKeys.mu.Lock()
	defer folder.apiKeys.mu.Unlock()
	folder.apiKeys.byHash, folder.apiKeys.choice, folder.apiKeys.read = byHash, a.Choice, true
	// taking the default agent's file away must not turn access control off
	folder.apiKeys.hadKeys = folder.apiKeys.hadKeys || a.KeyMade
}

// FileVersion returns the version of agents' files that this program writes; it
// reads that and all earlier ones.
func FileVersion() int { return fileVersion() }

// FilePath returns the path of an agent's file.
func (folder *Folder) FilePath(id string) string { return folder.filePath(id) }

// StampOf identifies the state of a database file; "" if there is none.
func StampOf(path string) string { return stampOf(path) }

// Hold keeps the agent's file unchanged, complete and without a -wal, until the
// Snapshot is released; commits continue.
func (db *DB) Hold(ctx context.Context) (capture.Snapshot, error) {
	f, err := db.acquire(Background(ctx))
	if err != nil {
		return capture.Snapshot{}, err
	}
	defer db.leave()
	s, err := f.holdSnapshot(ctx, false)
	return s, explain(err)
}
