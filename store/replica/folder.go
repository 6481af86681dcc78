package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// folder is a storage in a folder of a file system.
type folder struct {
	root  string
	swept sync.Once // removes what a kill left in partial
}

// marker is a file in the folder itself. It is missing while the disk is not mounted;
// what is then written would fill the disk with the empty mount point.
const (
	marker     = "satchel-replicas"
	markerText = "Satchel keeps replicas in this folder, and writes to it only while this file is here.\n"
)

// partial is the folder for files that are being written.
const partial = ".partial"

func (f *folder) path(key string) string {
	return filepath.Join(f.root, filepath.FromSlash(key))
}

// prepare creates the marker in a folder that is used for the first time, and in one
// whose replicas predate the marker.
func (f *folder) prepare(used bool) error {
	err := f.checkMarker()
	if err == nil {
		return nil
	}
	if old, _ := filepath.Glob(f.path("*/agent.json")); used && len(old) == 0 {
		return err
	}
	if err := os.MkdirAll(f.root, 0o700); err != nil {
		return err
	}
	for _, pattern := range []string{"*/*", "*/*/*/*"} { // where uploads were written before there was a marker
		partial, _ := filepath.Glob(f.path(pattern + ".partial"))
		for _, path := range partial {
			_ = os.Remove(path)
		}
	}
	return os.WriteFile(f.path(marker), []byte(markerText), 0o600)
}

// checkMarker returns an error if the folder lacks the marker.
func (f *folder) checkMarker() error {
	_, err := os.Stat(f.path(marker))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(
			"%s has no file %s: is its disk mounted? To start over in it, stop the server and remove "+
				"replica.json of the data folder",
			f.root,
			marker,
		)
	}
	return err
}

func (f *folder) put(_ context.Context, key string, body io.ReaderAt, size int64) (err error) {
	if err := f.checkMarker(); err != nil {
		return err
	}
	f.swept.Do(func() {
		err = os.RemoveAll(f.path(partial))
	})
	path := f.path(key)
	if err := errors.Join(
		err,
		os.MkdirAll(filepath.Dir(path), 0o700),
		os.MkdirAll(f.path(partial), 0o700),
	); err != nil {
		return err
	}
	file, err := os.CreateTemp(f.path(partial), "")
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.NewSectionReader(body, 0, size))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

func (f *folder) get(_ context.Context, key string) (io.ReadCloser, error) {
	file, err := os.Open(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoObject
	} else if err != nil {
		return nil, err
	}
	return file, nil
}

func (f *folder) list(ctx context.Context, prefix string) (keys []string, err error) {
	err = filepath.WalkDir(f.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return f.checkMarker() // then there is none, or it has been removed since
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case entry.Type().IsRegular():
			key, err := filepath.Rel(f.root, path)
			keys = append(keys, filepath.ToSlash(key))
			return err
		}
		return nil
	})
	return keys, err
}

func (f *folder) folders(context.Context) (names []string, err error) {
	entries, err := os.ReadDir(f.root)
	for _, e := range entries {
		if e.IsDir() && e.Name() != partial {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, f.checkMarker()
	}
	return names, err
}

// remove removes an object, and the folders that become empty.
func (f *folder) remove(_ context.Context, key string) error {
	path := f.path(key)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(path); dir != f.root && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	return nil
}
