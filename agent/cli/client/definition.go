package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
)

// kind is a kind of records in an agent's definition.
type kind struct {
	name      string   // of the folder
	route     string   // under the agent; empty: name
	list      string   // the key of lists; empty: name
	fields    []string // that are kept
	readEach  bool     // the list omits fields, so each record is read separately
	immutable []string // fields that cannot be changed later
	readOnly  []string // fields that are written for readers, and never sent
	manual    bool     // only compared: a secret is needed to create one
	unique    bool     // no two records have the same name
	byName    bool     // records are known by their name, which is the same everywhere
	permanent bool     // never deleted: it holds what people wrote

	inner  map[string]reflect.Type                                 // of fields that are objects, or lists of them
	change func(before, given record, zone string) (record, error) // nil: fields replace fields
}

// kinds are in the order in which records refer to earlier ones.
var kinds = []kind{
	{
		name:   "credentials",
		fields: []string{"name", "type", "preset", "hosts", "config", "configured_fields"},
		manual: true,
		unique: true,
	},
	{
		name:     "apis",
		fields:   []string{"name", "url", "document", "server", "credential", "sha256"},
		readOnly: []string{"sha256"},
		unique:   true,
		change:   changeAPI,
	},
	{
		name:     "mcp",
		list:     "servers",
		fields:   []string{"name", "url", "command", "credential", "auth_type"},
		readOnly: []string{"auth_type"},
	},
	{
		name:     "tools",
		fields:   []string{"name", "description", "type", "enabled", "config"},
		readEach: true,
		unique:   true,
		inner:    map[string]reflect.Type{"config": reflect.TypeFor[agent.ToolConfig]()},
		change:   changeTool,
	},
	{
		name:      "gateways",
		fields:    []string{"name", "type", "is_default", "configured_fields"},
		immutable: []string{"type"},
		readOnly:  []string{"configured_fields"},
		change:    changeGateway,
	},
	{
		name:      "tables",
		fields:    []string{"name", "columns"},
		unique:    true,
		byName:    true,
		permanent: true,
		inner:     map[string]reflect.Type{"columns": reflect.TypeFor[[]agent.ColumnChange]()},
		change:    changeTable,
	},
	{
		name:     "workflows",
		fields:   []string{"name", "description", "status", "nodes", "edges", "settings"},
		readEach: true,
		inner:    map[string]reflect.Type{"settings": reflect.TypeFor[agent.WorkflowSettings]()},
		change:   changeBy(func(c agent.WorkflowChange, w *agent.Workflow, _ string) { c.Apply(w) }),
	},
	{
		name: "schedules",
		fields: []string{
			"name", "type", "cron_expression", "delay_seconds", "next_run", "callback_type", "callback_id", "payload",
			"timezone", "misfire_policy", "overlap", "status",
		},
		change: changeSchedule,
	},
	{
		name: "calendar",
		list: "tasks",
		fields: []string{
			"title", "description", "start_time", "end_time", "timezone", "recurrence", "recurrence_days",
			"recurrence_end", "recurrence_count", "exceptions", "workflow_id",
		},
		inner:  map[string]reflect.Type{"exceptions": reflect.TypeFor[[]agent.TaskException]()},
		change: changeBy(func(c agent.TaskChange, t *agent.Task, zone string) { c.Apply(t, zone) }),
	},
	{
		name:   "replies",
		fields: []string{"shortcut", "text"},
		unique: true,
		change: changeBy(func(c agent.CannedReplyChange, r *agent.CannedReply, _ string) { c.Apply(r) }),
	},
	{
		name:   "webhooks",
		fields: []string{"url", "events", "active"},
		change: changeBy(func(c agent.WebhookChange, w *agent.Webhook, _ string) { c.Apply(w) }),
	},
}

// path returns the route of the kind's records, or of one of them.
func (k kind) path(s *session, id ...string) string {
	return s.path(append([]string{cmp.Or(k.route, k.name)}, id...)...)
}

// settingFields are the settings in a definition; credentials are none of them.
var settingFields = []string{
	"llm_provider", "llm_model", "llm_base_url", "llm_temperature", "llm_max_tokens", "system_prompt",
	"auto_reply", "chat_browser", "timezone", "retention_days", "embedding_provider", "embedding_model",
	"embedding_base_url", "embedding_query_prefix", "embedding_passage_prefix",
}

// agentFile is the file of a definition that describes the agent itself.
const agentFile = "agent.json"

// definition describes an agent as text files by their paths in a folder.
type definition struct {
	files map[string]record // agent.json, workflows/welcome.json, …
	ids   map[string]string // by path

	agentID  string      // of a server's definition
	recorded recordedIDs // of a folder
}

func newDefinition() *definition {
	return &definition{
		files:    map[string]record{},
		ids:      map[string]string{},
		recorded: recordedIDs{},
	}
}

// paths returns the paths in the order in which they are applied.
func (d *definition) paths() []string {
	rank := func(path string) int {
		folder, _, _ := strings.Cut(path, "/")
		return slices.IndexFunc(kinds, func(k kind) bool {
			return k.name == folder
		})
	}
	return slices.SortedFunc(maps.Keys(d.files), func(a, b string) int {
		if n := rank(a) - rank(b); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
}

// readDefinition reads the definition of a server's agent, with the paths that its records
// have in a folder.
func (session *session) readDefinition(ctx context.Context, local *definition) (*definition, error) {
	d := newDefinition()
	about, err := session.read(ctx, session.path())
	if err != nil {
		return nil, err
	}
	settings, err := session.read(ctx, session.path("settings"))
	if err != nil {
		return nil, err
	}
	if settings["llm_temperature_set"] == false {
		settings["llm_temperature"] = nil // the provider's default, not the number shown for it
	}
	d.agentID = recordID(about)
	local.ids = local.recorded[d.agentID]
	d.files[agentFile] = record{
		"name":        about["name"],
		"description": about["description"],
		"settings":    map[string]any(pick(settings, settingFields)),
	}
	for _, k := range kinds {
		if err := session.readKind(ctx, k, d, local); err != nil {
			return nil, err
		}
	}
	d.replaceIDs()
	return d, nil
}

func (session *session) read(ctx context.Context, path string) (r record, err error) {
	return r, session.api.call(ctx, http.MethodGet, path, nil, nil, &r)
}

// isOver reports whether a record is not part of a definition unless a folder has its file:
// a schedule after its only run, a task that is over or cancelled, or an archived workflow.
func isOver(k kind, r record) bool {
	switch k.name {
	case "schedules":
		return r["status"] == "completed"
	case "calendar":
		return r["next_run"] == nil || r["status"] == "cancelled"
	}
	return k.name == "workflows" && r["status"] == "archived"
}

// definitionFields returns the fields of a record that belong to a definition.
func (k kind) definitionFields(r record) record {
	out := pick(r, k.fields)
	switch {
	case k.name == "schedules" && r["type"] != "once":
		delete(out, "next_run")
	case k.name == "calendar" && out["recurrence_end"] == nil:
		delete(out, "recurrence_end")
	case k.name == "apis":
		if out["server"] = r["server_url"]; r.text("url") == "" { // the description was sent
			delete(out, "url")
		}
	}
	return out
}

func pick(r record, fields []string) record {
	out := record{}
	for _, field := range fields {
		if value, ok := r[field]; ok {
			out[field] = value
		}
	}
	return out
}

func firstOf(r record, fields ...string) any {
	for _, field := range fields {
		if r[field] != nil {
			return r[field]
		}
	}
	return ""
}

var notPathCharacters = regexp.MustCompile(`[^a-z0-9]+`)

// file returns the path that follows from the name of a record.
func (k kind) file(r record) string {
	slug := strings.Trim(notPathCharacters.ReplaceAllString(strings.ToLower(name(r)), "-"), "-")
	return k.name + "/" + cmp.Or(strings.Trim(slug[:min(len(slug), 60)], "-"), "unnamed") + ".json"
}

// freePath returns a path that no definition has: this one, or with a number appended.
func freePath(path string, taken ...*definition) string {
	stem, free := strings.TrimSuffix(path, ".json"), path
	for n := 2; slices.ContainsFunc(taken, func(d *definition) bool {
		return d.files[free] != nil
	}); n++ {
		free = stem + "-" + strconv.Itoa(n) + ".json"
	}
	return free
}

// reference is the prefix of a text that refers to a record of the definition
// by its file, such as "@workflows/welcome".
const reference = "@"

// replaceIDs replaces the ids of the definition's own records, which another agent
// does not have, with references.
func (d *definition) replaceIDs() {
	to := map[string]string{}
	for path, id := range d.ids {
		if kindOf(path).byName {
			continue
		}
		to[id] = reference + strings.TrimSuffix(path, ".json")
	}
	for path, r := range d.files {
		d.files[path] = record(mapTexts(map[string]any(r), to).(map[string]any))
	}
}

// mapTexts replaces every string in a value that is a key of to.
func mapTexts(value any, to map[string]string) any {
	return agent.MapStrings(value, func(text string) any {
		return cmp.Or(to[text], text)
	})
}

// references returns the id on the server for each reference.
func (d *definition) references() map[string]string {
	to := map[string]string{}
	for path, id := range d.ids {
		to[reference+strings.TrimSuffix(path, ".json")] = id
	}
	return to
}

// file returns a record as it is written to its file.
func (r record) file() string {
	var out bytes.Buffer
	_ = writeJSON(&out, map[string]any(r)) // it came from JSON
	return out.String()
}

func sameJSON(a, b any) bool {
	first, _ := json.Marshal(a)
	right, _ := json.Marshal(b)
	return bytes.Equal(first, right)
}
