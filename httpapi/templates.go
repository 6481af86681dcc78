package httpapi

import (
	"encoding/json"
	"errors"
	"strings"

	"satchel/agent"
	"satchel/flow/templates"
	"satchel/httpapi/rest"
	"satchel/store"
)

type templatesOut struct {
	Templates []templates.Template `json:"templates"`
}

func (s *Server) listTemplates(*rest.Call, *struct{}) (templatesOut, error) {
	return templatesOut{templates.All()}, nil
}

type useTemplateIn struct {
	ID   string `path:"templateId" doc:"Id of the template." example:"telegram-handbook"`
	Body struct {
		Values map[string]any `json:"values,omitempty" doc:"Values by name." example:"{\"recipient\":\"ada@example.com\"}"`
	}
}

// fromTemplate is the records created from a template.
type fromTemplate struct {
	Workflow  agent.Workflow   `json:"workflow" doc:"The workflow, a draft."`
	Gateways  []agent.Gateway  `json:"gateways" doc:"Created gateways, not yet verified."`
	Sources   []agent.Source   `json:"sources" doc:"Created sources, which are being read."`
	Schedules []agent.Schedule `json:"schedules" doc:"Created schedules, which are paused."`
}

func templateLocation(c *rest.Call, out any) string {
	return workflowLocation(c, out.(fromTemplate).Workflow)
}

// useTemplate creates all records of a template, or none.
func (s *Server) useTemplate(call *rest.Call, in *useTemplateIn) (fromTemplate, error) {
	template, ok := templates.Find(in.ID)
	if !ok {
		return fromTemplate{}, agent.NotFound("template", in.ID)
	}
	built, err := template.Build(in.Body.Values)
	if err != nil {
		return fromTemplate{}, err
	}
	bundle, err := s.bundle(built)
	if err != nil {
		return fromTemplate{}, err
	}
	made, err := call.DB.CreateBundle(call, bundle)
	if err != nil {
		return fromTemplate{}, err
	}
	out := fromTemplate{
		Workflow:  made.Workflow,
		Gateways:  append([]agent.Gateway{}, made.Gateways...),
		Sources:   []agent.Source{},
		Schedules: []agent.Schedule{},
	}
	if made.Source != nil {
		out.Sources = append(out.Sources, *made.Source)
	}
	if made.Schedule != nil {
		out.Schedules = append(out.Schedules, *made.Schedule)
	}
	return out, nil
}

// bundle validates the records of a template as their own routes do.
func (s *Server) bundle(built *templates.Built) (store.Bundle, error) {
	b := store.Bundle{
		Workflow:      built.Workflow,
		Schedule:      built.Schedule,
		CheckSchedule: s.options.Scheduler.Check,
	}
	for _, g := range built.Gateways {
		made, err := s.options.Gateways.Prepare(g.Platform, agent.GatewayChange{
			Name:   agent.Some(g.Name),
			Config: agent.Some(g.Config),
		})
		if err != nil {
			return b, moveFields(err, "config.", g.Field+".")
		}
		made.Gateway.ID = g.ID
		b.Gateways = append(b.Gateways, made)
	}
	for _, use := range built.Uses {
		b.Uses = append(b.Uses, store.BundleUse{
			Field:   use.Field,
			ID:      use.ID,
			Gateway: platformType(use.Platform),
		})
	}
	if built.Source != nil {
		plan := built.Source.Config.Plan()
		if err := s.options.Crawler.Check(&plan); err != nil {
			return b, err
		}
		raw, err := json.Marshal(built.Source.Config)
		if err != nil {
			return b, err
		}
		b.Source = &agent.Source{
			ID:     built.Source.ID,
			Type:   agent.SourceURL,
			Name:   built.Source.Name,
			Status: agent.SourceCrawling,
			Config: raw,
		}
	}
	return b, s.flow.Check(b.Workflow)
}

// platformType returns the gateway type of a platform.
func platformType(platform string) agent.GatewayType {
	if platform == "" {
		return ""
	}
	g, _ := agent.NewGateway(platform)
	return g.Type
}

// moveFields replaces the prefix of the fields named by a validation error.
func moveFields(err error, from, to string) error {
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != agent.CodeValidation {
		return err
	}
	move := func(field string) string { return to + strings.TrimPrefix(field, from) }
	if field, ok := e.Details["field"].(string); ok {
		e.Message = move(field) + strings.TrimPrefix(e.Message, field)
		e.Details["field"] = move(field)
	}
	issues, _ := e.Details["errors"].([]agent.Issue)
	for i := range issues {
		issues[i].Field = move(issues[i].Field)
	}
	return e
}
