package agent

// The kinds of items that wait for a person.
const (
	WaitingApproval = "approval"
	WaitingTakeover = "takeover"
	WaitingHandover = "handover"
)

// Waiting is an item of an agent that waits for a person. Fields that do not
// apply to its kind are omitted.
type Waiting struct {
	Kind            string `json:"kind" enum:"approval,takeover,handover" doc:"approval: a workflow asks for a decision; takeover: a browser session needs a person; handover: a contact wrote in a muted conversation or asked for a person." example:"approval"`
	Title           string `json:"title" doc:"With its templates filled." example:"Refund 20 euros?"`
	Message         string `json:"message" doc:"With its templates filled in; for a handover, the contact's message." example:"Order 4711 came broken."`
	AskedAt         Time   `json:"asked_at" format:"date-time"`
	ExpiresAt       Time   `json:"expires_at" format:"date-time" nullable:"true" doc:"When it times out; null if it does not."`
	ExecutionID     string `json:"execution_id,omitempty" doc:"The waiting execution; node_id and path locate its node." example:"execution-06f1q2s3t4v5a6b7c8d9"`
	NodeID          string `json:"node_id,omitempty" example:"approve"`
	Path            string `json:"path,omitempty" doc:"The iterations of the loops around the node." example:"2"`
	WorkflowID      string `json:"workflow_id,omitempty" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	WorkflowName    string `json:"workflow_name,omitempty" example:"Refund"`
	SessionID       string `json:"session_id,omitempty" example:"session-06f1q2s3t4v5a6b7c8d9"`
	TakeoverID      string `json:"takeover_id,omitempty" example:"takeover-06f1q2s3t4v5a6b7c8d9"`
	ConversationID  string `json:"conversation_id,omitempty" example:"conversation-06f1q2s3t4v5a6b7c8d9"`
	CommentRequired bool   `json:"comment_required,omitempty" doc:"Approving it requires a comment, which is the answer."`
	ContactName     string `json:"contact_name,omitempty" example:"Ada Lovelace"`
}
