package store

import (
	"context"
	"errors"
	"log/slog"

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

func openBesideServer(o Options, fn func(*Folder) error) error {
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

// Offline is a data folder for the commands that work without a server or beside
// one.
type Offline struct{ Options }

// Doctor calls Doctor for this folder.
func (o Offline) Doctor() ([]agent.Finding, error) { return Doctor(o.Path, o.MasterKeys) }

// Backup calls BackupFile for this folder.
func (o Offline) Backup(idOrName, to string) error { return BackupFile(o.Path, idOrName, to) }

// Restore calls RestoreFile for this folder.
func (o Offline) Restore(ctx context.Context, from string) (id string, err error) {
	id, err = RestoreFile(ctx, o.Path, from)
	return id, withFileName(from, err)
}

// CreateKey creates an API key and returns it; it cannot be read again.
func (o Offline) CreateKey(ctx context.Context, k agent.Key) (key string, err error) {
	err = WithKeys(o.Options, func(f *Folder) error {
		_, key, err = f.CreateKey(ctx, k)
		return err
	})
	return key, err
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
	return WithKeys(o.Options, func(f *Folder) error { return f.DeleteKey(ctx, id) })
}

// RotateKey calls RotateKey for this folder.
func (o Offline) RotateKey() (credentials int, err error) { return RotateKey(o.Options) }
