package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"satchel/agent/work"
	"satchel/store/capture"
)

// mergeAtOnce is how many objects are read at a time to be merged.
const mergeAtOnce = 16

// tidyAll enqueues all replicas for tidying, including those of agents that are idle or
// were deleted.
func (replicator *Replicator) tidyAll(ctx context.Context) {
	ids, err := replicator.Target.storage.folders(ctx)
	if err != nil {
		replicator.onError("", fmt.Errorf("list the replicas: %w", err))
	}
	for _, id := range ids {
		replicator.tidying.Enqueue(id)
	}
}

// tidy merges an agent's objects and removes those that are no longer needed.
func (replicator *Replicator) tidy(ctx context.Context, id string) (work.Next, error) {
	replicator.mu.Lock()
	if a := replicator.agents[id]; a != nil {
		a.merging = false
	}
	replicator.mu.Unlock()
	info, err := readInfo(ctx, replicator.Target.storage, id)
	if errors.Is(err, errNoObject) {
		return work.Next{}, nil // not one of our replicas
	} else if err != nil {
		return work.Next{}, err
	}
	if info.DeletedAt != nil && replicator.Now().Sub(*info.DeletedAt) > replicator.Keep {
		return work.Next{}, replicator.removeAll(ctx, id)
	}
	objects, err := listObjects(ctx, replicator.Target.storage, id+"/")
	if err != nil {
		return work.Next{}, err
	}
	merges, remove := plan(objects, replicator.Now(), replicator.Keep)
	for _, m := range merges {
		if err := replicator.merge(ctx, id, m); err != nil {
			return work.Next{}, fmt.Errorf("merge %s: %w", m.result.name(), err)
		}
	}
	for _, o := range remove {
		if err := replicator.Target.storage.remove(ctx, id+"/"+o.name()); err != nil {
			return work.Next{}, err
		}
	}
	return work.Next{}, nil
}

// removeAll removes a replica, its name last.
func (replicator *Replicator) removeAll(ctx context.Context, id string) error {
	keys, err := replicator.Target.storage.list(ctx, id+"/")
	if err != nil {
		return err
	}
	for _, key := range keys {
		if key != infoKey(id) {
			if err := replicator.Target.storage.remove(ctx, key); err != nil {
				return err
			}
		}
	}
	return replicator.Target.storage.remove(ctx, infoKey(id))
}

// merge merges several objects into one.
func (replicator *Replicator) merge(ctx context.Context, id string, merge merge) error {
	dir, err := os.MkdirTemp(filepath.Join(replicator.Path, "tmp"), "merge-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	made := "" // the path of the result so far
	for rest := merge.parts; len(rest) > 0; {
		n := min(len(rest), mergeAtOnce)
		if made, err = replicator.mergeSome(ctx, id, dir, made, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	file, err := os.Open(made)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return replicator.Target.storage.put(
		ctx,
		id+"/"+merge.result.name(),
		file,
		info.Size(),
	)
}

// mergeSome merges a file, unless it is "", with objects that follow it, and
// returns the path of the result.
func (replicator *Replicator) mergeSome(ctx context.Context, id, dir, made string, parts []object) (string, error) {
	var inputs []io.Reader
	if made != "" {
		file, err := os.Open(made)
		if err != nil {
			return "", err
		}
		defer func() {
			_, _ = file.Close(), os.Remove(made)
		}()
		inputs = append(inputs, file)
	}
	for _, o := range parts {
		file, err := fetch(ctx, replicator.Target.storage, id+"/"+o.name(), dir)
		if err != nil {
			return "", err
		}
		defer func() {
			_, _ = file.Close(), os.Remove(file.Name())
		}()
		inputs = append(inputs, file)
	}
	out, err := os.CreateTemp(dir, "merged-")
	if err != nil {
		return "", err
	}
	return out.Name(), errors.Join(capture.Merge(ctx, out, inputs), out.Close())
}

// fetch reads an object into a temporary file of dir.
func fetch(ctx context.Context, storage storage, key, dir string) (*os.File, error) {
	body, err := storage.get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	file, err := os.CreateTemp(dir, "object-")
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(file, body)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, nil
}

// listObjects lists the objects under a prefix that begins with an agent's id.
func listObjects(ctx context.Context, s storage, prefix string) (objects []object, err error) {
	keys, err := s.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the replica: %w", err)
	}
	for _, key := range keys {
		_, name, _ := strings.Cut(key, "/")
		if o, ok := parseObject(name); ok {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// maxInfo is the size of agent.json, in bytes.
const maxInfo = 64 << 10

func readInfo(ctx context.Context, s storage, id string) (i info, err error) {
	body, err := s.get(ctx, infoKey(id))
	if err != nil {
		return i, err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxInfo))
	if err == nil {
		err = json.Unmarshal(raw, &i)
	}
	if err != nil {
		return i, fmt.Errorf("read %s: %w", infoKey(id), err)
	}
	return i, nil
}
