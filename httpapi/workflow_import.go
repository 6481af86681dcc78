package httpapi

import (
	"encoding/json"

	"satchel/agent"
	"satchel/flow/n8n"
	"satchel/httpapi/rest"
	"satchel/store"
)

// formatN8N is the one format of workflows that can be imported.
const formatN8N = "n8n"

type importWorkflowsIn struct {
	Body struct {
		Format   string          `json:"format" required:"true" enum:"n8n" example:"n8n"`
		Document json.RawMessage `json:"document" required:"true" doc:"A workflow as n8n exports it, or a list of them. At most 4 MB and 1000 nodes." example:"{\"name\":\"Leads\",\"nodes\":[{\"name\":\"Start\",\"type\":\"n8n-nodes-base.manualTrigger\",\"typeVersion\":1,\"position\":[0,0],\"parameters\":{}}],\"connections\":{}}"`
		DryRun   bool            `json:"dry_run,omitempty" doc:"Return what would be created, and create nothing." example:"true"`
	}
}

// importedWorkflows are the workflows imported from a document.
type importedWorkflows struct {
	Workflows   []agent.Workflow       `json:"workflows" doc:"Drafts. Unsupported nodes keep their n8n type; nodes that are not exact have the original in data.imported."`
	Schedules   []n8n.DraftSchedule    `json:"schedules" doc:"Schedules of the workflows; they are created paused."`
	Tools       []n8n.DraftTool        `json:"tools" doc:"Tools that chat nodes of the workflows call."`
	Credentials []n8n.NeededCredential `json:"credentials" doc:"Credentials to create, by the names that nodes and tools refer to. Secrets are never imported."`
	Report      []n8n.ReportLine       `json:"report" doc:"The outcome for every node."`
}

// importWorkflows creates everything that a document describes, or nothing.
func (s *Server) importWorkflows(call *rest.Call, in *importWorkflowsIn) (importedWorkflows, error) {
	if in.Body.Format != formatN8N {
		return importedWorkflows{}, agent.Invalid("format", "must be n8n")
	}
	read, err := n8n.Read(in.Body.Document, s.draftIssues)
	if err != nil {
		return importedWorkflows{}, err
	}
	for _, w := range read.Workflows {
		if err := s.flow.Check(w); err != nil {
			return importedWorkflows{}, moveFields(err, "", "document.")
		}
	}
	out := importedWorkflows{
		Workflows:   read.Workflows,
		Schedules:   read.Schedules,
		Tools:       read.Tools,
		Credentials: read.Credentials,
		Report:      read.Report,
	}
	if in.Body.DryRun {
		for i := range out.Workflows {
			w := &out.Workflows[i]
			w.Version, w.CreatedAt, w.UpdatedAt = 1, agent.Now(), agent.Now()
		}
		return out, nil
	}
	made, _, err := call.DB.CreateImported(call, s.imported(read))
	if err == nil {
		out.Workflows = made.Workflows
		for i, t := range made.Tools {
			out.Tools[i].Name = t.Name
		}
	}
	return out, err
}

// draftIssues returns the issues that prevent saving a draft.
func (s *Server) draftIssues(nodes []agent.RawNode, edges []agent.RawEdge) (all []agent.Issue) {
	for _, is := range s.flow.Validate(nodes, edges, agent.WorkflowDraft) {
		if is.Severity == "error" {
			all = append(all, is.Issue)
		}
	}
	return all
}

// imported returns the records to create.
func (s *Server) imported(read *n8n.Import) store.WorkflowImport {
	all := store.WorkflowImport{Workflows: read.Workflows, CheckSchedule: s.options.Scheduler.Check}
	for _, t := range read.Tools {
		all.Tools = append(all.Tools, agent.Tool{
			ID:          t.ID,
			Name:        t.Name,
			Description: t.Description,
			Type:        t.Type,
			Enabled:     t.Enabled,
			Config:      t.Config,
		})
	}
	for _, p := range read.Schedules {
		change := agent.ScheduleChange{
			Name:           agent.Some(p.Name),
			Type:           agent.Some(agent.ScheduleCron),
			CronExpression: agent.Some(p.Cron),
			CallbackType:   agent.Some(agent.CallbackWorkflow),
			CallbackID:     agent.Some(p.WorkflowID),
			Status:         agent.Some(agent.SchedulePaused),
		}
		if p.Timezone != "" {
			change.Timezone = agent.Some(p.Timezone)
		}
		all.Schedules = append(all.Schedules, change)
	}
	return all
}
