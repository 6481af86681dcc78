package replica

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"satchel/store/capture"
)

// positions is the file in the data folder that says where replicas stand, so that
// agents that were not written since need no new snapshot at the next start.
type positions struct {
	Target string              `json:"target"`
	Agents map[string]position `json:"agents"`
}

// position is of an agent whose file is closed and whose replica is complete.
type position struct {
	At   capture.Position `json:"at"`
	Base baseline         `json:"base"`
	Name string           `json:"name"`
}

func (r *Replicator) positionsPath() string { return filepath.Join(r.Path, "replica.json") }

// load reads the positions; without them, every agent gets a new snapshot.
func (r *Replicator) load() {
	raw, err := os.ReadFile(r.positionsPath())
	var p positions
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Log.Warn("every replica begins anew with a snapshot", "error", err)
	}
	if err != nil || p.Target != r.Target.String() {
		return
	}
	for id, at := range p.Agents {
		r.agents[id] = &replicated{at: at.At, base: at.Base, name: at.Name, resumed: true}
	}
}

// save writes the positions if they changed.
func (r *Replicator) save() {
	r.mu.Lock()
	p := positions{Target: r.Target.String(), Agents: map[string]position{}}
	for id, a := range r.agents {
		if a.at.Generation != "" && a.at.Generation == a.base.Generation && len(a.pending) == 0 && !a.restarts {
			p.Agents[id] = position{a.at, a.base, a.name}
		}
	}
	changed := r.changed
	r.changed = false
	r.mu.Unlock()
	if !changed {
		return
	}
	raw, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(r.positionsPath()+".new", raw, 0o600)
	}
	if err == nil {
		err = os.Rename(r.positionsPath()+".new", r.positionsPath())
	}
	if err != nil {
		r.Log.Warn("replicas begin anew with snapshots at the next start", "error", err)
	}
}
