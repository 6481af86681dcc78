// Package webhook delivers an agent's events to its webhook subscriptions, by
// Standard Webhooks (https://www.standardwebhooks.com).
//
// The rows of deliveries in the agent's file are the queue: memory holds those
// that are due, and a timer waits for the earliest of the rest.
package webhook
