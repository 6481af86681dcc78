package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/agent"
	"satchel/vector/encoder/pretrained"
)

// Folder is the name of the models' folder within a data folder.
const Folder = "models"

// idleTime is how long a model stays open after its last use.
const idleTime = 10 * time.Minute

// Library is the models of one folder. It is safe for concurrent use, also by
// several processes.
type Library struct {
	path string
	idle time.Duration

	mu   sync.Mutex // guards open
	open map[string]*opened
}

// opened is a model in memory.
type opened struct {
	id     string
	once   sync.Once // opens it
	model  *Model
	err    error
	unused *time.Timer
}

// Model is an open model.
type Model struct {
	*pretrained.Model
	Info Info
}

// New returns the library of a data folder, which may have no models yet.
func New(data string) *Library {
	return &Library{
		path: filepath.Join(data, Folder),
		idle: idleTime,
		open: map[string]*opened{},
	}
}

// NotInstalled is the error for a model that is not in the library.
func NotInstalled(name string) *agent.Error {
	return agent.Errorf(
		agent.CodeUpstream,
		"the model %s is not installed on this server: \"satchel model list\" shows those that are",
		name,
	)
}

// IsNotInstalled reports whether an error was returned by NotInstalled.
func IsNotInstalled(err error) bool {
	var known *agent.Error
	return errors.As(err, &known) &&
		known.Code == agent.CodeUpstream &&
		strings.Contains(known.Message, "is not installed on this server")
}

// Info returns the description in a model's manifest, or NotInstalled.
func (l *Library) Info(name string) (Info, error) {
	if CheckName(name) != nil {
		return Info{}, NotInstalled(name)
	}
	info, err := readManifest(filepath.Join(l.path, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Info{}, NotInstalled(name)
	case err != nil:
		return Info{}, fmt.Errorf("model %s: %w", name, err)
	}
	info.Name = name
	return info, nil
}

// List returns the models sorted by name. Folders that are not models, such as
// unfinished downloads, are skipped.
func (l *Library) List() ([]Info, error) {
	entries, err := os.ReadDir(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list []Info
	for _, e := range entries {
		if info, err := l.Info(e.Name()); err == nil {
			list = append(list, info)
		}
	}
	return list, nil
}

// Open returns a model, shared with all callers that use it at the same time. It
// is read at the first call, which takes up to a second, and freed ten minutes
// after the last one. Errors are NotInstalled and those of package pretrained,
// which fail until the model is replaced.
func (l *Library) Open(name string) (*Model, error) {
	info, err := l.Info(name)
	if err != nil {
		return nil, err
	}
	o := l.entry(info)
	o.once.Do(func() {
		var m *pretrained.Model
		if m, o.err = pretrained.Open(filepath.Join(l.path, name)); o.err != nil {
			o.err = fmt.Errorf("model %s: %w", name, o.err)
			return
		}
		o.model = &Model{m, info}
	})
	return o.model, o.err
}

// entry returns the entry of a model and postpones its end.
func (l *Library) entry(info Info) *opened {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.open[info.Name]
	if o != nil && o.id == info.ID && o.unused.Reset(l.idle) {
		return o
	}
	o = &opened{id: info.ID}
	o.unused = time.AfterFunc(l.idle, func() {
		l.forget(info.Name, o)
	})
	l.open[info.Name] = o
	return o
}

// forget drops a model that was not used for a while. Its memory is freed when
// the last call that uses it has ended.
func (l *Library) forget(name string, o *opened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name] == o {
		delete(l.open, name)
	}
}

// Reranker returns the name of an installed reranker, the first by name, or "".
func (l *Library) Reranker() string {
	list, err := l.List()
	if err != nil {
		return ""
	}
	at := slices.IndexFunc(list, func(i Info) bool {
		return i.Kind == pretrained.Reranker
	})
	if at < 0 {
		return ""
	}
	return list[at].Name
}

// Remove deletes a model. Calls that are using it are not affected.
func (l *Library) Remove(name string) error {
	if _, err := l.Info(name); err != nil {
		return err
	}
	trash := filepath.Join(l.path, "."+name+".removed")
	if err := errors.Join(os.RemoveAll(trash), os.Rename(filepath.Join(l.path, name), trash)); err != nil {
		return err
	}
	return os.RemoveAll(trash)
}

// maxName limits names, in bytes.
const maxName = 64

// CheckName validates the name of a model: letters, digits, dots, hyphens and
// underscores, beginning with a letter or digit.
func CheckName(name string) error {
	ok := name != "" && len(name) <= maxName
	for i, r := range name {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		ok = ok && (letter || i > 0 && strings.ContainsRune("._-", r))
	}
	if !ok {
		return fmt.Errorf(
			"%.80q is not a valid name for a model: it may have up to %d letters, digits, "+
				"dots, hyphens and underscores",
			name,
			maxName,
		)
	}
	return nil
}
