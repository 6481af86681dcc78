package agent

// Overview is an agent at a glance.
type Overview struct {
	Checklist     []ChecklistItem `json:"checklist" doc:"First steps: knowledge, model, ask, channel, workflow."`
	Counts        map[string]int  `json:"counts" doc:"How many there are: sources, contacts, conversations, messages, workflows, executions, schedules, tasks, tools, mcp_servers, gateways, webhooks, logs."`
	Series        OverviewSeries  `json:"series"`
	Failures      []FailureGroup  `json:"failures" doc:"Executions of the last 24 hours that ended in an error, by workflow, node and error, the newest first; at most 50."`
	NextRuns      []NextRun       `json:"next_runs" doc:"The next five schedules."`
	SessionsOpen  int             `json:"sessions_open" doc:"Open browser sessions." example:"0"`
	SourcesAtWork int             `json:"sources_at_work" doc:"Sources that are read, crawled or embedded." example:"1"`
}

// ChecklistItem is a first step with an agent.
type ChecklistItem struct {
	ID   string `json:"id" enum:"knowledge,model,ask,channel,workflow" example:"knowledge"`
	Done bool   `json:"done"`
}

// OverviewSeries has a number for each day, the oldest first.
type OverviewSeries struct {
	Days       []string `json:"days" doc:"Dates in the agent's time zone; the last is today." example:"[\"2026-01-31\"]"`
	Executions struct {
		Complete   []int `json:"complete" example:"[12]"`
		Errored    []int `json:"errored" example:"[1]"`
		Terminated []int `json:"terminated" example:"[0]"`
	} `json:"executions" doc:"Executions that were started on the day, by how they ended."`
	Messages struct {
		In  []int `json:"in" example:"[3]"`
		Out []int `json:"out" example:"[3]"`
	} `json:"messages"`
	Duration struct {
		P50 []int `json:"p50" example:"[84]"`
		P95 []int `json:"p95" example:"[912]"`
	} `json:"duration" doc:"Milliseconds that complete executions took: the median and the 95th percentile of the day's newest 500; 0 without one."`
}

// FailureGroup is what failed in the same way.
type FailureGroup struct {
	WorkflowID   string `json:"workflow_id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	WorkflowName string `json:"workflow_name" example:"Welcome"`
	NodeID       string `json:"node_id" doc:"Empty when no node is to blame." example:"fetch"`
	NodeLabel    string `json:"node_label" example:"Fetch prices"`
	Error        string `json:"error" example:"the server answered with status 503"`
	Count        int    `json:"count" example:"3"`
	LastAt       Time   `json:"last_at" format:"date-time"`
	ExecutionID  string `json:"execution_id" doc:"The newest of them." example:"execution-06f1q2s3t4v5a6b7c8d9"`
}

// NextRun is when a schedule runs next.
type NextRun struct {
	ScheduleID string `json:"schedule_id" example:"schedule-06f1q2s3t4v5a6b7c8d9"`
	Name       string `json:"name" example:"Morning figures"`
	At         Time   `json:"at" format:"date-time"`
}
