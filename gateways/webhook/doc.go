// Package webhook delivers an agent's events to its webhook subscriptions,
// following Standard Webhooks (https://www.standardwebhooks.com).
//
// The rows of deliveries in the agent's file are the queue. Memory holds those
// that are due, and a timer waits for the earliest of the others.
package webhook
