package agent

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTimeUnmarshalText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"2026-01-31T09:00:00Z":              "2026-01-31T09:00:00.000Z",
		"2026-01-31T09:00:00.5Z":            "2026-01-31T09:00:00.500Z",
		"2026-01-31T09:00:00.123456789Z":    "2026-01-31T09:00:00.123Z",
		"2026-01-31T09:00:00+02:00":         "2026-01-31T07:00:00.000Z",
		"2026-01-31T00:30:00+01:00":         "2026-01-30T23:30:00.000Z",
		"2026-01-31":                        "2026-01-31T00:00:00.000Z",
		"2024-02-29":                        "2024-02-29T00:00:00.000Z",
		"0900-01-01":                        "0900-01-01T00:00:00.000Z",
		"9999-12-31T23:59:59.999Z":          "9999-12-31T23:59:59.999Z",
		"2026-02-29":                        "error",
		"2026-01-31T09:00:00":               "error",
		"2026-01-31 09:00:00Z":              "error",
		"31.01.2026":                        "error",
		"9999-12-31T23:59:59-01:00":         "error",
		"2026-01-31T09:00:00Z\x00":          "error",
		"1769850000":                        "error",
		"2026-01-31T24:00:00Z":              "error",
		"2026-01-31T09:00:00.000Z and more": "error",
	} {
		var got Time
		err := got.UnmarshalText([]byte(text))
		switch {
		case want == "error" && err == nil:
			t.Errorf("%q was read as %s", text, got)
		case want != "error" && (err != nil || got.String() != want):
			t.Errorf("%q: got %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestTimeJSON(t *testing.T) {
	type record struct {
		At Time `json:"at"`
	}
	for _, c := range []struct{ in, out string }{
		{`{"at":null}`, `{"at":null}`},
		{`{}`, `{"at":null}`},
		{`{"at":""}`, `{"at":null}`},
		{`{"at":"2026-01-31"}`, `{"at":"2026-01-31T00:00:00.000Z"}`},
		{`{"at":"2026-01-31T09:00:00.1234+09:00"}`, `{"at":"2026-01-31T00:00:00.123Z"}`},
	} {
		var r record
		if err := json.Unmarshal([]byte(c.in), &r); err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if out, err := json.Marshal(r); err != nil || string(out) != c.out {
			t.Errorf("%s: got %s, %v; want %s", c.in, out, err, c.out)
		}
	}
	for _, bad := range []string{`{"at":12}`, `{"at":{}}`, `{"at":"tomorrow"}`, `{"at":true}`} {
		if err := json.Unmarshal([]byte(bad), &record{At: Now()}); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestTimeInDatabase(t *testing.T) {
	at := At(time.Date(2026, 1, 31, 9, 0, 0, 123_999_999, time.FixedZone("", 3600)))
	stored := at.Value()
	if stored != "2026-01-31T08:00:00.123Z" {
		t.Fatalf("Value() = %v", stored)
	}
	for _, src := range []any{stored, []byte(stored.(string))} {
		var back Time
		if err := back.Scan(src); err != nil || !back.Equal(at.Time) {
			t.Errorf("Scan(%T) = %s, %v", src, back, err)
		}
	}
	back := at
	if err := back.Scan(nil); err != nil || !back.IsZero() {
		t.Errorf("Scan(nil) = %s, %v", back, err)
	}
	if v := (Time{}).Value(); v != nil {
		t.Errorf("the zero Time is stored as %v", v)
	}
	if back.Scan(int64(5)) == nil || back.Scan("soon") == nil {
		t.Error("a value that is not a time was accepted")
	}
}

func FuzzTimeUnmarshalText(f *testing.F) {
	for _, seed := range []string{
		"",
		"2026-01-31",
		"2026-01-31T09:00:00Z",
		"0000-12-31T23:59:59-14:00",
		"9999-12-31T23:59:59.9999Z",
		"2026-01-31T09:00:00,5Z",
		"\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var first, second Time
		if first.UnmarshalText([]byte(text)) != nil {
			return
		}
		if err := second.UnmarshalText([]byte(first.String())); err != nil || !first.Equal(second.Time) {
			t.Fatalf("%q was read as %s and written differently: %s, %v", text, first, second, err)
		}
		if raw, err := first.MarshalJSON(); err != nil || !json.Valid(raw) {
			t.Fatalf("%q became %s, %v", text, raw, err)
		}
	})
}

// FuzzTimeString compares with the time package.
func FuzzTimeString(f *testing.F) {
	for _, seconds := range []int64{
		0, -1, 1769850000, 253402300799, 253402300800, -62135596800, -62167219201, 951782400,
	} {
		f.Add(seconds, int64(999_999_999))
	}
	f.Fuzz(func(t *testing.T, seconds, nanoseconds int64) {
		at := Time{time.Unix(seconds, nanoseconds)}
		want := at.UTC().Format(timeLayout)
		if at.IsZero() {
			want = ""
		}
		if got := at.String(); got != want {
			t.Errorf("%d s %d ns: %s, want %s", seconds, nanoseconds, got, want)
		}
	})
}
