package agent

import "testing"

func TestOrigin(t *testing.T) {
	const https = "https://api.example.com:443"
	for address, want := range map[string]string{
		"https://api.example.com":                 https,
		"HTTPS://API.example.COM/v1?x=1#y":        https,
		"https://api.example.com:443/":            https,
		"https://api.example.com?to={{host}}":     https,
		"https://api.example.com/{{ a }}%zz":      https,
		`https://api.example.com\@evil.example`:   https,
		"http://api.example.com":                  "http://api.example.com:80",
		"https://api.example.com:8443":            "https://api.example.com:8443",
		"https://api.example.com.":                "https://api.example.com.:443",
		"http://[::1]:8080/v1":                    "http://[::1]:8080",
		"smtp+tls://mail.example.com:465":         "smtp+tls://mail.example.com:465",
		"https://{{host}}/v1":                     "",
		"https://api.example.com{{path}}":         "",
		"https://{{x}}.example.com":               "",
		"https://api.example.com:{{port}}/":       "",
		`https://a.example{{x | default:"/"}}`:    "",
		"{{scheme}}://api.example.com":            "",
		"{{url}}":                                 "",
		"":                                        "",
		"api.example.com":                         "",
		"https://":                                "",
		"https:///v1":                             "",
		"https://user@api.example.com":            "",
		"https://api.example.com@evil.example/v1": "",
		"https://a b/":                            "",
	} {
		if got := Origin(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
