package agent

// Overview is an agent at a glance.
type Overview struct {
	Checklist     []ChecklistItem `json:"checklist" doc:"Setup steps: knowledge, model, ask, channel, workflow."`
	Counts        map[string]int  `json:"counts" doc:"Number of records: sources, contacts, conversations, messages, workflows, executions, schedules, tasks, tools, mcp_servers, gateways, webhooks, logs."`
	Series        OverviewSeries  `json:"series"`
	Failures      []FailureGroup  `json:"failures" doc:"Executions of the last 24 hours that ended in an error, by workflow, node and error, newest first. At most 50."`
	NextRuns      []NextRun       `json:"next_runs" doc:"The next five schedules."`
	SessionsOpen  int             `json:"sessions_open" doc:"Open browser sessions." example:"0"`
	SourcesAtWork int             `json:"sources_at_work" doc:"Sources being read, crawled or embedded." example:"1"`
}

// ChecklistItem is a setup step of an agent.
type ChecklistItem struct {
	ID   string `json:"id" enum:"knowledge,model,ask,channel,workflow" example:"knowledge"`
	Done bool   `json:"done"`
}

// OverviewSeries has a number for each day, oldest first.
type OverviewSeries struct {
	Days       []string `json:"days" doc:"Dates in the agent's time zone; the last is today." example:"[\"2026-01-31\"]"`
	Executions struct {
		Complete   []int `json:"complete" example:"[12]"`
		Errored    []int `json:"errored" example:"[1]"`
		Terminated []int `json:"terminated" example:"[0]"`
	} `json:"executions" doc:"Executions started on the day, by final status."`
	Messages struct {
		In  []int `json:"in" example:"[3]"`
		Out []int `json:"out" example:"[3]"`
	} `json:"messages"`
	Duration struct {
		P50 []int `json:"p50" example:"[84]"`
		P95 []int `json:"p95" example:"[912]"`
	} `json:"duration" doc:"Duration of complete executions in milliseconds: median and 95th percentile of the newest 500 of the day; 0 if there are none."`
}

// FailureGroup is a group of executions that failed in the same way.
type FailureGroup struct {
	WorkflowID   string `json:"workflow_id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	WorkflowName string `json:"workflow_name" example:"Welcome"`
	NodeID       string `json:"node_id" doc:"Empty if no node caused it." example:"fetch"`
	NodeType     string `json:"node_type" doc:"Empty if the node is no longer in the workflow." example:"http-request"`
	NodeLabel    string `json:"node_label" doc:"The node's label, or what its type is called." example:"Fetch prices"`
	Error        string `json:"error" example:"the server answered with status 503"`
	Count        int    `json:"count" example:"3"`
	LastAt       Time   `json:"last_at" format:"date-time"`
	ExecutionID  string `json:"execution_id" doc:"The newest execution of the group." example:"execution-06f1q2s3t4v5a6b7c8d9"`
}

// NextRun is the next run of a schedule.
type NextRun struct {
	ScheduleID string `json:"schedule_id" example:"schedule-06f1q2s3t4v5a6b7c8d9"`
	Name       string `json:"name" example:"Morning figures"`
	At         Time   `json:"at" format:"date-time"`
}
