package agent

import (
	"encoding/json"
	"slices"
	"strings"
)

// Names of events. An event is a row in the outbox, written in the transaction
// that causes it.
const (
	EventMessageReceived     = "message.received"
	EventMessageSent         = "message.sent"
	EventConversationCreated = "conversation.created"
	EventConversationUpdated = "conversation.updated"
	EventContactCreated      = "contact.created"
	EventContactUpdated      = "contact.updated"
	EventContactDeleted      = "contact.deleted"
	EventWorkflowStarted     = "workflow.started"
	EventWorkflowComplete    = "workflow.complete"
	EventWorkflowErrored     = "workflow.errored"
	EventWorkflowTerminated  = "workflow.terminated"
	EventScheduleExecuted    = "schedule.executed"
	EventScheduleMissed      = "schedule.missed"
	EventCalendarDue         = "calendar.due"
	EventSourceReady         = "source.ready"
	EventSourceError         = "source.error"
	EventGatewayActive       = "gateway.active"
	EventGatewayError        = "gateway.error"
	EventGatewayEvent        = "gateway.event"
	EventTakeoverRequested   = "browser.takeover.requested"
	EventTakeoverCompleted   = "browser.takeover.completed"
	EventTakeoverExpired     = "browser.takeover.expired"
	EventRowCreated          = "row.created"
	EventRowUpdated          = "row.updated"
	EventRowDeleted          = "row.deleted"
	EventAgentUpdated        = "agent.updated"
	EventCredentialFailed    = "credential.failed"
)

// EventNames lists every name that an event can have.
var EventNames = []string{
	EventMessageReceived, EventMessageSent, EventConversationCreated, EventConversationUpdated,
	EventContactCreated, EventContactUpdated, EventContactDeleted,
	EventWorkflowStarted, EventWorkflowComplete, EventWorkflowErrored, EventWorkflowTerminated,
	EventScheduleExecuted, EventScheduleMissed, EventCalendarDue,
	EventSourceReady, EventSourceError, EventGatewayActive, EventGatewayError, EventGatewayEvent,
	EventTakeoverRequested, EventTakeoverCompleted, EventTakeoverExpired,
	EventRowCreated, EventRowUpdated, EventRowDeleted, EventAgentUpdated, EventCredentialFailed,
}

// MaxEventDepth ends chains of events that executions cause: an event of this
// depth starts no workflow.
const MaxEventDepth = 8

// Event is a row in the outbox. Seq increases within an agent; ID is the same
// for every delivery.
type Event struct {
	Seq       int64
	ID        string
	Type      string
	Data      json.RawMessage
	Depth     int    // number of executions that led to it
	Root      string // the first of them
	CreatedAt Time
}

// Chain returns the chain of the executions that led to the event.
func (e Event) Chain() Chain {
	return Chain{Root: e.Root, Depth: e.Depth}
}

// MatchEvent reports whether a pattern matches an event's name: the name
// itself, "*", or a prefix up to a dot followed by "*", such as "workflow.*".
func MatchEvent(pattern, name string) bool {
	if pattern == "*" || pattern == name {
		return true
	}
	kind, ok := strings.CutSuffix(pattern, "*")
	return ok && strings.HasSuffix(kind, ".") && strings.HasPrefix(name, kind)
}

// ValidEventPattern reports whether a pattern matches any existing event.
func ValidEventPattern(pattern string) bool {
	return slices.ContainsFunc(EventNames, func(name string) bool {
		return MatchEvent(pattern, name)
	})
}

// Envelope is an event as it is sent to other services. See
// https://www.standardwebhooks.com for type, timestamp and data.
type Envelope struct {
	Type      string          `json:"type" example:"message.received"`
	Timestamp Time            `json:"timestamp" format:"date-time"`
	Data      json.RawMessage `json:"data"`
	ID        string          `json:"id" example:"event-06f1q2s3t4v5a6b7c8d9"`
	AgentID   string          `json:"agent_id" example:"default"`
}

// Envelope returns e as it is sent to other services.
func (e Event) Envelope(agentID string) Envelope {
	return Envelope{
		Type:      e.Type,
		Timestamp: e.CreatedAt,
		Data:      e.Data,
		ID:        e.ID,
		AgentID:   agentID,
	}
}
