package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Commands are the command line's operations on the replicas of a target.
type Commands struct{ Target Target }

// List lists the replicas.
func (c Commands) List(ctx context.Context) ([]agent.Replica, error) {
	return Replicas(ctx, c.Target)
}

// Restore adds an agent to a data folder as it was at a time, as store.RestoreFile does.
func (c Commands) Restore(
	ctx context.Context,
	idOrName string,
	at time.Time,
	folder string,
) (id string, last time.Time, err error) {
	return c.restore(ctx, idOrName, at, folder, func(file, _ string) (string, error) {
		return store.RestoreFile(ctx, folder, file)
	})
}

// Put puts an agent's file into a data folder as it was at a time, as store.PutFile
// does.
func (c Commands) Put(
	ctx context.Context,
	idOrName string,
	at time.Time,
	folder string,
) (id string, last time.Time, err error) {
	return c.restore(ctx, idOrName, at, folder, func(file, id string) (string, error) {
		return id, store.PutFile(ctx, folder, file, id)
	})
}

func (c Commands) restore(
	ctx context.Context,
	idOrName string,
	at time.Time,
	folder string,
	put func(file, id string) (string, error),
) (id string, last time.Time, err error) {
	found, err := Find(ctx, c.Target, idOrName)
	if err != nil {
		return "", last, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", last, err
	}
	dir, remove, err := store.MakeTemp(folder)
	if err != nil {
		return "", last, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	file := filepath.Join(dir, "agent.db")
	if last, err = Restore(ctx, c.Target, found.ID, at, file); err != nil {
		return "", last, err
	}
	id, err = put(file, found.ID)
	return id, last, err
}

// doctorKey is the key of the object with which Doctor checks that the target can be
// written.
const doctorKey = "satchel-doctor"

// Doctor reports whether the target can be read and written, and what is in it.
func (c Commands) Doctor(ctx context.Context) agent.Finding {
	finding := agent.Finding{Subject: "replicas in " + c.Target.String()}
	ids, err := c.Target.storage.folders(ctx)
	if err != nil {
		finding.Message = "cannot be read: " + err.Error()
		return finding
	}
	if f, ok := c.Target.storage.(*folder); ok {
		if err := f.checkMarker(); err != nil {
			finding.Message = err.Error()
			return finding
		}
	}
	if err := c.checkWrite(ctx); err != nil {
		finding.Message = "can be read, but not written: " + err.Error()
		return finding
	}
	all, err := Replicas(ctx, c.Target)
	if err != nil {
		finding.Message = "cannot be read: " + err.Error()
		return finding
	}
	for _, r := range all {
		if r.Problem != "" {
			finding.Message = fmt.Sprintf("agent %s: %s", r.ID, r.Problem)
			return finding
		}
	}
	finding.OK, finding.Message = true, fmt.Sprintf("can be read and written; %d agents", len(ids))
	return finding
}

// checkWrite writes an object and deletes it.
func (c Commands) checkWrite(ctx context.Context) error {
	const text = "Written by satchel doctor, and deleted again.\n"
	if err := c.Target.storage.put(
		ctx,
		doctorKey,
		strings.NewReader(text),
		int64(len(text)),
	); err != nil {
		return err
	}
	return c.Target.storage.remove(ctx, doctorKey)
}
