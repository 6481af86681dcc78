package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gofrs/flock"

	"satchel/agent"
)

// Doctor examines a data folder without changing it, whether or not a server
// has it open: the master key, and each file's kind, version, integrity and
// credentials. keys are as in Options.
func Doctor(folder string, keys [][]byte) ([]agent.Finding, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := checkFolderUse(path, false); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(path, "agents")); errors.Is(err, os.ErrNotExist) {
		return []agent.Finding{{
			OK:      true,
			Subject: path,
			Message: "empty: satchel serve makes what is missing",
		}}, nil
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	findings := []agent.Finding{serverFinding(path)}
	ring, finding := examineKeys(path, keys)
	findings = append(findings, finding)
	f := &Folder{path: path, keys: ring}
	names, err := os.ReadDir(f.agentsPath())
	if err != nil {
		return nil, err
	}
	for _, entry := range names {
		id, isAgent := agentFile(entry)
		switch {
		case isAgent:
			findings = append(findings, f.examine(id))
		case strings.HasSuffix(entry.Name(), ".db-wal"), strings.HasSuffix(entry.Name(), ".db-shm"):
		case entry.Type()&os.ModeSymlink != 0:
			const message = "is a symbolic link, which is ignored: copy the file instead"
			findings = append(findings, agent.Finding{Subject: entry.Name(), Message: message})
		default:
			findings = append(findings, agent.Finding{
				Subject: entry.Name(),
				Message: "does not belong in the agents folder; it is left alone",
			})
		}
	}
	return findings, nil
}

func serverFinding(path string) agent.Finding {
	lock := flock.New(filepath.Join(path, lockFile))
	if _, err := os.Stat(lock.Path()); err == nil {
		if ok, err := lock.TryLock(); err == nil && !ok {
			return agent.Finding{OK: true, Subject: path, Message: "in use by a running server"}
		}
		_ = lock.Unlock()
	}
	return agent.Finding{OK: true, Subject: path, Message: "no server is running on it"}
}

func examineKeys(path string, given [][]byte) (keyring, agent.Finding) {
	finding := agent.Finding{Subject: "master key"}
	if len(given) == 0 {
		info, err := os.Stat(masterPath(path))
		if err != nil {
			finding.Message = "missing: the next start makes a new one, and stored credentials stay locked"
			return nil, finding
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // Windows has access control lists
			finding.Message = fmt.Sprintf("others can read %s: chmod 600 it", masterPath(path))
		}
	}
	ring, err := loadKeyring(path, given)
	if err != nil {
		finding.Message = err.Error()
		return nil, finding
	}
	if finding.Message == "" {
		finding.OK, finding.Message = true, "present, id "+ring[0].id
	}
	return ring, finding
}

// examine reads one agent's file completely. If something looks wrong while the file
// is being written, it checks again.
func (folder *Folder) examine(id string) agent.Finding {
	before := folder.stamp(id)
	finding := folder.examineOnce(id)
	for range 3 {
		now := folder.stamp(id)
		if finding.OK || now == before {
			break
		}
		before, finding = now, folder.examineOnce(id)
	}
	return finding
}

func (folder *Folder) examineOnce(id string) agent.Finding {
	finding := agent.Finding{Subject: id + ".db"}
	file := unlockedSource(folder.filePath(id))
	if opened, err := os.OpenFile(
		file.Path,
		os.O_RDWR,
		0,
	); errors.Is(err, os.ErrPermission) {
		finding.Message = "this user may not read and write it: give it to the user that runs the server"
		return finding
	} else if err == nil {
		_ = opened.Close()
	}
	if err := examine(context.Background(), folder.filePath(id), file); errors.Is(err, errNoAgent) {
		finding.Message = "is a database, but not an agent's; it is left alone"
		return finding
	} else if err != nil {
		finding.Message = err.Error()
		return finding
	}
	c, err := openConn(file)
	if err != nil {
		finding.Message = "cannot be opened: " + err.Error()
		return finding
	}
	defer c.close()
	if err := c.checkPages(context.Background()); err != nil {
		finding.Message = "damaged: " + err.Error()
		return finding
	}
	return folder.describe(c, finding)
}

// describe fills in the finding about a file that is not damaged.
func (folder *Folder) describe(conn *conn, finding agent.Finding) agent.Finding {
	var version int
	row, err := readRow(conn)
	if err == nil {
		err = conn.value(&version, "PRAGMA user_version")
	}
	if err != nil {
		finding.Message = "damaged: " + err.Error()
		return finding
	}
	copied := row.id+".db" != finding.Subject || row.folder != folder.path
	if copied && hasOtherNames(conn.path) {
		finding.Message = fmt.Sprintf("is a hard link: the same file, of agent %q, has another name; "+
			"it is left alone, copy it instead", row.agent.Name)
		return finding
	}
	locked := folder.lockedSecrets(conn, row.id)
	finding.OK = locked == 0
	finding.Message = fmt.Sprintf("sound, agent %q, %s, file version %d", row.agent.Name, row.agent.Status, version)
	if version < fileVersion() {
		finding.Message += fmt.Sprintf(" (%d once it is opened)", fileVersion())
	}
	if copied {
		finding.Message += ", copied here: will start paused"
	}
	if locked > 0 {
		finding.Message += fmt.Sprintf(", credentials encrypted with another master key: %d", locked)
	}
	return finding
}

// lockedSecrets counts the credentials that the folder's keys cannot open.
func (folder *Folder) lockedSecrets(c *conn, agentID string) (locked int) {
	secrets, err := all(&Tx{conn: c}, scanSecret, "SELECT "+secretColumns+" FROM _secrets")
	if err != nil {
		return 0
	}
	for _, s := range secrets {
		if _, err := folder.keys.open(agentID, s); err != nil {
			locked++
		}
	}
	return locked
}
