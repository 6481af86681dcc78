package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"satchel/agent"
)

// WithKeys runs fn on a folder whose API keys can be managed: the whole folder or,
// if a server has it open, only the default agent's file. That server sees the
// change within a second.
func WithKeys(o Options, fn func(*Folder) error) error {
	f, err := Open(o)
	if errors.Is(err, ErrLocked) {
		return openBesideServer(o, fn)
	}
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

func openBesideServer(options Options, fn func(*Folder) error) error {
	path, err := makeFolder(options.Path)
	if err != nil {
		return err
	}
	f := &Folder{
		path:      path,
		log:       slog.Default(),
		openLimit: 1,
		byID:      map[string]*DB{},
		names:     map[string]*DB{},
		open:      map[*DB]struct{}{},
	}
	f.byID[agent.DefaultID] = newDB(f, agent.DefaultID, f.filePath(agent.DefaultID))
	err = f.loadAccess()
	if err == nil {
		err = fn(f)
	}
	return errors.Join(err, f.Default().closeWhenUnused(true))
}

// Offline is a data folder for the commands that work without a server or beside
// one.
type Offline struct{ Options }

// Doctor calls Doctor for this folder.
func (o Offline) Doctor() ([]agent.Finding, error) {
	return Doctor(o.Path, o.MasterKeys)
}

// Access returns what is stored about access, but for the keys, without changing the folder.
func (o Offline) Access() (a agent.Access, err error) {
	path := (&Folder{path: o.Path}).filePath(agent.DefaultID)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	c, err := openConn(unlockedSource(path))
	if err != nil {
		return a, err
	}
	a.KeyMade, a.Choice, err = accessDecisions(c)
	return a, errors.Join(err, c.close())
}

// Backup calls BackupFile for this folder.
func (o Offline) Backup(idOrName, to string) error {
	return BackupFile(o.Path, idOrName, to)
}

// Restore calls RestoreFile for this folder.
func (o Offline) Restore(ctx context.Context, from string) (id string, err error) {
	id, err = RestoreFile(ctx, o.Path, from)
	return id, withFileName(from, err)
}

// CreateKey creates an API key and returns it; it cannot be read again. Agents of the key
// may be named. choose is called with what is stored about access, and returns the role that
// callers without an identity shall have; nil changes nothing.
func (o Offline) CreateKey(
	ctx context.Context,
	k agent.Key,
	choose func(agent.Access) (*agent.Role, error),
) (key string, err error) {
	err = WithKeys(o.Options, func(f *Folder) error {
		if k.Agents, err = f.agentIDs(k.Agents); err != nil {
			return err
		}
		choice, err := choose(agent.Access{KeyMade: f.HasHadKeys(), Choice: f.AccessChoice()})
		if err != nil {
			return err
		}
		_, key, err = f.CreateKeyChoosing(ctx, k, choice)
		return err
	})
	return key, err
}

// agentIDs returns the ids of agents that are given by ids or names. It also finds those
// that a server has open.
func (folder *Folder) agentIDs(idsOrNames []string) ([]string, error) {
	ids := make([]string, 0, len(idsOrNames))
	for _, given := range idsOrNames {
		if given == agent.AllAgents {
			ids = append(ids, given)
			continue
		}
		if db, err := folder.Agent(given); err == nil {
			ids = append(ids, db.ID())
			continue
		}
		path, err := findFile(folder.path, given)
		if err != nil {
			return nil, agent.Invalid("agents", fmt.Sprintf("names %q, and there is no such agent", given)).Because(err)
		}
		id, _ := strings.CutSuffix(filepath.Base(path), ".db")
		ids = append(ids, id)
	}
	return ids, nil
}

// Keys lists the API keys.
func (o Offline) Keys(ctx context.Context) (keys []*agent.Key, err error) {
	err = WithKeys(o.Options, func(f *Folder) error {
		keys, err = f.Keys(ctx)
		return err
	})
	return keys, err
}

// DeleteKey revokes an API key.
func (o Offline) DeleteKey(ctx context.Context, id string) error {
	return WithKeys(o.Options, func(f *Folder) error {
		return f.DeleteKey(ctx, id)
	})
}

// RotateKey calls RotateKey for this folder.
func (o Offline) RotateKey() (credentials int, err error) {
	return RotateKey(o.Options)
}
