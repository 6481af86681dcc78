package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// folderPrefix is the prefix of our folders for temporary files.
const folderPrefix = "satchel-browser-"

// folder holds what one Chromium and its driver need while they run: the names
// under which they are started, their process ids, profiles and downloads. A
// lock marks its owner, so that the next server can remove what a killed one
// left.
type folder struct {
	path string
	lock *os.File
}

// socketName is where clients of the DevTools protocol connect.
const socketName = "cdp"

// tempFolder returns where folders are created: in the system's folder for temporary files,
// or in /tmp, if the paths of Chromium's sockets would be too long for the system there.
func tempFolder() string {
	const (
		longest = 107 // see unix(7)
		socket  = "/" + folderPrefix + "4294967295/temp/org.chromium.Chromium.XXXXXX/SingletonSocket"
	)
	if folder := os.TempDir(); runtime.GOOS != "linux" || len(folder+socket) <= longest {
		return folder
	}
	return "/tmp"
}

// newFolder creates a folder for a Chromium and a driver. A shared Chromium has
// a socket in it for a client.
func newFolder(program Program, shared bool) (*folder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(tempFolder(), folderPrefix)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path}
	lock, ok := lockFolder(filepath.Join(path, "lock"))
	if !ok {
		return nil, errors.Join(errors.New("browser: cannot lock "+path), f.remove())
	}
	f.lock = lock
	config := childConfig{
		Node:        filepath.Join(program.Driver, driverName),
		Chromium:    program.Chromium,
		Environment: childEnvironment(program.Environment, f.in("temp")),
	}
	if shared {
		config.Socket = f.in(socketName)
	}
	raw, err := json.Marshal(config)
	if err == nil {
		err = errors.Join(
			os.Mkdir(f.in("temp"), 0o700),
			os.Mkdir(f.in("downloads"), 0o700),
			os.WriteFile(f.in(childConfigFile), raw, 0o600),
			os.Symlink(filepath.Join(program.Driver, "package"), f.in("package")),
			os.Symlink(self, f.in(driverName)),
			os.Symlink(self, f.in(chromiumName)),
		)
	}
	if err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

func (f *folder) in(name string) string {
	return filepath.Join(f.path, name)
}

// pid returns the process that runs under a name, or 0 if there is none yet.
func (f *folder) pid(name string) int {
	raw, err := os.ReadFile(f.in(name + ".pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(raw))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}

// remove deletes the folder. Chromium's last processes may still write to it,
// so it retries for a while.
func (f *folder) remove() error {
	var err error
	for range 50 {
		if err = os.RemoveAll(f.path); err == nil {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// removeOrphans deletes the folders of servers that ended without doing so, and
// kills what still runs there.
func removeOrphans() error {
	entries, err := os.ReadDir(tempFolder())
	if err != nil {
		return fmt.Errorf("browser: find the remains of a killed server: %w", err)
	}
	var failed error
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		f := &folder{path: filepath.Join(tempFolder(), e.Name())}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < orphanAge {
			continue // another server may be about to lock it
		}
		lock, ok := lockFolder(f.in("lock"))
		if !ok {
			continue
		}
		f.lock = lock
		failed = errors.Join(failed, f.remove())
	}
	return failed
}

// orphanAge is how old a folder without an owner must be to count as an orphan.
const orphanAge = 2 * time.Second
