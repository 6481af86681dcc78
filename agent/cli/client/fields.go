package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"satchel/agent"
)

// wanted returns what a record becomes when the fields of a file are sent, by the rules by
// which the server applies them: so null, a default, a time in another zone, and a field that
// the file leaves out, are no differences.
func (k kind) wanted(before, given record, zone string) (record, error) {
	if k.change == nil {
		return merge(before, given), nil
	}
	after, err := k.change(before, given, zone)
	if err != nil {
		for field := range given { // which one?
			if _, inner := k.change(record{}, record{field: given[field]}, zone); inner != nil {
				return nil, fmt.Errorf("%s is not of the right type: %w", field, inner)
			}
		}
		return nil, err
	}
	return k.definitionFields(after), nil
}

func merge(before, given record) record {
	out := record{}
	maps.Copy(out, before)
	maps.Copy(out, given)
	return out
}

// changeBy returns a function that applies fields to a record as the server does: C is the
// body of its route.
func changeBy[T, C any](apply func(C, *T, string)) func(before, given record, zone string) (record, error) {
	return func(before, given record, zone string) (record, error) {
		var noun T
		var change C
		if err := convert(before, &noun); err != nil {
			return nil, err
		}
		if err := convert(given, &change); err != nil {
			return nil, err
		}
		apply(change, &noun, zone)
		var after record
		err := convert(noun, &after)
		return after, err
	}
}

func convert(from, into any) error {
	raw, err := json.Marshal(from)
	if err == nil {
		err = agent.DecodeJSON(raw, into)
	}
	return err
}

// changeTool is changeBy for tools. Configs are equal if they mean the same.
func changeTool(before, given record, zone string) (record, error) {
	after, err := changeBy(func(c agent.ToolChange, t *agent.Tool, _ string) { c.Apply(t) })(before, given, zone)
	if err != nil {
		return nil, err
	}
	var was, is agent.ToolConfig
	if err := convert(given["config"], &is); err != nil {
		return nil, err
	}
	if convert(before["config"], &was) == nil && sameJSON(was, is) {
		after["config"] = before["config"]
	}
	return after, nil
}

// changeSchedule is changeBy for schedules. One that has run its only time is not started
// again because its file still says that it is active.
func changeSchedule(before, given record, zone string) (record, error) {
	if given = maps.Clone(given); before["status"] == string(agent.ScheduleCompleted) {
		if given["status"] == string(agent.ScheduleActive) {
			delete(given, "status")
		}
		if isPast(given["next_run"]) {
			delete(given, "next_run")
		}
	}
	return changeBy(
		func(c agent.ScheduleChange, s *agent.Schedule, zone string) {
			c.Apply(s, zone)
		},
	)(before, given, zone)
}

func isPast(value any) bool {
	var at agent.Time
	return convert(value, &at) == nil && !at.IsZero() && at.Before(agent.Now().Time)
}

// changeTable is changeBy for tables. A column that was renamed before keeps its name.
func changeTable(before, given record, zone string) (record, error) {
	return changeBy(func(c agent.TableChange, t *agent.Table, _ string) {
		for i := range c.Columns.Value {
			if _, found := t.Column(c.Columns.Value[i].From); !found {
				c.Columns.Value[i].From = ""
			}
		}
		if changed, _, err := c.Apply(*t); err == nil || len(c.Columns.Value) > 0 {
			*t = changed
		}
	})(before, given, zone)
}

// changeGateway changes the fields of a channel that a definition has.
func changeGateway(before, given record, _ string) (record, error) {
	after := merge(before, given)
	if name, ok := after["type"].(string); ok {
		g, _ := agent.NewGateway(name) // telegram is chatbot_a
		after["type"] = string(g.Type)
	}
	return after, nil
}

// changeAPI changes the fields of an API. Without a server it has that of its description.
func changeAPI(before, given record, _ string) (record, error) {
	after := merge(before, given)
	if server, _ := after["server"].(string); strings.TrimSpace(server) == "" {
		after["server"] = before["server"]
	} else {
		after["server"] = strings.TrimRight(strings.TrimSpace(server), "/")
	}
	after["server_url"] = after["server"]
	return after, nil
}

// changeSettings is changeBy for an agent's settings.
func changeSettings(before, given record) (record, error) {
	if before == nil {
		if err := convert(agent.DefaultSettings(), &before); err != nil {
			return nil, err
		}
		before["llm_temperature"] = nil
	}
	before = merge(before, record{"llm_temperature_set": before["llm_temperature"] != nil})
	after, err := changeBy(func(c agent.SettingsChange, s *agent.Settings, _ string) { c.Apply(s) })(before, given, "")
	if err == nil && after["llm_temperature_set"] == false {
		after["llm_temperature"] = nil
	}
	return pick(after, settingFields), err
}

// withMasks returns given with the masks of before in place of secrets. Secrets cannot be
// compared: the server does not return them.
func withMasks(before, given any) any {
	switch typed := given.(type) {
	case string:
		if before == agent.Mask || before == agent.MaskURL(typed) {
			return before
		}
	case map[string]any:
		b, _ := before.(map[string]any)
		out := map[string]any{}
		for name, value := range typed {
			out[name] = withMasks(b[name], value)
		}
		return out
	case []any:
		b, _ := before.([]any)
		out := slices.Clone(typed)
		for i := range min(len(b), len(typed)) {
			out[i] = withMasks(b[i], typed[i])
		}
		return out
	}
	return given
}

// checkFields returns an error for a field that a definition does not have, which the server
// would ignore. A value that the agent has is no error, whatever it holds.
func checkFields(path string, known []string, given, before record) error {
	for _, field := range slices.Sorted(maps.Keys(given)) {
		switch {
		case slices.Contains(agent.Credentials, field):
			return fmt.Errorf("%s: %s is a credential, and a definition has none", path, field)
		case !slices.Contains(known, field):
			return unknownField(path, field, known)
		case sameJSON(given[field], before[field]):
			continue
		}
		if t := kindOf(path).inner[field]; t != nil {
			if err := checkInner(path, field, t, given[field]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkInner checks the fields of a value as they are in a Go type.
func checkInner(path, at string, typ reflect.Type, value any) error {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typed := value.(type) {
	case []any:
		for i, item := range typed {
			if typ.Kind() != reflect.Slice || typ.Elem().Kind() == reflect.Uint8 {
				return nil
			} else if err := checkInner(
				path,
				fmt.Sprintf("%s[%d]", at, i),
				typ.Elem(),
				item,
			); err != nil {
				return err
			}
		}
	case map[string]any:
		if typ.Kind() != reflect.Struct {
			return nil
		}
		types := fieldTypes(at, typ)
		for _, name := range slices.Sorted(maps.Keys(typed)) {
			field := at + "." + name
			if types[field] == nil {
				return unknownField(path, field, slices.Sorted(maps.Keys(types)))
			}
			if err := checkInner(path, field, types[field], typed[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldTypes returns the types of a struct's fields by their names in JSON, after the name of
// the struct.
func fieldTypes(of string, t reflect.Type) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			types[of+"."+name] = f.Type
		}
	}
	return types
}

// unknownField returns the error for a field, with the ones that are written like it.
func unknownField(path, field string, known []string) error {
	var names cobra.Command
	names.SuggestionsMinimumDistance = 2
	for _, name := range known {
		names.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	err := fmt.Errorf("%s: there is no field %s", path, clean(field))
	if similar := names.SuggestionsFor(field); len(similar) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(similar, " or "))
	}
	return fmt.Errorf("%w, but %s", err, strings.Join(known, ", "))
}

// same reports whether two records are equal. A field without a value is as one that is
// absent.
func same(a, b record) bool {
	return sameJSON(valued(a), valued(b))
}

func valued(r record) record {
	out := maps.Clone(r)
	maps.DeleteFunc(out, func(_ string, value any) bool {
		raw, _ := json.Marshal(value)
		return slices.Contains([]string{"null", `""`, "false", "[]", "{}"}, string(raw))
	})
	return out
}

// zoneOf returns the time zone of an agent in the first definition that has one.
func zoneOf(from ...*definition) string {
	for _, d := range from {
		settings, _ := d.files[agentFile]["settings"].(map[string]any)
		if zone, given := settings["timezone"]; given {
			text, _ := zone.(string)
			return cmp.Or(text, agent.DefaultSettings().Timezone)
		}
	}
	return agent.DefaultSettings().Timezone
}
