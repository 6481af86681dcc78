package pretrained

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"satchel/vector/encoder/internal/safetensors"
	"satchel/vector/encoder/internal/tensor"
)

// Maximum sizes of files.
const (
	maxWeights   = 4 << 30
	maxTokenizer = 64 << 20
	maxJSON      = 1 << 20
)

// folder reads the files of a model. Paths cannot leave it.
type folder struct {
	root  *os.Root
	keep  *mapping // the mapped weights, which stay in use after reading
	names []string // what was read, for Files
}

func openFolder(path string) (*folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &folder{root: root}, nil
}

// Close closes the folder; the mapped weights stay.
func (f *folder) Close() error { return f.root.Close() }

// open opens a file of at most limit bytes.
func (f *folder) open(name string, limit int64) (*os.File, int64, error) {
	file, err := f.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, &Missing{name}
	} else if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("not a file")
	case info.Size() > limit:
		err = fmt.Errorf("has %d bytes, more than %d", info.Size(), limit)
	default:
		f.names = append(f.names, name)
		return file, info.Size(), nil
	}
	return nil, 0, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
}

// has reports whether a file exists.
func (f *folder) has(name string) bool {
	_, err := f.root.Stat(name)
	return err == nil
}

// Missing is the error for a required file that does not exist.
type Missing struct{ Name string }

func (m *Missing) Error() string { return m.Name + " is missing" }

// read returns a whole file.
func (f *folder) read(name string, limit int64) ([]byte, error) {
	file, size, err := f.open(name, limit)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

func (f *folder) json(name string, to any) error {
	data, err := f.read(name, maxJSON)
	if err != nil {
		return err
	}
	return decodeJSON(name, data, to)
}

// optional is json for a file that may be missing.
func (f *folder) optional(name string, to any) error {
	err := f.json(name, to)
	if missing := (*Missing)(nil); errors.As(err, &missing) {
		return nil
	}
	return err
}

// tensors maps a file of weights into memory.
func (f *folder) tensors(name string) (set tensor.Set, err error) {
	err = f.mapped(name, func(data []byte) error {
		set, err = safetensors.Parse(data)
		return err
	})
	return set, err
}

// mapped maps a file into memory, which stays if parse succeeds.
func (f *folder) mapped(name string, parse func(data []byte) error) error {
	file, size, err := f.open(name, maxWeights)
	if err != nil {
		return err
	}
	defer file.Close()
	m, err := mapFile(file, int(size))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	m.next, f.keep = f.keep, m
	if err := parse(m.data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
