// Package schedule starts what is due: the runs of schedules and the tasks of
// the calendar. The rows of the agents' files say what is due; one timer, set
// for the earliest of them, wakes the Scheduler, so ten thousand schedules cost
// no more than one, and an agent whose file is closed is woken too.
//
// A run is a row before it starts. One that is cut by a stop or a kill is
// started again with the same id, by which what it calls can tell.
package schedule
