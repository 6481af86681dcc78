//go:build unix

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/store"
)

// agentFile is an agent's file on its owner.
type agentFile struct{ file, wal []byte }

func (a agentFile) equal(b agentFile) bool {
	return bytes.Equal(a.file, b.file) && bytes.Equal(a.wal, b.wal)
}

// compareFiles compares the files of the agents that are written to with the database's
// copies, byte for byte, and checks their integrity. The clients must have stopped.
func (f *faultyCluster) compareFiles(t *testing.T) {
	t.Helper()
	temp, err := os.MkdirTemp("", "satchel-faults-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	exported := filepath.Join(temp, "exported")
	files := f.ownersFiles(t)
	for deadline := time.Now().Add(longestGap); ; {
		if out, err := f.nodes[0].command("cluster", "export", exported).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		before := files
		if files = f.ownersFiles(t); maps.EqualFunc(before, files, agentFile.equal) { // nothing was written meanwhile
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the agents' files do not stop changing")
		}
		if err := os.RemoveAll(exported); err != nil {
			t.Fatal(err)
		}
	}
	for id, owners := range files {
		got, want := filepath.Join(exported, "agents", id+".db"), filepath.Join(temp, id+".db")
		if err := errors.Join(
			os.WriteFile(want, owners.file, 0o600),
			os.WriteFile(want+"-wal", owners.wal, 0o600),
		); err != nil {
			t.Fatal(err)
		}
		if err := store.Mark(want, exported); err != nil { // as the export does, which also completes the file
			t.Fatal(err)
		}
		a, e1 := os.ReadFile(got)
		b, e2 := os.ReadFile(want)
		if e1 != nil || e2 != nil || !bytes.Equal(a, b) {
			t.Errorf(
				"the restored file of %s, of %d bytes, differs from its owner's, of %d bytes: %v, %v",
				id,
				len(a),
				len(b),
				e1,
				e2,
			)
		}
		// checks its integrity
		if err := store.PutFile(t.Context(), filepath.Join(temp, "checked"), got, id); err != nil {
			t.Errorf("the restored file of %s: %v", id, err)
		}
	}
}

// ownersFiles reads the files of the agents that are written to, by id.
func (f *faultyCluster) ownersFiles(t *testing.T) map[string]agentFile {
	t.Helper()
	files := map[string]agentFile{}
	for _, a := range f.owners() {
		path := filepath.Join(a.owner.folder, "data", "agents", a.id+".db")
		var read agentFile
		var err error
		if read.file, err = os.ReadFile(path); err == nil {
			read.wal, err = os.ReadFile(path + "-wal")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		files[a.id] = read
	}
	if len(files) != len(faultyAgents) {
		t.Fatalf("only %d of the agents that are written to have owners", len(files))
	}
	return files
}

// ownedAgent is one of the agents that are written to, and its owner.
type ownedAgent struct {
	id    string
	owner *faultyNode
}

// owners returns the agents that are written to, by name, from the database.
func (f *faultyCluster) owners() map[string]ownedAgent {
	owners := map[string]ownedAgent{}
	for line := range strings.Lines(f.pg.Query(
		"satchel",
		"SELECT a.name, a.id, n.url FROM satchel.agent a JOIN satchel.node n ON n.session = a.owner",
	)) {
		row := strings.Split(strings.TrimSpace(line), "|")
		for _, n := range f.nodes {
			if slices.Contains(faultyAgents, row[0]) && n.peerURL() == row[2] {
				owners[row[0]] = ownedAgent{id: row[1], owner: n}
			}
		}
	}
	return owners
}

// peerURL returns the URL at which the other servers reach the server.
func (n *faultyNode) peerURL() string { return "http://" + n.fromPeers.Addr() }
