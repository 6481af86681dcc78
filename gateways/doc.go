// Package gateways speaks with the world outside on an agent's behalf: it
// delivers events to webhook subscriptions and messages to the platforms that
// the agent's gateways are configured for, and takes in what those send.
//
// Deliveries to subscriptions follow Standard Webhooks
// (https://www.standardwebhooks.com). Their rows in the agent's file are the
// queue: memory holds a handful of what is due, and a timer waits for the
// earliest of the rest.
package gateways
