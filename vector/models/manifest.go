package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/encoder/pretrained"
)

// manifestName is the file in which this package describes a model. It is written last:
// a folder without it is not a model.
const manifestName = "satchel.json"

// Info describes an installed model.
type Info struct {
	Name string `json:"-"`
	// ID identifies the content of the files. Vectors of models with different
	// ids cannot be compared.
	ID      string          `json:"id"`
	Kind    pretrained.Kind `json:"kind"`
	Dims    int             `json:"dims,omitempty"`
	Tokens  int             `json:"tokens"`
	Added   agent.Time      `json:"added_at"`
	Source  string          `json:"source"`
	Files   []File          `json:"files"`
	Prompts *Prompts        `json:"prompts,omitempty"`
}

// Prompts are prepended to texts. They are nil if the files do not specify any.
type Prompts struct {
	Query   string `json:"query"`
	Passage string `json:"passage"`
}

// File is one file of a model.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Size returns the bytes of all files.
func (i Info) Size() (bytes int64) {
	for _, f := range i.Files {
		bytes += f.Size
	}
	return bytes
}

// Vectors returns the name that identifies the model's vectors, as stored with sources.
func (i Info) Vectors() string { return i.Name + VectorMark + i.ID }

// VectorMark separates the name and the id of a model in the names of its vectors.
const VectorMark = "@file/"

func readManifest(folder string) (info Info, err error) {
	data, err := os.ReadFile(filepath.Join(folder, manifestName))
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(data, &info); err != nil || len(info.ID) != idLength {
		return info, errors.Join(fmt.Errorf("%s cannot be read", manifestName), err)
	}
	return info, nil
}

const idLength = 16

// identify sets the id of a model from its files.
func (i *Info) identify() {
	hash := sha256.New()
	for _, f := range i.Files {
		fmt.Fprintf(hash, "%s %s\n", f.SHA256, f.Name)
	}
	i.ID = hex.EncodeToString(hash.Sum(nil))[:idLength]
}

// hashFile returns the size and SHA-256 of a file.
func hashFile(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	hash := sha256.New()
	size, err = io.Copy(hash, f)
	return size, hex.EncodeToString(hash.Sum(nil)), err
}

// finish checks the files of a folder by opening the model, writes its manifest
// and makes it a model of the library.
func (l *Library) finish(staged, name, source string) (Info, error) {
	model, err := pretrained.Open(staged)
	if err != nil {
		return Info{}, err
	}
	info := Info{
		Name:   name,
		Kind:   model.Kind,
		Dims:   model.Dims,
		Tokens: model.Tokens,
		Added:  agent.Now(),
		Source: source,
	}
	if model.Prompts.Known {
		info.Prompts = &Prompts{model.Prompts.Query, model.Prompts.Passage}
	}
	for _, file := range model.Files {
		size, sum, err := hashFile(filepath.Join(staged, filepath.FromSlash(file)))
		if err != nil {
			return Info{}, err
		}
		info.Files = append(info.Files, File{file, size, sum})
	}
	info.identify()
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return Info{}, err
	}
	if err := writeFile(filepath.Join(staged, manifestName), append(data, '\n')); err != nil {
		return Info{}, err
	}
	if err := os.Rename(staged, filepath.Join(l.path, name)); err != nil {
		return Info{}, err
	}
	return info, store.SyncFolder(l.path)
}

// writeFile writes a file and waits until it is on the disk.
func writeFile(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
