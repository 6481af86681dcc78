package clock

import (
	"strings"
	"testing"
	"time"
)

func mustCron(t testing.TB, expression string) Cron {
	t.Helper()
	c, err := ParseCron(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return c
}

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// times formats local times of a zone with their offset.
func times(list []time.Time, zone *time.Location) string {
	var out []string
	for _, at := range list {
		out = append(out, at.In(zone).Format("2006-01-02 15:04 -07"))
	}
	return strings.Join(out, ", ")
}

func next(c Cron, after time.Time, zone *time.Location, n int) (list []time.Time) {
	for range n {
		after = c.Next(after, zone)
		list = append(list, after)
	}
	return list
}

func TestCronNext(t *testing.T) {
	for _, tc := range []struct{ name, expression, zone, after, want string }{
		{"every minute", "* * * * *", "UTC", "2026-01-01T00:00:30Z", "2026-01-01 00:01 +00, 2026-01-01 00:02 +00"},
		{"strictly after", "0 9 * * *", "UTC", "2026-01-01T09:00:00Z", "2026-01-02 09:00 +00, 2026-01-03 09:00 +00"},
		{"just before", "0 9 * * *", "UTC", "2026-01-01T08:59:59.999Z", "2026-01-01 09:00 +00, 2026-01-02 09:00 +00"},
		{
			"steps", "*/20 3-5/2 * * *", "UTC", "2026-01-01T03:15:00Z",
			"2026-01-01 03:20 +00, 2026-01-01 03:40 +00, 2026-01-01 05:00 +00",
		},
		{
			"a value with a step is a range",
			"50/5 23 * * *",
			"UTC",
			"2026-01-01T00:00:00Z",
			"2026-01-01 23:50 +00, 2026-01-01 23:55 +00, 2026-01-02 23:50 +00",
		},
		{"names", "0 0 1 JAN,jul *", "UTC", "2026-01-01T00:00:00Z", "2026-07-01 00:00 +00, 2027-01-01 00:00 +00"},
		{
			"working days", "0 9 * * MON-FRI", "UTC", "2026-01-02T09:00:00Z",
			"2026-01-05 09:00 +00, 2026-01-06 09:00 +00",
		},
		{"Sunday is 0", "0 0 * * 0", "UTC", "2026-01-01T00:00:00Z", "2026-01-04 00:00 +00"},
		{"Sunday is 7", "0 0 * * 7", "UTC", "2026-01-01T00:00:00Z", "2026-01-04 00:00 +00"},
		{
			"a weekend", "0 0 * * SAT-SUN", "UTC", "2026-01-01T00:00:00Z",
			"2026-01-03 00:00 +00, 2026-01-04 00:00 +00, 2026-01-10 00:00 +00",
		},
		{
			"both day fields mean either",
			"0 0 13 * FRI",
			"UTC",
			"2026-02-01T00:00:00Z",
			"2026-02-06 00:00 +00, 2026-02-13 00:00 +00, 2026-02-20 00:00 +00",
		},
		{
			"months without the day", "0 0 31 * *", "UTC", "2026-01-31T00:00:00Z",
			"2026-03-31 00:00 +00, 2026-05-31 00:00 +00",
		},
		{"a leap day", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29 00:00 +00"},
		{
			"in a zone", "0 9 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			"2026-03-29 09:00 +02, 2026-03-30 09:00 +02",
		},
		{
			"a skipped time is moved by the gap",
			"30 2 * * *",
			"Europe/Berlin",
			"2026-03-28T12:00:00Z",
			"2026-03-29 03:30 +02, 2026-03-30 02:30 +02",
		},
		{
			"minutes of the skipped hour coincide with those of the next",
			"*/30 * * * *",
			"Europe/Berlin",
			"2026-03-29T00:15:00Z",
			"2026-03-29 01:30 +01, 2026-03-29 03:00 +02, 2026-03-29 03:30 +02, 2026-03-29 04:00 +02",
		},
		{
			"skipped and moved past a later run",
			"30,0 2,3 * * *",
			"America/New_York",
			"2026-03-08T06:00:00Z",
			"2026-03-08 03:00 -04, 2026-03-08 03:30 -04, 2026-03-09 02:00 -04",
		},
		{
			"a repeated time counts once",
			"30 2 * * *",
			"Europe/Berlin",
			"2026-10-24T12:00:00Z",
			"2026-10-25 02:30 +02, 2026-10-26 02:30 +01",
		},
		{
			"from within the repeated hour",
			"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-26 02:30 +01",
		},
		{
			"the repeated hour once", "0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z",
			"2026-10-25 02:00 +02, 2026-10-25 03:00 +01, 2026-10-25 04:00 +01",
		},
		{
			"a gap of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			"2026-10-04 02:45 +11, 2026-10-05 02:15 +11",
		},
		{
			"a gap at midnight", "30 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z",
			"2026-09-06 01:30 -03, 2026-09-07 00:30 -03",
		},
		{
			"a skipped day", "0 10 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z",
			"2011-12-31 10:00 +14, 2012-12-30 10:00 +14",
		},
		{"before the first zone", "0 0 1 1 *", "Europe/Amsterdam", "1800-06-01T00:00:00Z", "1801-01-01 00:00 +00"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			zone := mustZone(t, tc.zone)
			after, err := time.Parse(time.RFC3339Nano, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			got := times(next(mustCron(t, tc.expression), after, zone, strings.Count(tc.want, ",")+1), zone)
			if got != tc.want {
				t.Errorf("%s after %s in %s:\n got %s\nwant %s", tc.expression, tc.after, tc.zone, got, tc.want)
			}
		})
	}
}

func TestCronRefused(t *testing.T) {
	for expression, issue := range map[string]string{
		"":                                     "has 0",
		"* * * *":                              "has 4",
		"0 0 9 * * *":                          "has 6",
		"@daily":                               "@daily",
		"@every 5m":                            "@daily",
		"60 * * * *":                           "minute",
		"* 24 * * *":                           "hour",
		"* * 0 * *":                            "day of the month",
		"* * 32 * *":                           "day of the month",
		"* * * 13 *":                           "month",
		"* * * * 8":                            "day of the week",
		"* * * * MONDAY":                       "day of the week",
		"* * * FOO *":                          "month",
		"5-1 * * * *":                          "range",
		"*/0 * * * *":                          "step",
		"*/60 * * * *":                         "step",
		"*/-1 * * * *":                         "step",
		"1- * * * *":                           "minute",
		"-1 * * * *":                           "minute",
		"1,,2 * * * *":                         "minute",
		"+5 * * * *":                           "minute",
		"0x5 * * * *":                          "minute",
		"? * * * *":                            "minute",
		"* * L * *":                            "day of the month",
		"* * 15W * *":                          "day of the month",
		"* * * * 5#3":                          "day of the week",
		"H * * * *":                            "minute",
		"TZ=UTC * * * * *":                     "has 6",
		"1//2 * * * *":                         "step",
		"0 0 30 2 *":                           "no date",
		"0 0 31 4,6,9,11 *":                    "no date",
		"* * * * *" + strings.Repeat(" ", 200): "200 bytes",
		"٥ * * * *":                            "minute",
	} {
		_, err := ParseCron(expression)
		if err == nil || !strings.Contains(err.Error(), issue) {
			t.Errorf("%q: %v, want an error about %q", expression, err, issue)
		}
	}
}

func TestCronNewest(t *testing.T) {
	utc := time.UTC
	from, to := time.Date(2024, 1, 1, 0, 0, 0, 0, utc), time.Date(2026, 1, 1, 0, 0, 0, 0, utc)
	for _, tc := range []struct {
		expression string
		from       time.Time
		limit      int
		want       int
		more       bool
		first      string
	}{
		{"* * * * *", to.Add(-time.Hour), 100, 61, false, "2025-12-31 23:00 +00"},
		{"* * * * *", from, 1000, 1000, true, "2025-12-31 07:21 +00"},
		{"0 0 1 * *", from, 1000, 25, false, "2024-01-01 00:00 +00"},
		{"0 0 1 * *", from, 3, 3, true, "2025-11-01 00:00 +00"},
		{"0 0 29 2 *", from, 10, 1, false, "2024-02-29 00:00 +00"},
		{"0 12 * * *", to, 10, 0, false, ""},
	} {
		runs, more := mustCron(t, tc.expression).Newest(tc.from, to, utc, tc.limit)
		first := ""
		if len(runs) > 0 {
			first = times(runs[:1], utc)
		}
		if len(runs) != tc.want || more != tc.more || first != tc.first {
			t.Errorf(
				"%s: %d runs, more %v, first %s; want %d, %v, %s",
				tc.expression,
				len(runs),
				more, first, tc.want, tc.more, tc.first,
			)
		}
		for i := 1; i < len(runs); i++ {
			if !runs[i].After(runs[i-1]) {
				t.Fatalf("%s: %v does not come after %v", tc.expression, runs[i], runs[i-1])
			}
		}
	}
}

// TestNextIsTheFirst checks every minute around clock changes: the expression must not
// match a minute that Next skips.
func TestNextIsTheFirst(t *testing.T) {
	for _, tc := range []struct{ zone, from string }{
		{"Europe/Berlin", "2026-03-28T20:00:00Z"}, {"Europe/Berlin", "2026-10-24T20:00:00Z"},
		{"Australia/Lord_Howe", "2026-10-03T06:00:00Z"}, {"Australia/Lord_Howe", "2026-04-04T06:00:00Z"},
		{"Africa/Cairo", "2026-04-23T12:00:00Z"}, {"America/St_Johns", "2006-10-28T20:00:00Z"},
	} {
		zone := mustZone(t, tc.zone)
		from, err := time.Parse(time.RFC3339, tc.from)
		if err != nil {
			t.Fatal(err)
		}
		for _, expression := range []string{
			"*/7 * * * *", "13 1-4 * * *", "30 2 * * *", "0 0,1,2,3 * * *", "59 23 * * *", "* 2 * * *",
		} {
			c := mustCron(t, expression)
			named := map[time.Time]bool{} // found minute by minute, wall clock times in order
			for wall := from.Add(-24 * time.Hour); wall.Before(from.Add(72 * time.Hour)); wall = wall.Add(time.Minute) {
				if w, ok := c.nextWallTime(wall.Add(-time.Minute)); ok && w.Equal(wall) {
					at, _, _ := ToInstant(wall, zone)
					named[at.UTC()] = true
				}
			}
			for at := from; at.Before(from.Add(24 * time.Hour)); at = at.Add(time.Minute) {
				want := at.Add(time.Minute)
				for !named[want.UTC()] {
					want = want.Add(time.Minute)
				}
				if got := c.Next(at, zone); !got.Equal(want) {
					t.Fatalf(
						"%s in %s after %s: %s, want %s",
						expression,
						tc.zone,
						at.In(zone),
						got.In(zone),
						want.In(zone),
					)
				}
			}
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, seed := range []string{
		"* * * * *",
		"*/5 0-6/2 1,15 jan-mar mon-fri",
		"0 0 29 2 *", "@daily", "0 0 30 2 *", "1-5-7 * * * *", "5/7,*/3 * * * 7",
	} {
		f.Add(seed, int64(1_774_746_000), "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, expression string, unix int64, name string) {
		c, err := ParseCron(expression)
		if err != nil {
			return
		}
		zone, err := Zone(name)
		if err != nil {
			zone = time.UTC
		}
		after := time.Unix(unix%7_000_000_000, 0)
		first := c.Next(after, zone)
		if !first.After(after) || first.Sub(after) > cronYears*366*24*time.Hour {
			t.Fatalf("%q after %s: %s", expression, after, first)
		}
		if second := c.Next(first.Add(-time.Millisecond), zone); !second.Equal(first) {
			t.Fatalf("%q: %s, and from just before that %s", expression, first, second)
		}
	})
}

func BenchmarkCronNext(b *testing.B) {
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		for name, expression := range map[string]string{
			"minute":   "* * * * *",
			"weekdays": "0 9 * * MON-FRI",
			"leap":     "0 0 29 2 *",
		} {
			b.Run(zone+"/"+name, func(b *testing.B) {
				c, z := mustCron(b, expression), mustZone(b, zone)
				at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
				for b.Loop() {
					at = c.Next(at, z)
					if at.Year() > 2200 {
						at = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
					}
				}
			})
		}
	}
}
