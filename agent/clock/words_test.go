package clock

import "testing"

func TestWords(t *testing.T) {
	for expression, want := range map[string]string{
		"* * * * *":             "Every minute",
		"*/15 * * * *":          "Every 15 minutes",
		"0 * * * *":             "Every hour",
		"30 * * * *":            "Every hour, 30 minutes past",
		"1 */2 * * *":           "Every 2 hours, 1 minute past",
		"0 */2 * * *":           "Every 2 hours",
		"0 */6 * * *":           "Every day at 00:00, 06:00, 12:00 and 18:00",
		"0 9 * * *":             "Every day at 09:00",
		"30 9,17 * * *":         "Every day at 09:30 and 17:30",
		"59 23 * * *":           "Every day at 23:59",
		"0 9 * * MON-FRI":       "Monday to Friday at 09:00",
		"0 9 * * 1":             "Every Monday at 09:00",
		"0 9 * * 0,6":           "Every Saturday and Sunday at 09:00",
		"0 9 * * FRI-SUN":       "Friday to Sunday at 09:00",
		"0 9 * * MON,WED,FRI":   "Every Monday, Wednesday and Friday at 09:00",
		"0 9 * * 0-6":           "Every day at 09:00",
		"0 9 1 * *":             "On the 1st of the month at 09:00",
		"0 9 1,15 * *":          "On the 1st and 15th of the month at 09:00",
		"0 9 1-7 * *":           "On the 1st to 7th of the month at 09:00",
		"0 9 2,3,11-13,22 * *":  "On the 2nd, 3rd, 11th to 13th and 22nd of the month at 09:00",
		"0 9 1 1,7 *":           "On the 1st of January and July at 09:00",
		"0 9 * 6-8 *":           "Every day in June to August at 09:00",
		"0 9 * DEC MON":         "Every Monday in December at 09:00",
		"0 9 13 * FRI":          "On the 13th of the month and every Friday at 09:00",
		"*/30 8-17 * * MON-FRI": "Every 30 minutes from 08:00 to 17:30, Monday to Friday",
		"0 8-18 * * *":          "Every hour from 08:00 to 18:00",
		"5 8-18 * * SAT":        "Every hour from 08:05 to 18:05, every Saturday",
		"*/10 8,12,20 * * *":    "Every 10 minutes of hours 8, 12 and 20",
		"* 1 29 2 *":            "Every minute from 01:00 to 01:59, on the 29th of February",
		"7,9,20-30 * * * *":     "Every hour at minutes 7, 9 and 20 to 30",
		"1,2,3 1,3,5 * * *":     "At minutes 1 to 3 of hours 1, 3 and 5",
		"*/45 * * * *":          "Every hour at minutes 0 and 45",
		"10-50/10 9-10 * * SUN": "At minutes 10, 20, 30, 40 and 50 of hours 9 and 10, every Sunday",
		"0 0 1-31 * *":          "On the 1st to 31st of the month at 00:00",
		"0 1,3,5,7,9,11,13 * * */2": "At 01:00, 03:00, 05:00, 07:00, 09:00, 11:00 and 13:00, every Tuesday, " +
			"Thursday, Saturday and Sunday",
	} {
		if got := mustCron(t, expression).Words(); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

// TestWordsOfAnything checks that every expression has a description that begins with
// a capital letter.
func TestWordsOfAnything(t *testing.T) {
	for _, minute := range []string{"*", "0", "59", "*/7", "1,2,40", "3-9"} {
		for _, hour := range []string{"*", "0", "23", "*/5", "1,2", "3-20"} {
			for _, day := range []string{"*", "31", "*/3"} {
				for _, month := range []string{"*", "1", "1,2,12"} {
					for _, weekday := range []string{"*", "7", "*/2"} {
						expression := minute + " " + hour + " " + day + " " + month + " " + weekday
						if words := mustCron(t, expression).Words(); words == "" || words[0] < 'A' || words[0] > 'Z' {
							t.Errorf("%s: %q", expression, words)
						}
					}
				}
			}
		}
	}
}
