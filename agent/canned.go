package agent

import "strings"

// CannedReply is a saved text that people use in replies.
type CannedReply struct {
	ID        string `json:"id" example:"reply-06f1q2s3t4v5a6b7c8d9"`
	Shortcut  string `json:"shortcut" doc:"Typed after an exclamation mark to insert the text." example:"hours"`
	Text      string `json:"text" example:"We are open from 9 to 17."`
	CreatedAt Time   `json:"created_at" format:"date-time"`
	UpdatedAt Time   `json:"updated_at" format:"date-time"`
}

// CannedReplyChange is a partial update of a canned reply.
type CannedReplyChange struct {
	Shortcut Optional[string] `json:"shortcut,omitempty" doc:"At most 50 characters without spaces. Unique, ignoring case." example:"hours"`
	Text     Optional[string] `json:"text,omitempty" doc:"At most 5000 characters." example:"We are open from 9 to 17."`
}

// Apply writes the given fields into r.
func (ch CannedReplyChange) Apply(r *CannedReply) {
	ch.Shortcut.Into(&r.Shortcut)
	ch.Text.Into(&r.Text)
	r.Shortcut = strings.TrimPrefix(strings.TrimSpace(r.Shortcut), "!")
}

// Validate checks the fields that clients set.
func (r *CannedReply) Validate() error {
	var is Issues
	is.Check(r.Shortcut != "", "shortcut", "is required")
	is.Check(!strings.ContainsAny(r.Shortcut, " \t\r\n"), "shortcut", "must not contain spaces")
	is.checkText("shortcut", r.Shortcut, 50)
	is.Check(strings.TrimSpace(r.Text) != "", "text", "is required")
	is.checkText("text", r.Text, 5000)
	return is.Err()
}
