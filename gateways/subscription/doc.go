// Package subscription delivers an agent's events to its webhook subscriptions,
// following Standard Webhooks (https://www.standardwebhooks.com).
//
// The rows of deliveries in the agent's file are the queue. Those that are due are
// in memory, and a timer waits for the earliest of the others.
package subscription
