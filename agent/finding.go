package agent

// Finding is one thing that doctor has to say about an installation.
type Finding struct {
	OK      bool   // false: needs the operator's attention
	Subject string // what was examined
	Message string
}
