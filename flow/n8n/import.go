package n8n

import (
	"encoding/json"
	"fmt"
	"strings"

	"satchel/agent"
)

// Levels of a ReportLine.
const (
	Exact       = "exact"
	Approximate = "approximate"
	Unsupported = "unsupported"
)

// Limits of an import.
const (
	MaxDocument  = 4 << 20 // bytes
	MaxNodes     = 1000
	MaxWorkflows = 50
)

// Check returns the issues of the graph of a draft.
type Check func(nodes []agent.RawNode, edges []agent.RawEdge) []agent.Issue

// Import is the result of converting a document.
type Import struct {
	Workflows   []agent.Workflow
	Schedules   []DraftSchedule
	Tools       []DraftTool
	Credentials []NeededCredential
	Report      []ReportLine
}

// DraftSchedule is a schedule of one of the workflows.
type DraftSchedule struct {
	Name       string `json:"name" example:"Morning report"`
	Cron       string `json:"cron_expression" example:"0 9 * * *"`
	Timezone   string `json:"timezone,omitempty" doc:"IANA name, if the workflow has its own." example:"Europe/Berlin"`
	WorkflowID string `json:"workflow_id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
}

// DraftTool is a tool that a chat node of the workflows calls.
type DraftTool struct {
	ID          string          `json:"id" example:"tool-06f1q2s3t4v5a6b7c8d9"`
	Name        string          `json:"name" example:"weather"`
	Description string          `json:"description"`
	Type        string          `json:"type" enum:"api,function,mcp,workflow" example:"function"`
	Enabled     bool            `json:"enabled" doc:"Off: it lacks the workflow that it runs." example:"true"`
	Config      json.RawMessage `json:"config"`
}

// NeededCredential is a credential that the workflows name and that the user
// has to create.
type NeededCredential struct {
	Name   string   `json:"name" doc:"The name by which the nodes refer to it." example:"Google Sheets account"`
	Type   string   `json:"n8n_type" doc:"Its type in n8n." example:"googleSheetsOAuth2Api"`
	Preset string   `json:"preset" doc:"The preset to make it from; empty for none." example:"google-sheets"`
	Nodes  []string `json:"nodes" doc:"Names of the nodes that use it." example:"[\"Get rows\"]"`
}

// ReportLine reports how a node was imported. A node with several problems has
// a line for each.
type ReportLine struct {
	Workflow string `json:"workflow" doc:"Name of the workflow." example:"Leads"`
	Node     string `json:"node" doc:"Name of the node in n8n; empty for the workflow itself." example:"Get rows"`
	Type     string `json:"n8n_type" example:"n8n-nodes-base.googleSheets"`
	NodeID   string `json:"node_id" doc:"The node that it became; empty for none." example:"get_rows"`
	Level    string `json:"level" enum:"exact,approximate,unsupported" example:"approximate"`
	Code     string `json:"code" doc:"Stays the same, for programs; empty for exact." example:"ITEM_ORDER"`
	Message  string `json:"message" example:"Items pass one after another through all nodes of the loop, not node by node."`
}

// Read converts a document: a workflow as exported by n8n, one wrapped in
// {"workflow": …}, or a list of these. Its errors name the field.
//
// check returns the issues that prevent saving a draft. Nodes with such an issue are
// kept under their n8n type.
func Read(document json.RawMessage, check Check) (*Import, error) {
	if len(document) > MaxDocument {
		return nil, agent.Invalid("document", fmt.Sprintf("must have at most %d MB", MaxDocument>>20))
	}
	if err := agent.CheckNesting("document", document); err != nil {
		return nil, err
	}
	read, err := readDocument(document)
	if err != nil {
		return nil, err
	}
	out := &Import{
		Workflows:   []agent.Workflow{},
		Schedules:   []DraftSchedule{},
		Tools:       []DraftTool{},
		Credentials: []NeededCredential{},
		Report:      []ReportLine{},
	}
	ids := map[string]string{}
	for i := range read {
		read[i].own = agent.NewID(agent.KindWorkflow)
		if read[i].id != "" {
			ids[read[i].id] = read[i].own
		}
	}
	for i := range read {
		c := newConverter(&read[i], out, ids)
		c.convert()
		out.Workflows = append(out.Workflows, c.checkedDraft(check))
		out.Report = append(out.Report, c.report()...)
	}
	return out, out.check()
}

// check rejects a document whose graph exceeds the limits of a workflow.
func (im *Import) check() error {
	for _, w := range im.Workflows {
		if len(w.Nodes) > MaxNodes {
			return agent.Invalid(
				"document",
				fmt.Sprintf(
					"becomes the workflow %q with %d nodes; at most %d are allowed",
					agent.Clip(w.Name, 60),
					len(w.Nodes),
					MaxNodes,
				),
			)
		}
	}
	return nil
}

// addCredential notes the use of a credential and returns its name.
func (im *Import) addCredential(name, kind, preset, node string) string {
	name = credentialName(name)
	for i := range im.Credentials {
		if c := &im.Credentials[i]; c.Name == name && c.Type == kind {
			c.Nodes = append(c.Nodes, node)
			return name
		}
	}
	free := name
	for n := 2; im.hasCredential(free); n++ {
		free = fmt.Sprintf("%s %d", agent.Clip(name, 56), n)
	}
	im.Credentials = append(im.Credentials, NeededCredential{
		Name:   free,
		Type:   kind,
		Preset: preset,
		Nodes:  []string{node},
	})
	return free
}

func (im *Import) hasCredential(name string) bool {
	for _, c := range im.Credentials {
		if c.Name == name {
			return true
		}
	}
	return false
}

// credentialName replaces characters that the name of a credential may not contain.
func credentialName(name string) string {
	name = strings.Map(func(r rune) rune {
		if isLetterOrDigit(r) || strings.ContainsRune(" ._@()+-", r) {
			return r
		}
		return ' '
	}, name)
	name = strings.TrimLeftFunc(strings.Join(strings.Fields(name), " "), func(r rune) bool {
		return !isLetterOrDigit(r)
	})
	if runes := []rune(name); len(runes) > 60 {
		name = strings.TrimSpace(string(runes[:60]))
	}
	if name == "" || strings.HasPrefix(name, agent.KindCredential+"-") {
		return "credential"
	}
	return name
}
