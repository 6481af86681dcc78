// Package schedule starts what is due: the runs of schedules and the tasks of
// the calendar. The rows of the agents' files say what is due. The Scheduler
// keeps a due time for each agent, so it also serves agents whose files are
// closed.
//
// A run is a row before it starts. A run interrupted by a stop or a kill is
// started again with the same id, by which what it calls recognizes it.
package schedule
