// Package flow executes workflows.
//
// An execution uses the version of its workflow at the time it started. One
// goroutine drives it. A node runs once every incoming edge is resolved and at
// least one of them was taken; if none was taken, the node is skipped. Up to
// four nodes of an execution run at the same time.
//
// Durability: the rows are the source of truth. Pure nodes (trigger, if-else,
// switch, set, the bookkeeping of loops) run in memory. Their results are
// committed before any other node starts, before the execution is suspended,
// and when it ends; a flow of pure nodes is therefore a single commit, and its
// caller gets the answer after that commit. The result of any other node is
// committed before the nodes after it start. After a crash, an interrupted node
// runs again with the same idempotency key; a committed node never does. A node
// with at_most_once is journaled as running first, and fails if it was
// interrupted.
//
// Waits are rows. An execution that only has waits left uses no goroutine and
// no memory. A per-agent timer, an event, a person or another execution ends
// the wait in its own transaction and then resumes the execution: it is
// replayed from the start, with the journaled results in place of the nodes
// that already ran.
package flow
