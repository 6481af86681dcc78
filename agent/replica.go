package agent

import "time"

// Replica describes the replica of one agent that is kept elsewhere.
type Replica struct {
	ID, Name string
	Deleted  time.Time // zero: the agent was not deleted
	From, To time.Time // the times as of which it can be restored; zero: none
	Objects  int
	Problem  string // what is missing from it; empty if it can be restored up to To
}
