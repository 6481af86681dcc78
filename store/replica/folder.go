package replica

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folder is a storage in a folder of a file system.
type folder string

func (f folder) path(key string) string { return filepath.Join(string(f), filepath.FromSlash(key)) }

// partial ends the names of files that are being written.
const partial = ".partial"

func (f folder) put(_ context.Context, key string, body io.ReaderAt, size int64) (err error) {
	path := f.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path+partial, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.NewSectionReader(body, 0, size))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path+partial))
	}
	return os.Rename(path+partial, path)
}

func (f folder) get(_ context.Context, key string) (io.ReadCloser, error) {
	file, err := os.Open(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotThere
	} else if err != nil {
		return nil, err
	}
	return file, nil
}

func (f folder) list(ctx context.Context, prefix string) (keys []string, err error) {
	err = filepath.WalkDir(f.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // none, or removed meanwhile
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case entry.Type().IsRegular() && !strings.HasSuffix(path, partial):
			key, err := filepath.Rel(string(f), path)
			keys = append(keys, filepath.ToSlash(key))
			return err
		}
		return nil
	})
	return keys, err
}

func (f folder) folders(context.Context) (names []string, err error) {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// remove also removes the folders that it leaves empty.
func (f folder) remove(_ context.Context, key string) error {
	path := f.path(key)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(path); dir != string(f) && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	return nil
}
