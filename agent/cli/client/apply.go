package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"satchel/agent"
)

func (session *session) apply() *cobra.Command {
	var how applyMode
	command := &cobra.Command{
		Use:   "apply DIR",
		Short: "Apply the definition in a folder to an agent",
		Args:  cobra.ExactArgs(1),
		Long: "Apply the definition in a folder to an agent: the one given by --agent, otherwise the one that the " +
			"folder was exported from. It is created if it does not exist.\n\n" + definitionLong +
			" Changes are printed as a diff. Credentials and masked values (********) that the agent has are " +
			"kept; missing ones are listed.",
		Example: "  satchel apply ./bakery --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			local, err := loadDefinition(args[0])
			if err != nil {
				return err
			}
			return session.applyDefinition(c.Context(), args[0], local, how)
		},
	}
	command.Flags().BoolVar(&how.dry, "dry-run", false, "only print what would change")
	command.Flags().BoolVar(&how.prune, "prune", false, "delete what is not in the folder")
	return command
}

// applyMode is how a definition is applied.
type applyMode struct {
	dry   bool // only print what would change
	prune bool // delete what is not in the folder
}

// change is the change to one file of a definition.
type change struct {
	path          string
	before, after record // nil: there is none
	body          record // what is sent
	authType      string // of an MCP server, which is not sent
}

// verb returns what is done: create, update or delete.
func (c *change) verb() string {
	switch {
	case c.before == nil:
		return "create"
	case c.after == nil:
		return "delete"
	}
	return "update"
}

func (session *session) applyDefinition(ctx context.Context, dir string, local *definition, how applyMode) error {
	if session.agent == "" {
		session.agent, _ = local.files[agentFile]["name"].(string)
	}
	remote, err := session.readDefinition(ctx, local)
	var refused *Failure
	missing := errors.As(err, &refused) && refused.Status == http.StatusNotFound
	switch {
	case missing:
		remote = newDefinition()
		local.files[agentFile]["name"] = session.agent
	case err != nil:
		return err
	}
	changes, err := session.compare(remote, local, how.prune)
	if err != nil {
		return err
	}
	session.printChanges(changes)
	session.printAbsent(remote, local)
	if err := checkReferences(changes, remote, local); err != nil || how.dry {
		return err
	}
	if missing {
		var made record
		if err := session.api.call(
			ctx, http.MethodPost, "/agents", nil,
			map[string]any{"name": session.agent},
			&made,
		); err != nil {
			return err
		}
		remote.agentID = recordID(made)
	}
	if len(changes) > 0 {
		err = session.makeChanges(ctx, changes, remote)
	}
	session.recordIDs(dir, remote.agentID, remote.ids, local.files)
	return err
}

// compare returns the changes that turn one definition into the other, in an order
// in which they can be made: records that others refer to are created first and
// deleted last.
func (session *session) compare(from, to *definition, prune bool) ([]change, error) {
	if err := checkFolder(to); err != nil {
		return nil, err
	}
	var changes []change
	for _, path := range to.paths() {
		c, err := session.compareFile(
			path,
			from.files[path],
			to.files[path],
			zoneOf(to, from),
		)
		if err != nil {
			return nil, err
		}
		if c != nil {
			changes = append(changes, *c)
		}
	}
	for _, path := range slices.Backward(from.paths()) {
		if k := kindOf(path); prune &&
			to.files[path] == nil &&
			path != agentFile &&
			!k.manual &&
			!k.permanent {
			changes = append(changes, change{path: path, before: from.files[path]})
		}
	}
	return changes, nil
}

// compareFile returns the change that makes a record what its file says, or nil.
func (session *session) compareFile(path string, before, file record, zone string) (*change, error) {
	kind := kindOf(path)
	if path == agentFile {
		return compareAgent(before, file)
	}
	if err := checkFields(path, kind.fields, file, before); err != nil {
		return nil, err
	}
	sha := before["sha256"]
	given := without(file, kind.readOnly)
	before = without(before, kind.readOnly)
	c := &change{
		path:     path,
		before:   before,
		authType: file.text("auth_type"),
	}
	switch {
	case before == nil && needsManualCreation(path, file):
		return nil, nil
	case kind.manual:
		if !same(merge(before, given), before) {
			fmt.Fprintf(session.Notes, "%s differs, and is not changed: that needs the secret\n", path)
		}
		return nil, nil
	case before == nil &&
		kind.name == "schedules" &&
		(file["status"] == string(agent.ScheduleCompleted) ||
			file["type"] == string(agent.ScheduleOnce) && isPast(file["next_run"])):
		fmt.Fprintf(session.Notes, "%s is not created: its time has passed\n", path)
		return nil, nil
	}
	if document, ok := given["document"].(string); ok && sha == hashOf(document) {
		given = without(given, []string{"document"})
	}
	masked, _ := withMasks(map[string]any(before), map[string]any(given)).(map[string]any)
	var err error
	if c.after, err = kind.wanted(before, masked, zone); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if before == nil {
		c.after, c.body = given, valued(given)
		return c, nil
	}
	if same(before, c.after) {
		if !sameJSON(masked, given) {
			fmt.Fprintf(
				session.Notes,
				"%s: secrets in it are not compared; write %s for what the agent has\n",
				path, agent.Mask,
			)
		}
		return nil, nil
	}
	for _, field := range kind.immutable {
		if !sameJSON(before[field], c.after[field]) {
			return nil, fmt.Errorf("%s: %s cannot be changed; delete it or give the file another name", path, field)
		}
	}
	if c.body = changed(before, c.after, given); len(c.body) < len(given) {
		if part, err := kind.wanted(before, c.body, zone); err != nil || !same(part, c.after) {
			c.body = without(given, kind.immutable) // a field depends on another one
		}
	}
	return c, nil
}

// compareAgent is compareFile for the agent itself. Its name stays, since a definition may be
// applied to another agent.
func compareAgent(before, file record) (*change, error) {
	if err := checkFields(agentFile, []string{"name", "description", "settings"}, file, before); err != nil {
		return nil, err
	}
	current, _ := before["settings"].(map[string]any)
	given, _ := file["settings"].(map[string]any)
	if err := checkFields(agentFile, settingFields, given, current); err != nil {
		return nil, err
	}
	settings, err := changeSettings(current, given)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", agentFile, err)
	}
	after := merge(before, record{"settings": map[string]any(settings)})
	for field, value := range file {
		if field == "description" || before == nil && field == "name" {
			after[field] = value
		}
	}
	if before != nil && same(before, after) {
		return nil, nil
	}
	return &change{
		path:   agentFile,
		before: before,
		after:  after,
		body:   changed(current, settings, given),
	}, nil
}

// needsManualCreation reports whether a record must be created by hand, because its definition
// lacks a secret or the description of an API that was not read from a URL.
func needsManualCreation(path string, r record) bool {
	k := kindOf(path)
	return k.manual || k.name == "apis" && r.text("url") == "" && r.text("document") == ""
}

// hashOf returns the hash by which the server identifies a description.
func hashOf(document string) string {
	sum := sha256.Sum256([]byte(document))
	return hex.EncodeToString(sum[:])
}

func without(r record, fields []string) record {
	r = maps.Clone(r)
	for _, field := range fields {
		delete(r, field)
	}
	return r
}

func kindOf(path string) kind {
	folder, _, _ := strings.Cut(path, "/")
	for _, k := range kinds {
		if k.name == folder {
			return k
		}
	}
	return kind{}
}

// printChanges prints a diff, or with --json what is done to which file.
func (session *session) printChanges(changes []change) {
	if session.json {
		out := []map[string]string{}
		for i := range changes {
			out = append(out, map[string]string{"path": changes[i].path, "change": changes[i].verb()})
		}
		_ = writeJSON(session.Out, out)
		return
	}
	for i := range changes {
		c := &changes[i]
		fmt.Fprintf(
			session.Out,
			"%s %s\n%s",
			c.verb(),
			c.path,
			clean(diff(c.before.file(), c.after.file())),
		)
	}
	if len(changes) == 0 {
		fmt.Fprintln(session.Notes, "Nothing changes.")
	}
}

// makeChanges makes the changes. Workflows may refer to each other, so new ones are
// first created empty.
func (session *session) makeChanges(ctx context.Context, changes []change, remote *definition) error {
	for index := range changes {
		change := &changes[index]
		if change.before == nil && kindOf(change.path).name == "workflows" {
			var made record
			if err := session.api.call(
				ctx,
				http.MethodPost,
				session.path("workflows"),
				nil,
				map[string]any{"name": change.after["name"], "status": "draft"},
				&made,
			); err != nil {
				return fmt.Errorf("%s: %w", change.path, err)
			}
			remote.ids[change.path] = recordID(made)
			change.before = record{"name": change.after["name"]}
		}
	}
	for i := range changes {
		if err := session.makeChange(ctx, &changes[i], remote); err != nil {
			return fmt.Errorf("%s: %w", changes[i].path, err)
		}
	}
	if len(changes) == 1 {
		fmt.Fprintln(session.Notes, "1 change made")
	} else {
		fmt.Fprintf(session.Notes, "%d changes made\n", len(changes))
	}
	return nil
}

// makeChange makes one change.
func (session *session) makeChange(ctx context.Context, change *change, remote *definition) error {
	if change.path == agentFile {
		return session.putAgent(ctx, change)
	}
	kind, id := kindOf(change.path), remote.ids[change.path]
	if change.after == nil {
		return session.remove(ctx, kind, id)
	}
	body, _ := mapTexts(map[string]any(change.body), remote.references()).(map[string]any)
	if change.before == nil {
		var made record
		err := session.api.call(ctx, http.MethodPost, kind.path(session), nil, body, &made)
		if err != nil {
			return err
		}
		remote.ids[change.path] = recordID(made)
		session.printNeededCredentials(change)
		return nil
	}
	var updated record
	if err := session.api.call(ctx, http.MethodPut, kind.path(session, id), nil, body, &updated); err != nil {
		return err
	}
	if reasons, _ := updated["reasons"].([]any); updated["confirm"] != nil && updated["confirm"] != "" {
		return fmt.Errorf(
			"the new description affects operations in use, so the API was not changed: %v; change it in the "+
				"console or with \"confirm\"",
			reasons,
		)
	}
	remote.ids[change.path] = cmp.Or(recordID(updated), id) // a table has a new one
	return nil
}

func (session *session) remove(ctx context.Context, k kind, id string) error {
	if k.name == "mcp" {
		return session.api.call(ctx, http.MethodDelete, k.path(session), url.Values{"id": {id}}, nil, nil)
	}
	return session.api.call(ctx, http.MethodDelete, k.path(session, id), nil, nil, nil)
}

// putAgent changes the description and the settings.
func (session *session) putAgent(ctx context.Context, change *change) error {
	if len(change.body) > 0 {
		if err := session.api.call(
			ctx,
			http.MethodPut,
			session.path("settings"),
			nil,
			change.body,
			nil,
		); err != nil {
			return err
		}
	}
	if same(pick(change.before, []string{"description"}), pick(change.after, []string{"description"})) {
		return nil
	}
	return session.api.call(
		ctx,
		http.MethodPut,
		session.path(),
		nil,
		map[string]any{"description": change.after["description"]},
		nil,
	)
}

// changed returns the given fields that differ after a change.
func changed(before, after, given record) record {
	out := record{}
	for field, value := range given {
		if !sameJSON(before[field], after[field]) {
			out[field] = value
		}
	}
	return out
}

// checkReferences returns an error if a change refers to a record that neither
// exists nor is created.
func checkReferences(changes []change, remote, local *definition) error {
	to := remote.references()
	for path, r := range local.files {
		if !needsManualCreation(path, r) {
			to[reference+strings.TrimSuffix(path, ".json")] = path
		}
	}
	for i := range changes {
		if text, ok := unresolvedReference(mapTexts(map[string]any(changes[i].after), to)); ok {
			if _, byHand := local.files[strings.TrimPrefix(text, reference)+".json"]; byHand {
				return fmt.Errorf("%s: the agent lacks %s: create that first", changes[i].path, text)
			}
			return fmt.Errorf("%s: %s is in neither the folder nor the agent", changes[i].path, text)
		}
	}
	return nil
}

// unresolvedReference returns a reference that does not refer to anything.
func unresolvedReference(value any) (string, bool) {
	switch item := value.(type) {
	case string:
		folder, _, found := strings.Cut(item, "/")
		return item, found && strings.HasPrefix(item, reference) && kindOf(folder[len(reference):]).name != ""
	case []any:
		for _, inner := range item {
			if text, ok := unresolvedReference(inner); ok {
				return text, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(item)) {
			if text, ok := unresolvedReference(item[name]); ok {
				return text, true
			}
		}
	}
	return "", false
}

// printNeededCredentials names the credentials that a new record still needs.
func (session *session) printNeededCredentials(c *change) {
	const mask = "********"
	if strings.Contains(c.after.file(), mask) {
		fmt.Fprintf(session.Notes, "%s: its credentials are still to be set\n", c.path)
	}
	switch k := kindOf(c.path); {
	case k.name == "gateways":
		fmt.Fprintf(session.Notes, "%s: its config is still to be set\n", c.path)
	case k.name == "mcp" && c.authType != "" && c.authType != agent.MCPAuthNone:
		fmt.Fprintf(session.Notes, "%s: its credentials are still to be set\n", c.path)
	}
}

// printAbsent names the records of the folder that the agent lacks and that cannot
// be created from the folder's files.
func (session *session) printAbsent(remote, local *definition) {
	for _, path := range local.paths() {
		switch {
		case !needsManualCreation(path, local.files[path]) || remote.files[path] != nil:
		case kindOf(path).manual:
			fmt.Fprintf(session.Notes, "%s: the agent has no such credential; create it with its secret\n", path)
		default:
			fmt.Fprintf(session.Notes, "%s: the agent has no such API; create it from its description\n", path)
		}
	}
}
