// Package clock computes with wall clocks: cron expressions, time zones and
// what their clocks show.
package clock
