package agent

import "encoding/json"

// Level is the severity of a log entry.
type Level string

// The levels of the log.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// SourceAudit marks log entries about a change made by a person or key.
const SourceAudit = "audit"

// Log is an entry of an agent's own log.
type Log struct {
	ID        string          `json:"id" example:"log-06f1q2s3t4v5a6b7c8d9"`
	Level     Level           `json:"level" enum:"debug,info,warn,error" example:"info"`
	Source    string          `json:"source" doc:"The component that wrote it; audit for changes made by people and keys." example:"audit"`
	Message   string          `json:"message" example:"contact created"`
	Data      json.RawMessage `json:"data"`
	CreatedAt Time            `json:"created_at" format:"date-time"`
}
