package agent

// MessageOrigin says what wrote a message that is sent automatically. It is part of
// the message's metadata.
type MessageOrigin struct {
	Author      string `json:"author"` // AuthorWorkflow or AuthorMCP
	WorkflowID  string `json:"workflow_id,omitempty"`
	ExecutionID string `json:"execution_id,omitempty"`
	NodeID      string `json:"node_id,omitempty"`
}

// The authors of automatic messages.
const (
	AuthorWorkflow = "workflow"
	AuthorMCP      = "mcp"
)
