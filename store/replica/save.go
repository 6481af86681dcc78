package replica

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"satchel/store"
	"satchel/store/capture"
)

// savedFolder returns the folder of the files that keep writes, each with the commits of
// one agent.
func (replicator *Replicator) savedFolder() string {
	return filepath.Join(replicator.Path, "replica")
}

func (replicator *Replicator) savedPath(id string) string {
	return filepath.Join(replicator.savedFolder(), id)
}

// saveCommits saves an agent's pending commits to a file, since a checkpoint lets them leave the
// -wal. Until then a kill loses none: the next start captures them again.
func (replicator *Replicator) saveCommits(id string) {
	replicator.saving.Lock()
	defer replicator.saving.Unlock()
	replicator.mu.Lock()
	a := replicator.agents[id]
	if a == nil || len(a.pending) == 0 {
		replicator.mu.Unlock()
		return
	}
	waiting := slices.Clone(a.pending)
	a.saved = waiting[len(waiting)-1].TXID
	replicator.mu.Unlock()
	if err := writeCommits(replicator.savedPath(id), waiting); err != nil {
		replicator.Log.Warn(
			"after a kill the replica of an agent will begin anew with a snapshot",
			"agent", id,
			"error", err,
		)
	}
}

func writeCommits(path string, commits []capture.Commit) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	lines := json.NewEncoder(out)
	for _, c := range commits {
		if err = lines.Encode(c); err != nil {
			break
		}
	}
	if err := errors.Join(err, out.Flush(), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// removeSaved removes the file that keep wrote once all its commits are uploaded and the file
// of positions says so. The caller holds saving.
func (replicator *Replicator) removeSaved(id string) {
	replicator.mu.Lock()
	a := replicator.agents[id]
	done := a != nil &&
		a.saved > 0 &&
		(len(a.pending) == 0 || a.pending[0].First > a.saved)
	if done {
		a.saved = 0
	}
	replicator.mu.Unlock()
	if done {
		if err := store.RemoveIfExists(replicator.savedPath(id)); err != nil {
			replicator.Log.Debug("a file of uploaded commits stays", "agent", id, "error", err)
		}
	}
}

// loadSaved reads the kept commits of all agents. Those that continue an agent's replica
// are pending again; files without such commits are removed.
func (replicator *Replicator) loadSaved() error {
	entries, err := os.ReadDir(replicator.savedFolder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		a := replicator.agents[e.Name()]
		if a != nil {
			a.pending = savedAfter(replicator.savedPath(e.Name()), a.end)
		}
		if a == nil || len(a.pending) == 0 {
			err = errors.Join(err, os.Remove(replicator.savedPath(e.Name())))
			continue
		}
		last := a.pending[len(a.pending)-1].Position
		a.at, a.saved, a.since = last, last.TXID, time.UnixMilli(a.pending[0].Began)
		for _, c := range a.pending {
			a.size += int64(len(c.Data))
		}
		replicator.waiting += a.size
	}
	return err
}

// savedAfter reads the commits from a file that continue after a position.
func savedAfter(path string, at capture.Position) (commits []capture.Commit) {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	for lines := json.NewDecoder(bufio.NewReader(file)); lines.More(); {
		var c capture.Commit
		if lines.Decode(&c) != nil || capture.Verify(bytes.NewReader(c.Data)) != nil {
			return nil
		}
		if c.Generation != at.Generation || c.TXID <= at.TXID {
			continue
		}
		if c.First != at.TXID+1 {
			return nil
		}
		commits, at = append(commits, c), c.Position
	}
	return commits
}
