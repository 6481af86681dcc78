package clock_test

import (
	"fmt"
	"time"

	"satchel/agent/clock"
)

func ExampleCron_Next() {
	cron, err := clock.ParseCron("30 2 * * *")
	if err != nil {
		panic(err)
	}
	zone, err := clock.Zone("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	// On 29 March 2026 clocks in Berlin go from 02:00 to 03:00.
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, zone)
	for range 3 {
		at = cron.Next(at, zone)
		fmt.Println(at.In(zone).Format(time.RFC3339))
	}
	// Output:
	// 2026-03-28T02:30:00+01:00
	// 2026-03-29T03:30:00+02:00
	// 2026-03-30T02:30:00+02:00
}
