package agent

import "time"

// TakeoverStatus is the state of a takeover.
type TakeoverStatus string

// The states of a takeover: nobody has come; a person is in control; the
// person said that it is done; the time ran out; it was called off, or its
// session ended.
const (
	TakeoverPending   TakeoverStatus = "pending"
	TakeoverActive    TakeoverStatus = "active"
	TakeoverCompleted TakeoverStatus = "completed"
	TakeoverExpired   TakeoverStatus = "expired"
	TakeoverCancelled TakeoverStatus = "cancelled"
)

// Open reports whether a person may still come or is there.
func (s TakeoverStatus) Open() bool { return s == TakeoverPending || s == TakeoverActive }

// Bounds of a takeover's time, in seconds.
const (
	DefaultTakeoverTimeout = 300
	MaxTakeoverTimeout     = 3600
)

// Takeover is a request that a person control a browser session for a while.
type Takeover struct {
	ID          string         `json:"takeover_id" example:"takeover-06f1q2s3t4v5a6b7c8d9"`
	SessionID   string         `json:"session_id" example:"session-06f1q2s3t4v5a6b7c8d9"`
	Status      TakeoverStatus `json:"status" enum:"pending,active,completed,expired,cancelled" doc:"pending: nobody has come yet; active: a person is in control; completed: the person is done; expired: the time ran out; cancelled: called off, or the session ended." example:"pending"`
	Reason      string         `json:"reason" example:"Please solve the captcha."`
	TakeoverURL string         `json:"takeover_url,omitempty" doc:"Where the person goes; given while the takeover is open." example:"http://127.0.0.1:8787/live/session-06f1q2s3t4v5a6b7c8d9?token=…"`
	Timeout     int            `json:"timeout" doc:"Seconds." example:"300"`
	CreatedAt   Time           `json:"created_at" format:"date-time"`
	ExpiresAt   Time           `json:"expires_at" format:"date-time" doc:"When the person's control ends by itself."`
	StartedAt   Time           `json:"started_at" format:"date-time" nullable:"true" doc:"When a person came; null before."`
	EndedAt     Time           `json:"ended_at" format:"date-time" nullable:"true" doc:"When it was over; null before."`
}

// TakeoverOptions are what a client asks of a takeover.
type TakeoverOptions struct {
	Reason  string `json:"reason,omitempty" maxLength:"1000" doc:"What the person is to do." example:"Please solve the captcha."`
	Timeout *int   `json:"timeout,omitempty" minimum:"1" maximum:"3600" doc:"Seconds, 300 when it is not given." example:"300"`
}

// Validate names every field that is off.
func (o *TakeoverOptions) Validate() error {
	var is Issues
	is.checkText("reason", o.Reason, 1000)
	is.Check(o.Timeout == nil || *o.Timeout >= 1 && *o.Timeout <= MaxTakeoverTimeout, "timeout", "must be 1 to 3600 seconds")
	return is.Err()
}

// Lasts is how long the takeover may take.
func (o *TakeoverOptions) Lasts() time.Duration {
	if o.Timeout == nil {
		return DefaultTakeoverTimeout * time.Second
	}
	return time.Duration(*o.Timeout) * time.Second
}
