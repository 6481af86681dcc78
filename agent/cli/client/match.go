package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"satchel/agent"
)

// idsFile records, in the folder of a definition, which records of which agent the files
// belong to whose names do not follow from the records' names: people renamed the records.
// Ids are not written to the files of the records, since one definition is for many agents,
// and a copied file is a new record.
const idsFile = "ids.json"

// recordedIDs are ids by agent and path.
type recordedIDs map[string]map[string]string

func readIDs(dir string) (recordedIDs, error) {
	raw, err := os.ReadFile(filepath.Join(dir, idsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return recordedIDs{}, nil
	}
	ids := recordedIDs{}
	if err == nil {
		err = json.Unmarshal(raw, &ids)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, idsFile), err)
	}
	return ids, nil
}

// recordIDs updates the file of ids for one agent. It is not written unless that is needed.
func (session *session) recordIDs(dir, agentID string, ids map[string]string, files map[string]record) {
	recorded, err := readIDs(dir)
	now := map[string]string{}
	for path, id := range ids {
		if r := files[path]; r != nil && path != kindOf(path).file(r) {
			now[path] = id
		}
	}
	if err == nil && !maps.Equal(recorded[agentID], now) {
		if recorded[agentID] = now; len(now) == 0 {
			delete(recorded, agentID)
		}
		if name := filepath.Join(dir, idsFile); len(recorded) == 0 {
			err = os.Remove(name)
		} else {
			var all record
			_ = convert(recorded, &all)
			err = writeFile(name, all.file())
		}
	}
	if err != nil {
		fmt.Fprintf(session.Notes, "%s was not written: %v\n", idsFile, err)
	}
}

// row is a record of a server that has no file yet.
type row struct {
	id, path string // the path that follows from the name
	record
	leftover bool
}

// readKind reads the records of a kind and assigns them to the files of a folder. A record
// is the one that has the file's recorded id; else the file's name (of a record); else a name
// from which the file's own follows, since the record was renamed in the file. Where names are
// unique, the name comes first, because another record of that name cannot be made. What has
// no file gets a new one, unless it is over.
func (session *session) readKind(ctx context.Context, kind kind, definition, local *definition) error {
	rows, err := session.readRows(ctx, kind)
	if err != nil {
		return err
	}
	ways := []func(row) string{
		func(r row) string { return r.id },
		func(r row) string {
			return r.path + "\n" + key(r.record)
		},
		func(r row) string { return key(r.record) },
		func(r row) string { return r.path },
	}
	last := len(ways) - 1
	if kind.unique {
		ways[0], ways[1], ways[2] = ways[1], ways[2], ways[0]
	}
	paths := slices.DeleteFunc(local.paths(), func(path string) bool {
		return kindOf(path).name != kind.name
	})
	for _, leftover := range []bool{false, true} {
		for count, way := range ways {
			files := map[string][]string{}
			for _, path := range paths {
				id := local.ids[path]
				if definition.files[path] == nil && (count < last || id == "") { // else the file's record was deleted
					at := way(row{
						id:     id,
						path:   path,
						record: local.files[path],
					})
					files[at] = append(files[at], path)
				}
			}
			rows = slices.DeleteFunc(rows, func(r row) bool {
				at := way(r)
				if r.leftover != leftover || at == "" || len(files[at]) == 0 {
					return false
				}
				definition.add(kind, r, files[at][0])
				files[at] = files[at][1:]
				return true
			})
		}
	}
	for _, r := range rows {
		if !r.leftover {
			definition.add(kind, r, freePath(r.path, definition, local))
		}
	}
	return nil
}

func (d *definition) add(k kind, r row, path string) {
	d.files[path], d.ids[path] = k.definitionFields(r.record), r.id
}

// readRows reads the records of a kind, oldest first.
func (session *session) readRows(ctx context.Context, kind kind) ([]row, error) {
	const most = 10_000
	all, err := session.api.list(
		ctx,
		kind.path(session),
		cmp.Or(kind.list, kind.name),
		nil,
		most,
	)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b record) int {
		return strings.Compare(fmt.Sprint(a["created_at"], a["id"]), fmt.Sprint(b["created_at"], b["id"]))
	})
	rows := make([]row, len(all))
	taken := &definition{files: map[string]record{}}
	for index, record := range all {
		id := recordID(record)
		if kind.readEach {
			if record, err = session.read(ctx, kind.path(session, id)); err != nil {
				return nil, err
			}
		}
		rows[index] = row{
			id:       id,
			path:     freePath(kind.file(record), taken),
			record:   record,
			leftover: isOver(kind, record),
		}
		if !rows[index].leftover {
			taken.files[rows[index].path] = record
		}
	}
	return rows, nil
}

func recordID(r record) string {
	id, _ := firstOf(r, "id", "name").(string)
	return id
}

// name returns what people know a record by.
func name(r record) string {
	return fmt.Sprint(firstOf(r, "name", "shortcut", "url", "title"))
}

// key returns the name of a record as it is compared.
func key(r record) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name(r)), "!"))
}

// isDefault reports whether a record is a channel that is the default of its type.
func isDefault(r record) bool { return r["is_default"] == true }

// checkFolder returns an error if the files of a folder contradict each other, which would
// make apply change something each time.
func checkFolder(definition *definition) error {
	seen := map[string]string{}
	for _, path := range definition.paths() {
		r, k := definition.files[path], kindOf(path)
		at, issue := "", ""
		switch {
		case k.unique:
			at, issue = k.name+"\n"+key(r), fmt.Sprintf("%q is the name", clean(name(r)))
		case k.name == "gateways" && isDefault(r):
			of, _ := agent.NewGateway(fmt.Sprint(r["type"]))
			at, issue = string(of.Type), "is_default is true"
		default:
			continue
		}
		if seen[at] != "" {
			return fmt.Errorf("%s: %s in %s too", path, issue, seen[at])
		}
		seen[at] = path
	}
	return nil
}
