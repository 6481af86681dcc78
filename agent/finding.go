package agent

// Finding is one result of the doctor command.
type Finding struct {
	OK      bool   // false if it needs the operator's attention
	Subject string // what was checked
	Message string
}
