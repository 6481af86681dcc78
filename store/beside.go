package store

import (
	"errors"
	"log/slog"

	"satchel/agent"
)

// WithKeys runs fn on a folder on which the API keys can be managed: the whole
// folder, or, when a server has it open, the default agent's file beside that
// server, which sees the change within a second.
func WithKeys(o Options, fn func(*Folder) error) error {
	f, err := Open(o)
	if errors.Is(err, ErrLocked) {
		return besideServer(o, fn)
	}
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

func besideServer(o Options, fn func(*Folder) error) error {
	path, err := makeFolder(o.Path)
	if err != nil {
		return err
	}
	f := &Folder{path: path, log: slog.Default(), openLimit: 1, byID: map[string]*DB{}, names: map[string]*DB{}, open: map[*DB]struct{}{}}
	f.byID[agent.DefaultID] = newDB(f, agent.DefaultID, f.filePath(agent.DefaultID))
	err = f.loadKeys()
	if err == nil {
		err = fn(f)
	}
	return errors.Join(err, f.Default().closeWhenUnused(true))
}
