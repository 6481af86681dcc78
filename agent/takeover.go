package agent

import "time"

// TakeoverStatus is the state of a takeover.
type TakeoverStatus string

// The states of a takeover: no one has come yet; a person is in control; the
// person is done; the time ran out; it was cancelled or its session ended.
const (
	TakeoverPending   TakeoverStatus = "pending"
	TakeoverActive    TakeoverStatus = "active"
	TakeoverCompleted TakeoverStatus = "completed"
	TakeoverExpired   TakeoverStatus = "expired"
	TakeoverCancelled TakeoverStatus = "cancelled"
)

// Open reports whether the takeover is pending or active.
func (s TakeoverStatus) Open() bool { return s == TakeoverPending || s == TakeoverActive }

// Limits of a takeover's duration, in seconds.
const (
	DefaultTakeoverTimeout = 300
	MaxTakeoverTimeout     = 3600
)

// Takeover is a request for a person to control a browser session.
type Takeover struct {
	ID          string         `json:"takeover_id" example:"takeover-06f1q2s3t4v5a6b7c8d9"`
	SessionID   string         `json:"session_id" example:"session-06f1q2s3t4v5a6b7c8d9"`
	Status      TakeoverStatus `json:"status" enum:"pending,active,completed,expired,cancelled" doc:"pending: waiting for a person; active: a person is in control; completed: the person is done; expired: the time ran out; cancelled: it was cancelled or the session ended." example:"pending"`
	Reason      string         `json:"reason" example:"Please solve the captcha."`
	TakeoverURL string         `json:"takeover_url,omitempty" doc:"The page for the person, while the takeover is open." example:"http://127.0.0.1:8787/live/session-06f1q2s3t4v5a6b7c8d9?token=…"`
	Timeout     int            `json:"timeout" doc:"Seconds." example:"300"`
	CreatedAt   Time           `json:"created_at" format:"date-time"`
	ExpiresAt   Time           `json:"expires_at" format:"date-time" doc:"When the takeover expires."`
	StartedAt   Time           `json:"started_at" format:"date-time" nullable:"true" doc:"When a person took control; null before."`
	EndedAt     Time           `json:"ended_at" format:"date-time" nullable:"true" doc:"When it ended; null before."`
	Note        string         `json:"note" doc:"The person's note when they gave back control." example:"Signed in as Ada."`
}

// TakeoverOptions are a client's options for a takeover.
type TakeoverOptions struct {
	Reason  string `json:"reason,omitempty" maxLength:"1000" doc:"What the person should do." example:"Please solve the captcha."`
	Timeout *int   `json:"timeout,omitempty" minimum:"1" maximum:"3600" doc:"Time limit in seconds. Default: 300." example:"300"`
}

// Validate returns an error that names every invalid field.
func (o *TakeoverOptions) Validate() error {
	var is Issues
	is.checkText("reason", o.Reason, 1000)
	is.Check(
		o.Timeout == nil || *o.Timeout >= 1 && *o.Timeout <= MaxTakeoverTimeout,
		"timeout",
		"must be 1 to 3600 seconds",
	)
	return is.Err()
}

// TakeoverEnd is a person's request to hand back control.
type TakeoverEnd struct {
	Note string `json:"note,omitempty" maxLength:"2000" doc:"A note for the agent; for an approval, its comment." example:"Signed in as Ada."`
}

// Validate returns an error that names every invalid field.
func (e *TakeoverEnd) Validate() error {
	var is Issues
	is.checkText("note", e.Note, 2000)
	return is.Err()
}

// Duration returns the time limit of the takeover.
func (o *TakeoverOptions) Duration() time.Duration {
	if o.Timeout == nil {
		return DefaultTakeoverTimeout * time.Second
	}
	return time.Duration(*o.Timeout) * time.Second
}
