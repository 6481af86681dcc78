package cli

import (
	"errors"
	"maps"
	"slices"
	"testing"
)

// A value that a parser accepts is printed in a form that it accepts again with
// the same meaning.

func FuzzRateLimits(f *testing.F) {
	for _, seed := range []string{
		"off", "general=100,chat=20,browser=50,bulk=10", "chat=5", " chat = 5 , bulk=1", "chat=", "=5", "chat=5,chat=6",
		"chat=99999999999999999999", ",", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limits, err := parseRateLimits(text)
		if err != nil || limits == nil {
			return
		}
		for class, limit := range limits {
			if limit < 1 || limit > maxRate || !slices.Contains(RateClasses, class) {
				t.Fatalf("%q is parsed as %v", text, limits)
			}
		}
		again, err := parseRateLimits(showRateLimits(limits))
		if err != nil || !maps.Equal(again, limits) || len(limits) != len(RateClasses) {
			t.Fatalf("%q is parsed as %v, then as %v, %v", text, limits, again, err)
		}
	})
}

func FuzzPrefixes(f *testing.F) {
	for _, seed := range []string{
		"10.0.0.0/8", "10.1.2.3", "::1,fd00::/8", "::ffff:10.0.0.0/104", "fe80::1%eth0/64", "0.0.0.0/0", "1.2.3.4/",
		"/8", "010.0.0.1", ",",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		prefixes, err := parsePrefixes(text)
		if err != nil {
			return
		}
		for _, prefix := range prefixes {
			if !prefix.IsValid() ||
				prefix != prefix.Masked() ||
				prefix.Addr().Is4In6() ||
				prefix.Addr().Zone() != "" ||
				!prefix.Contains(prefix.Addr()) {
				t.Fatalf("%q is parsed as %v", text, prefixes)
			}
		}
		again, err := parsePrefixes(showList(prefixes))
		if err != nil || !slices.Equal(again, prefixes) {
			t.Fatalf("%q is parsed as %v, then as %v, %v", text, prefixes, again, err)
		}
	})
}

func FuzzOrigins(f *testing.F) {
	for _, seed := range []string{
		"*",
		"none",
		"https://a.example:443,http://[::1]:3000",
		"https://A/", "http://a:99999", "x://y", "null",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		origins, err := parseOrigins(text)
		if err != nil {
			return
		}
		again, err := parseOrigins(showOrigins(origins))
		if err != nil || !slices.Equal(again, origins) {
			t.Fatalf("%q is parsed as %q, then as %q, %v", text, origins, again, err)
		}
	})
}

// FuzzFile reads any file: the result is a Config or typed errors, never a
// panic.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"addr = ':80'\n[rate_limits]\nchat = 1",
		"master_key = ['a', 'b']",
		"a = {b = [1, {c = 2}]}", "\ufeffdata = 'x'", "x = 1\nx = 2", "[[no_auth]]",
		"data = \"\\u0000\"", "log_level = nan",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		from := &origin{flags: environment{}.lookup, getenv: func(string) string { return "" }, path: DefaultFile}
		problems := from.parse(text)
		for _, s := range table {
			value, source, given, err := from.find(s)
			if err == nil && given {
				if issue := s.set(&Config{}, value); issue != nil {
					err = &Error{Name: s.Name, Source: source, Issue: issue.Error()}
				}
			}
			if err != nil {
				problems = append(problems, err)
			}
		}
		for _, problem := range problems {
			var typed *Error
			if !errors.As(problem, &typed) || typed.Source == "" || typed.Issue == "" {
				t.Fatalf("got %#v", problem)
			}
		}
	})
}
