// Package clock handles wall clock times: cron expressions and time zones.
package clock
