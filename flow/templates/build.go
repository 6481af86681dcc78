package templates

import (
	"encoding/json"

	"satchel/agent"
)

// Built is a template with its values filled in: records to create, with new
// ids by which they refer to each other.
type Built struct {
	Gateways []Gateway
	Uses     []Use
	Source   *Source
	Workflow agent.Workflow
	Schedule *agent.ScheduleChange
}

// Gateway is a gateway to create.
type Gateway struct {
	Field, ID, Platform, Name string
	Config                    agent.GatewayConfigChange
}

// Use is an existing record: a gateway if it has a platform, otherwise a
// source.
type Use struct {
	Field, ID, Platform string
}

// Source is a source of type url to create.
type Source struct {
	ID, Name string
	Config   agent.URLConfig
}

// Build fills in the values of a template. The workflow is a draft, the
// schedule is paused, and the gateways are not verified.
func (t *Template) Build(given map[string]any) (*Built, error) {
	values, err := t.checkValues(given)
	if err != nil {
		return nil, err
	}
	built := &Built{Workflow: agent.Workflow{
		ID:          agent.NewID(agent.KindWorkflow),
		Name:        t.Name,
		Description: t.Summary,
		Status:      agent.WorkflowDraft,
		Settings:    agent.DefaultWorkflowSettings(),
		Edges:       t.Edges,
	}}
	values["workflow"] = built.Workflow.ID
	for i := range t.Values {
		if err := built.resolve(&t.Values[i], values); err != nil {
			return nil, err
		}
	}
	if t.source != nil {
		address, _ := fillText(t.source.URL, values).(string)
		built.Source = &Source{
			ID:   agent.NewID(agent.KindSource),
			Name: t.source.Name,
			Config: agent.URLConfig{
				URL:      address,
				Depth:    t.source.Depth,
				MaxPages: agent.MaxCrawlPages,
				Chunking: agent.DefaultChunking,
			},
		}
		values["source"] = built.Source.ID
	}
	if t.schedule != nil {
		built.Schedule = t.schedule.change(values)
	}
	built.Workflow.Nodes, err = fillNodes(t.Nodes, values)
	return built, err
}

// resolve replaces the value of a gateway or source with its id.
func (b *Built) resolve(v *Value, values map[string]any) error {
	if v.Type != typeGateway && v.Type != typeSource {
		return nil
	}
	switch value := values[v.Name].(type) {
	case string:
		b.Uses = append(b.Uses, Use{"values." + v.Name, value, v.Gateway})
	case map[string]any:
		g := Gateway{
			Field:    "values." + v.Name,
			ID:       agent.NewID(agent.KindGateway),
			Platform: v.Gateway,
			Name:     v.Title,
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &g.Config); err != nil {
			return agent.Invalid("values."+v.Name, "must be the config of a gateway")
		}
		values[v.Name] = g.ID
		b.Gateways = append(b.Gateways, g)
	}
	return nil
}

// change returns the schedule to create, which is paused.
func (s *schedule) change(values map[string]any) *agent.ScheduleChange {
	cron, _ := fillText(s.Cron, values).(string)
	id, _ := values[s.Calls].(string)
	return &agent.ScheduleChange{
		Name:           agent.Some(s.Name),
		Type:           agent.Some(agent.ScheduleCron),
		CronExpression: agent.Some(cron),
		CallbackType:   agent.Some(s.Calls),
		CallbackID:     agent.Some(id),
		Status:         agent.Some(agent.SchedulePaused),
	}
}
