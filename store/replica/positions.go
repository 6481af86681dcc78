package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"satchel/store/capture"
)

// positions is a line of the file in the data folder that records how far each replica
// goes, so that at the next start agents that have not changed need no new snapshot, and
// those that were in use at a kill continue. The first line has the positions of all
// agents; each further line updates one of them.
type positions struct {
	Target string              `json:"target,omitempty"`
	Agents map[string]position `json:"agents"`
}

// position is how far an agent's replica goes.
type position struct {
	At   capture.Position `json:"at"`
	Sent uint64           `json:"sent,omitzero"` // last transaction of an upload in progress
	Base baseline         `json:"base"`
	Name string           `json:"name"`
}

func (replicator *Replicator) positionsPath() string {
	return filepath.Join(replicator.Path, "replica.json")
}

// load reads the positions; without them, every agent gets a new snapshot.
func (replicator *Replicator) load() {
	raw, err := os.ReadFile(replicator.positionsPath())
	var p positions
	if err == nil {
		p, err = decodePositions(raw)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		replicator.Log.Warn("all replicas start again with a snapshot", "error", err)
	}
	replicator.used = err == nil && p.Target == replicator.Target.String()
	if !replicator.used {
		return
	}
	for id, at := range p.Agents {
		replicator.agents[id] = &replicated{
			at:      at.At,
			end:     at.At,
			base:    at.Base,
			name:    at.Name,
			sent:    at.Sent,
			resumed: true,
		}
	}
	if err := replicator.loadSaved(); err != nil {
		replicator.Log.Warn("read the commits that wait for their upload", "error", err)
	}
}

// decodePositions reads the file of positions, whose last line a kill may have cut short.
// An older position does no harm: align finds that the replica is ahead.
func decodePositions(raw []byte) (p positions, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&p); err != nil {
		return p, err
	}
	for {
		var newer positions
		if decoder.Decode(&newer) != nil || p.Agents == nil {
			return p, nil
		}
		maps.Copy(p.Agents, newer.Agents)
	}
}

// positionLocked returns how far an agent's replica goes, and whether a start can
// continue from there. The caller holds mu.
func (a *replicated) positionLocked() (position, bool) {
	return position{
			At:   a.end,
			Sent: a.sent,
			Base: a.base,
			Name: a.name,
		}, a.end.Generation != "" &&
			a.end.Generation == a.base.Generation &&
			!a.restarts
}

// append appends an agent's position to the file if it changed.
func (replicator *Replicator) append(id string) {
	replicator.saving.Lock()
	defer replicator.saving.Unlock()
	defer replicator.removeSaved(id)
	replicator.mu.Lock()
	replicated := replicator.agents[id]
	var at position
	stands := false
	if replicated != nil && replicated.unsaved {
		at, stands = replicated.positionLocked()
	}
	if stands {
		replicated.unsaved, replicator.changed = false, replicator.changed || !replicator.saved
	}
	replicator.mu.Unlock()
	switch {
	case !stands:
		return
	case !replicator.saved:
		replicator.saveLocked()
		return
	}
	raw, err := json.Marshal(positions{Agents: map[string]position{id: at}})
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(replicator.positionsPath(), os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err == nil {
		_, err = file.Write(append(raw, '\n'))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		replicator.saved = false // the file may end in half a line: all are written next time
	}
}

// save writes all positions if any changed.
func (replicator *Replicator) save() {
	replicator.saving.Lock()
	defer replicator.saving.Unlock()
	replicator.saveLocked()
}

// saveLocked is save for a caller that holds saving. Nothing is written before the target
// is prepared for the first time: the file says that it has been used.
func (replicator *Replicator) saveLocked() {
	replicator.mu.Lock()
	p := positions{Target: replicator.Target.String(), Agents: map[string]position{}}
	for id, a := range replicator.agents {
		if at, stands := a.positionLocked(); stands {
			p.Agents[id] = at
		}
		a.unsaved = false
	}
	changed := replicator.changed && (replicator.used || replicator.prepared)
	replicator.changed = replicator.changed && !changed
	replicator.mu.Unlock()
	if !changed {
		return
	}
	raw, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(replicator.positionsPath()+".new", append(raw, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(replicator.positionsPath()+".new", replicator.positionsPath())
	}
	if replicator.saved = err == nil; err != nil {
		replicator.Log.Warn("replicas will start again with snapshots at the next start", "error", err)
	}
}
