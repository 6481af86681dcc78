// Package schedule starts what is due: the runs of schedules and the tasks of
// the calendar. The rows of the agents' files say what is due; the Scheduler
// keeps a due time for each agent, so an agent whose file is closed is met as
// well as any other.
//
// A run is a row before it starts. One that is interrupted by a stop or a kill
// is started again with the same id, by which what it calls recognizes it.
package schedule
