package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/encoder/pretrained"
)

// Maximum sizes of the files that are copied, as in package pretrained.
const (
	maxWeights = 4 << 30
	maxOther   = 64 << 20
)

// rootFiles are the files of a model outside the folders of its modules.
var rootFiles = []string{
	"config.json", "tokenizer.json", "model.safetensors", "modules.json",
	"sentence_bert_config.json",
	"config_sentence_transformers.json",
}

// nameTakenError returns the error for a name that is already in use.
func nameTakenError(name string) error {
	return agent.Errorf(
		agent.CodeConflict,
		"a model named %s already exists; remove it first with \"satchel model remove %s\"",
		name, name,
	)
}

// ggufEnd is the extension of files that contain a whole model.
const ggufEnd = ".gguf"

// Add copies the model in a folder, or a GGUF file, into the library and checks it. If
// name is empty, it is that of the folder or file.
func (l *Library) Add(ctx context.Context, from, name string) (Info, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return Info{}, err
	}
	names, err := filesOf(from)
	if err != nil {
		return Info{}, err
	}
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(from), ggufEnd)
	}
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	if _, err := os.Stat(filepath.Join(l.path, name)); err == nil {
		return Info{}, nameTakenError(name)
	}
	if err := os.MkdirAll(l.path, 0o700); err != nil {
		return Info{}, err
	}
	temp, remove, err := store.MakeTemp(filepath.Dir(l.path))
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = remove() }()
	staged := filepath.Join(temp, name)
	if err := os.Mkdir(staged, 0o700); err != nil {
		return Info{}, err
	}
	for file, at := range names {
		if err := copyFile(ctx, filepath.Join(staged, file), at); err != nil {
			return Info{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	return l.finish(staged, name, from)
}

// filesOf returns the files of a model that are in a folder, and where they are, or
// the one file of a model.
func filesOf(folder string) (map[string]string, error) {
	if info, err := os.Stat(folder); err != nil {
		return nil, err
	} else if info.Mode().IsRegular() {
		if !strings.HasSuffix(folder, ggufEnd) {
			return nil, fmt.Errorf("%s is neither a folder nor a %s file", folder, ggufEnd)
		}
		return map[string]string{pretrained.GGUF: folder}, nil
	}
	names := append([]string(nil), rootFiles...)
	data, err := os.ReadFile(filepath.Join(folder, "modules.json"))
	if err == nil {
		var modules []struct {
			Path string `json:"path"`
		}
		if err := json.Unmarshal(data, &modules); err != nil || len(modules) > 8 {
			return nil, errors.Join(errors.New("modules.json cannot be read"), err)
		}
		for _, m := range modules {
			if m.Path != "" && fs.ValidPath(m.Path) {
				names = append(names, path.Join(m.Path, "config.json"), path.Join(m.Path, "model.safetensors"))
			}
		}
	}
	found := map[string]string{}
	for _, name := range names {
		at := filepath.Join(folder, filepath.FromSlash(name))
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() {
			found[name] = at
		}
	}
	return found, nil
}

// copyFile copies a file of limited size and waits until it is on the disk.
func copyFile(ctx context.Context, to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	limit := int64(maxOther)
	if name := filepath.Base(to); name == weights || name == pretrained.GGUF {
		limit = maxWeights
	}
	n, err := io.Copy(out, io.LimitReader(contextReader{ctx, in}, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return errors.Join(err, out.Sync(), out.Close())
}

// contextReader is a reader that ends with its context.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (s contextReader) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}
