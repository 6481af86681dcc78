// Package clock computes with wall clock times: cron expressions and time
// zones.
package clock
