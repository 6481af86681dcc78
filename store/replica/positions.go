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

func (r *Replicator) positionsPath() string {
	return filepath.Join(r.Path, "replica.json")
}

// load reads the positions; without them, every agent gets a new snapshot.
func (r *Replicator) load() {
	raw, err := os.ReadFile(r.positionsPath())
	var p positions
	if err == nil {
		p, err = decodePositions(raw)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Log.Warn("all replicas start again with a snapshot", "error", err)
	}
	r.used = err == nil && p.Target == r.Target.String()
	if !r.used {
		return
	}
	for id, at := range p.Agents {
		r.agents[id] = &replicated{
			at:      at.At,
			end:     at.At,
			base:    at.Base,
			name:    at.Name,
			sent:    at.Sent,
			resumed: true,
		}
	}
	if err := r.loadSaved(); err != nil {
		r.Log.Warn("read the commits that wait for their upload", "error", err)
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
func (r *Replicator) append(id string) {
	r.saving.Lock()
	defer r.saving.Unlock()
	defer r.removeSaved(id)
	r.mu.Lock()
	a := r.agents[id]
	var at position
	stands := false
	if a != nil && a.unsaved {
		at, stands = a.positionLocked()
	}
	if stands {
		a.unsaved, r.changed = false, r.changed || !r.saved
	}
	r.mu.Unlock()
	switch {
	case !stands:
		return
	case !r.saved:
		r.saveLocked()
		return
	}
	raw, err := json.Marshal(positions{Agents: map[string]position{id: at}})
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(r.positionsPath(), os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err == nil {
		_, err = file.Write(append(raw, '\n'))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		r.saved = false // the file may end in half a line: all are written next time
	}
}

// save writes all positions if any changed.
func (r *Replicator) save() {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.saveLocked()
}

// saveLocked is save for a caller that holds saving. Nothing is written before the target
// is prepared for the first time: the file says that it has been used.
func (r *Replicator) saveLocked() {
	r.mu.Lock()
	p := positions{Target: r.Target.String(), Agents: map[string]position{}}
	for id, a := range r.agents {
		if at, stands := a.positionLocked(); stands {
			p.Agents[id] = at
		}
		a.unsaved = false
	}
	changed := r.changed && (r.used || r.prepared)
	r.changed = r.changed && !changed
	r.mu.Unlock()
	if !changed {
		return
	}
	raw, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(r.positionsPath()+".new", append(raw, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(r.positionsPath()+".new", r.positionsPath())
	}
	if r.saved = err == nil; err != nil {
		r.Log.Warn("replicas will start again with snapshots at the next start", "error", err)
	}
}
