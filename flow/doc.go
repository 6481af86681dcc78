// Package flow executes workflows.
//
// An execution goes by the version that its workflow had when it started. One
// goroutine drives it: a node runs when each edge that leads to it is
// resolved and one of them was taken; where none was taken the node is
// skipped. Up to four nodes of an execution run at a time.
//
// What is durable when. The rows are the truth. Nodes without any effect
// outside (trigger, if-else, switch, set, the bookkeeping of loops) run in
// memory, and what became of them is committed before any other node begins,
// before the execution waits, and at its end; so a flow of such nodes alone is
// one commit, and its caller hears of it behind that commit. What became of
// any other node is committed before the nodes behind it begin. At a kill, a
// node that was cut runs again with the same idempotency key; one that is
// committed never does. A node with at_most_once is committed as begun first,
// and ends as an error when it was cut.
//
// Waits are rows. An execution in which nothing but waits is left has no
// goroutine and no memory; a timer for each agent, an event, a person or
// another execution ends the wait in a transaction of its own and then takes
// the execution up again: it is driven from its beginning with the results of
// its journal in the place of what ran before.
package flow
