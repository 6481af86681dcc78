package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"satchel/agent/egress"
)

// Install specifies the model to download.
type Install struct {
	// Model is a name that Known lists, or a repository of the hub such as
	// "intfloat/e5-small-v2".
	Model    string
	Name     string // in the library; empty: the last part of Model
	Revision string // of a repository; empty: main
	SHA256   string // of model.safetensors; required for a repository
	Mirror   string // address in place of the hub's; empty: the hub
	Client   *egress.Client
	// Progress is called as bytes arrive; total is 0 if it is unknown.
	Progress func(file string, done, total int64)
}

// hub is where models are published.
const hub = "https://huggingface.co"

// Known lists the names that can be installed without a hash.
func Known() []string { return slices.Sorted(maps.Keys(knownModels)) }

// Install downloads a model and adds it to the library. What arrived before an
// error is kept, and continued by the next call for the same model. A file with
// another hash than the pinned one is deleted, and the model is not added.
func (l *Library) Install(ctx context.Context, install Install) (Info, error) {
	pin, err := install.pin()
	if err != nil {
		return Info{}, err
	}
	name := cmp.Or(install.Name, path.Base(install.Model))
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	if _, err := os.Stat(filepath.Join(l.path, name)); err == nil {
		return Info{}, nameTakenError(name)
	}
	d := &download{
		folder: filepath.Join(l.path, "."+name+"."+pin.mark()+".download"),
		address: cmp.Or(strings.TrimSuffix(install.Mirror, "/"), hub) + "/" + pin.repository + "/resolve/" +
			pin.revision + "/",
		pin:      pin,
		client:   install.Client,
		progress: install.Progress,
	}
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return Info{}, err
	}
	if err := d.all(ctx); err != nil {
		return Info{}, err
	}
	info, err := l.finish(d.folder, name, hub+"/"+pin.repository+"/tree/"+pin.revision)
	if err != nil {
		return Info{}, errors.Join(err, os.RemoveAll(d.folder))
	}
	return info, nil
}

// The valid forms of a part of a repository's name, of a revision and of a hash.
var (
	parts  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	hashes = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func isPart(s string) bool {
	return len(s) <= 96 && parts.MatchString(s)
}

func isRepository(s string) bool {
	owner, name, _ := strings.Cut(s, "/")
	return isPart(owner) && isPart(name)
}

// pin returns what to download.
func (o Install) pin() (pinnedModel, error) {
	if o.SHA256 != "" && !hashes.MatchString(o.SHA256) {
		return pinnedModel{}, errors.New("--sha256 has to be 64 hexadecimal digits in lower case")
	}
	pin, ok := knownModels[o.Model]
	switch {
	case ok && (o.Revision != "" || o.SHA256 != "" && o.SHA256 != pin.sums[weights]):
		return pinnedModel{}, fmt.Errorf(
			"%s is pinned to another revision or hash; name its repository, %s, to install another version",
			o.Model, pin.repository,
		)
	case ok:
		return pin, nil
	case !isRepository(o.Model):
		return pinnedModel{}, fmt.Errorf(
			"%.80q is not a known model (%s) nor a repository such as intfloat/e5-small-v2",
			o.Model,
			strings.Join(Known(), ", "),
		)
	case o.SHA256 == "":
		return pinnedModel{}, fmt.Errorf(
			"give the SHA-256 of model.safetensors with --sha256: the page of the file in %s/%s shows it",
			hub, o.Model,
		)
	case o.Revision != "" && !isPart(o.Revision):
		return pinnedModel{}, errors.New("--revision has to be a commit, branch or tag")
	}
	return pinnedModel{
		repository: o.Model,
		revision:   cmp.Or(o.Revision, "main"),
		sums:       map[string]string{weights: o.SHA256},
	}, nil
}

// mark returns a name that distinguishes the downloads of different versions.
func (k pinnedModel) mark() string {
	return k.sums[weights][:min(12, len(k.sums[weights]))]
}

const weights = "model.safetensors"

// all downloads every file, the weights last.
func (d *download) all(ctx context.Context) error {
	for _, name := range []string{"config.json", "tokenizer.json"} {
		if err := d.file(ctx, name); err != nil {
			return err
		}
	}
	optional := []string{"sentence_bert_config.json"}
	if d.isReranker() {
		optional = nil
	} else if err := d.modules(ctx); err != nil {
		return err
	} else {
		optional = append(optional, "config_sentence_transformers.json")
	}
	for _, name := range optional {
		if err := d.file(ctx, name); err != nil && !errors.Is(err, errNoFile) {
			return err
		}
	}
	return d.file(ctx, weights)
}

// isReranker reports whether config.json describes a classifier, which has no modules.
func (d *download) isReranker() bool {
	var c struct {
		Architectures []string `json:"architectures"`
	}
	return d.decode("config.json", &c) == nil &&
		len(c.Architectures) == 1 &&
		strings.HasSuffix(c.Architectures[0], "ForSequenceClassification")
}

// modules downloads modules.json and the files of the modules.
func (d *download) modules(ctx context.Context) error {
	if err := d.file(ctx, "modules.json"); err != nil {
		return err
	}
	var list []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if err := d.decode("modules.json", &list); err != nil || len(list) > 8 {
		return errors.Join(errors.New("modules.json cannot be read"), err)
	}
	for _, m := range list {
		if m.Path == "" || strings.HasSuffix(m.Type, ".Normalize") {
			continue
		}
		if !isPart(m.Path) {
			return fmt.Errorf("modules.json names the folder %.80q", m.Path)
		}
		if err := d.file(ctx, m.Path+"/config.json"); err != nil {
			return err
		}
		if strings.HasSuffix(m.Type, ".Dense") {
			if err := d.file(ctx, m.Path+"/"+weights); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *download) decode(name string, to any) error {
	data, err := os.ReadFile(filepath.Join(d.folder, name))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
