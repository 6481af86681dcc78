// Package schedule starts runs of schedules and tasks of the calendar when they
// are due. The rows of the agents' files determine what is due. The Scheduler
// keeps a due time for each agent, so it also serves agents whose files are
// closed.
//
// A run is a row before it starts. A run interrupted by a stop or a kill is
// started again with the same id, by which the callee recognizes it.
package schedule
