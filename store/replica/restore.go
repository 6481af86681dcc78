package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store/capture"
)

// Replicas lists the replicas of a target.
func Replicas(ctx context.Context, target Target) (all []agent.Replica, err error) {
	ids, err := target.storage.folders(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the replicas: %w", err)
	}
	for _, id := range ids {
		i, err := readInfo(ctx, target.storage, id)
		if errors.Is(err, errNoObject) {
			continue
		} else if err != nil {
			return nil, err
		}
		objects, err := listObjects(ctx, target.storage, id+"/")
		if err != nil {
			return nil, err
		}
		all = append(all, describe(id, i, objects))
	}
	agent.Sort(all, func(a, b agent.Replica) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all, nil
}

func describe(id string, info info, objects []object) agent.Replica {
	replica := agent.Replica{
		ID:      id,
		Name:    info.Name,
		Objects: len(objects),
	}
	if info.DeletedAt != nil {
		replica.Deleted = *info.DeletedAt
	}
	for _, o := range objects {
		if at := time.UnixMilli(o.at); o.level == levelSnapshots && (replica.From.IsZero() || at.Before(replica.From)) {
			replica.From = at
		}
	}
	if c := chain(objects, endOfTime); len(c) > 0 {
		replica.To = time.UnixMilli(c[len(c)-1].at)
	}
	if g := findGap(id, objects, endOfTime); g != nil {
		replica.Problem = g.Error()
	}
	return replica
}

const endOfTime = 1<<63 - 1

// Find returns the replica of an agent, by id or else by name.
func Find(ctx context.Context, target Target, idOrName string) (agent.Replica, error) {
	if idOrName != "" &&
		!strings.ContainsAny(idOrName, `/\`) &&
		idOrName != ".." &&
		idOrName != "." {
		i, err := readInfo(ctx, target.storage, idOrName)
		if err == nil {
			return agent.Replica{ID: idOrName, Name: i.Name}, nil
		} else if !errors.Is(err, errNoObject) {
			return agent.Replica{}, err
		}
	}
	all, err := Replicas(ctx, target)
	if err != nil {
		return agent.Replica{}, err
	}
	named := slices.DeleteFunc(all, func(r agent.Replica) bool {
		return !strings.EqualFold(r.Name, idOrName)
	})
	switch len(named) {
	case 0:
		return agent.Replica{}, fmt.Errorf("no agent %q in %s", idOrName, target)
	case 1:
		return named[0], nil
	}
	ids := make([]string, len(named))
	for i, r := range named {
		if ids[i] = r.ID; !r.Deleted.IsZero() {
			ids[i] += " (deleted " + r.Deleted.Format(time.RFC3339) + ")"
		}
	}
	return agent.Replica{}, fmt.Errorf(
		"%d agents in %s are called %q: name one by its id, %s",
		len(named),
		target,
		idOrName,
		strings.Join(ids, " or "),
	)
}

// fetchAtOnce is how many objects a restore reads ahead.
const fetchAtOnce = 8

// Restore writes the file of the agent with this id, as it was at a time (zero: the
// newest state), to a path that must not exist. It returns the time of the last commit in
// it. If an object is missing or damaged, it writes nothing, and the error names the object
// and the newest time before it.
func Restore(
	ctx context.Context,
	target Target,
	id string,
	at time.Time,
	path string,
) (last time.Time, err error) {
	objects, err := listObjects(ctx, target.storage, id+"/")
	if err != nil {
		return last, err
	}
	until := int64(endOfTime)
	if !at.IsZero() {
		until = at.UnixMilli()
	}
	parts := chain(objects, until)
	if g := findGap(id, objects, until); g != nil {
		return last, *g
	}
	switch {
	case len(parts) == 0 && at.IsZero():
		return last, fmt.Errorf("there is no snapshot of %s", id)
	case len(parts) == 0:
		return last, fmt.Errorf("there is no snapshot of %s from before %s", id, at.Format(time.RFC3339))
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return last, err
	}
	bad, err := applyAll(ctx, target.storage, id, parts, file)
	if err != nil && bad != nil && ctx.Err() == nil {
		err = damagedObject(id, objects, *bad, err)
	}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return last, errors.Join(err, os.Remove(path))
	}
	return time.UnixMilli(parts[len(parts)-1].at), nil
}

// applyAll applies objects in order, and prefetches the next ones. bad is the object that
// is missing or damaged, if that is why it fails.
func applyAll(
	ctx context.Context,
	storage storage,
	id string,
	parts []object,
	file *os.File,
) (bad *object, failed error) {
	dir, err := os.MkdirTemp(filepath.Dir(file.Name()), "objects-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type fetched struct {
		file *os.File
		err  error
	}
	coming := make(chan chan fetched, fetchAtOnce)
	go func() {
		defer close(coming)
		for _, o := range parts {
			one := make(chan fetched, 1)
			select {
			case coming <- one:
			case <-ctx.Done():
				return
			}
			go func() {
				file, err := fetch(ctx, storage, id+"/"+o.name(), dir)
				one <- fetched{file, err}
			}()
		}
	}()
	done := 0
	for one := range coming { // to the end, so that every file is closed
		f := <-one
		if f.file == nil {
			if failed == nil && errors.Is(f.err, errNoObject) {
				bad = &parts[done]
			}
			failed = cmp.Or(failed, f.err)
			cancel()
			continue
		}
		if failed == nil {
			o := &parts[done]
			if failed = capture.ApplyRange(file, f.file, o.first, o.last, o.at); failed != nil && !isLocal(failed) {
				bad = o
			}
			done++
		}
		failed = cmp.Or(failed, errors.Join(f.file.Close(), os.Remove(f.file.Name())))
	}
	if failed == nil && done < len(parts) {
		failed = ctx.Err()
	}
	return bad, failed
}

// isLocal reports whether an error is about a file here, such as that the disk is full, and
// not about what is in an object.
func isLocal(err error) bool {
	var e *fs.PathError
	return errors.As(err, &e)
}
