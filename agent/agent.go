package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Status is the operating state of an agent.
type Status string

// The statuses of an agent. While it is paused, triggers, schedules and
// automatic replies are off but the API works; while it is disabled, the agent
// itself can only be read, changed and deleted.
const (
	StatusActive   Status = "active"
	StatusPaused   Status = "paused"
	StatusDisabled Status = "disabled"
)

// Statuses lists every status of an agent.
var Statuses = []Status{StatusActive, StatusPaused, StatusDisabled}

// MaxNameLength and MaxDescriptionLength limit an agent's texts, in characters.
const (
	MaxNameLength        = 64
	MaxDescriptionLength = 500
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)

// Agent is a named automation unit that owns everything in its file.
type Agent struct {
	ID          string `json:"id" example:"agent-06f1q2s3t4v5a6b7c8d9"`
	Name        string `json:"name" doc:"Letters and digits with single hyphens between them. Unique, ignoring case." example:"support-bot"`
	Description string `json:"description" example:"Answers questions about our products"`
	Status      Status `json:"status" enum:"active,paused,disabled" example:"active"`
	OwnerEmail  string `json:"owner_email" doc:"Empty if the agent was created without an identity." example:"ada@example.com"`
	CreatedAt   Time   `json:"created_at" format:"date-time"`
	UpdatedAt   Time   `json:"updated_at" format:"date-time"`
}

// Validate checks the fields that clients set.
func (a *Agent) Validate() error {
	var is Issues
	switch {
	case a.Name == "":
		is.Add("name", "is required")
	case len(a.Name) > MaxNameLength:
		is.Add("name", fmt.Sprintf("must have at most %d characters", MaxNameLength))
	case !namePattern.MatchString(a.Name):
		is.Add("name", "must be letters and digits with single hyphens between them")
	}
	is.checkText("description", a.Description, MaxDescriptionLength)
	is.Check(slices.Contains(Statuses, a.Status), "status", "must be active, paused or disabled")
	return is.Err()
}

// NameKey returns the form in which agent names are compared.
func NameKey(name string) string { return strings.ToLower(name) }

// NumberedName returns an agent name with a number appended, such as name-2,
// cut to the maximum length.
func NumberedName(name string, n int) string {
	suffix := fmt.Sprintf("-%d", n)
	return strings.TrimRight(name[:min(len(name), MaxNameLength-len(suffix))], "-") + suffix
}

// NameExists returns the error for a name that another agent has.
func NameExists(name string) *Error {
	return Errorf(CodeAgentNameExists, "an agent named %q already exists", Clip(name, MaxNameLength)).
		With("field", "name").With("issue", "is taken")
}

// AgentChange is a partial update of an agent.
type AgentChange struct {
	Name        Optional[string] `json:"name,omitempty" example:"support-bot"`
	Description Optional[string] `json:"description,omitempty" doc:"At most 500 characters." example:"Answers questions about our products"`
	Status      Optional[Status] `json:"status,omitempty" enum:"active,paused,disabled" example:"active"`
}

// Apply writes the given fields into a.
func (c AgentChange) Apply(a *Agent) {
	c.Name.Into(&a.Name)
	c.Description.Into(&a.Description)
	c.Status.Into(&a.Status)
}

// Stats counts what an agent owns.
type Stats struct {
	Workflows int `json:"workflows"`
	Schedules int `json:"schedules"`
	Contacts  int `json:"contacts"`
	Messages  int `json:"messages"`
}

// Admin gives a person a role on one agent.
type Admin struct {
	ID        string `json:"id" example:"admin-06f1q2s3t4v5a6b7c8d9"`
	Email     string `json:"email" example:"ada@example.com"`
	Name      string `json:"name" doc:"The name from the identity proxy, once the person has signed in."`
	Role      Role   `json:"role" enum:"owner,admin,viewer" example:"admin"`
	CreatedAt Time   `json:"created_at" format:"date-time"`
}

// Validate checks the fields that clients set.
func (a *Admin) Validate() error {
	var is Issues
	is.checkEmail("email", a.Email, true)
	is.Check(a.Role.Valid(), "role", "must be owner, admin or viewer")
	return is.Err()
}

// NormalEmail returns the form in which email addresses are compared.
func NormalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

var emailPattern = regexp.MustCompile(`^[^\s@<>,;]+@[^\s@<>,;]+$`)

func (i *Issues) checkEmail(field, email string, required bool) {
	switch {
	case email == "" && required:
		i.Add(field, "is required")
	case email == "":
	case len(email) > 254:
		i.Add(field, "must have at most 254 characters")
	case !emailPattern.MatchString(email) || strings.ContainsRune(email, 0):
		i.Add(field, "must be an email address")
	}
}

// Fields returns the names of the fields that the change sets, for the audit
// log.
func (c AgentChange) Fields() []string {
	var names []string
	for name, given := range map[string]bool{
		"name":        c.Name.Given,
		"description": c.Description.Given,
		"status":      c.Status.Given,
	} {
		if given {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
