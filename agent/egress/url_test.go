package egress

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	cases := []struct {
		raw  string
		want string // the returned URL, "" if refused
		err  error
	}{
		{"http://example.com", "http://example.com", nil},
		{"HTTPS://Example.COM/A?q=1#f", "https://example.com/A?q=1#f", nil},
		{"https://example.com:8443/", "https://example.com:8443/", nil},
		{"http://example.com.:80/", "http://example.com.:80/", nil},
		{"http://my_host.example/", "http://my_host.example/", nil},
		{"http://bücher.example/", "http://xn--bcher-kva.example/", nil},
		{"http://8.8.8.8/", "http://8.8.8.8/", nil},
		{"http://[2606:4700:4700::1111]:80/", "http://[2606:4700:4700::1111]:80/", nil},
		{"http://1.example/", "http://1.example/", nil},

		{"", "", ErrScheme},
		{"example.com", "", ErrScheme},
		{"//example.com", "", ErrScheme},
		{"file:///etc/passwd", "", ErrScheme},
		{"gopher://example.com/", "", ErrScheme},
		{"ftp://example.com/", "", ErrScheme},
		{"javascript:alert(1)", "", ErrScheme},
		{"data:text/plain,x", "", ErrScheme},
		{"unix:///var/run/docker.sock", "", ErrScheme},
		{"ws://example.com", "", ErrScheme},
		{"view-source:http://example.com", "", ErrScheme},

		{"http://", "", ErrURL},
		{"http:///path", "", ErrURL},
		{"http:example.com", "", ErrURL},
		{"http://user@example.com/", "", ErrURL},
		{"http://user:pw@example.com/", "", ErrURL},
		{"http://@example.com/", "", ErrURL},
		{"http://example.com:0/", "", ErrURL},
		{"http://example.com:65536/", "", ErrURL},
		{"http://example.com:/", "", ErrURL},
		{"http://exa mple.com/", "", ErrURL},
		{"http://example..com/", "", ErrURL},
		{"http://.example.com/", "", ErrURL},
		{"http://exa\nmple.com/", "", ErrURL},
		{"http://a,b/", "", ErrURL},
		{"http://[::1/", "", ErrURL},
		{"http://[zz::1]/", "", ErrURL},
		{"http://%31%32%37.0.0.1/", "", ErrURL},
		{"http://127%2e0.0.1/", "", ErrURL},
		{`http://example.com\@127.0.0.1/`, "", ErrURL},
		{"http://" + strings.Repeat("a", 64) + ".com/", "", ErrURL},
		{"http://" + strings.Repeat("a.", 130) + "com/", "", ErrURL},
		{"http://example.com/" + strings.Repeat("x", maxURL), "", ErrURL},
		{"http://\u200d.example/", "", ErrURL},

		{"http://127.0.0.1/", "", ErrBlocked},
		{"http://10.0.0.1:8080/", "", ErrBlocked},
		{"http://169.254.169.254/latest/meta-data", "", ErrBlocked},
		{"http://0.0.0.0/", "", ErrBlocked},
		{"http://[::1]/", "", ErrBlocked},
		{"http://[::]/", "", ErrBlocked},
		{"http://[::ffff:127.0.0.1]/", "", ErrBlocked},
		{"http://[::ffff:7f00:1]/", "", ErrBlocked},
		{"http://[64:ff9b::a00:1]/", "", ErrBlocked},
		{"http://[2002:7f00:1::]/", "", ErrBlocked},
		{"http://[fd00:ec2::254]/", "", ErrBlocked},
		{"http://[fe80::1%25eth0]/", "", ErrBlocked},
		{"http://[2606:4700::1%25eth0]/", "", ErrBlocked},
		{"http://localhost/", "", ErrBlocked},
		{"http://LOCALHOST./", "", ErrBlocked},
		{"http://app.localhost:3000/", "", ErrBlocked},
		{"http://2130706433/", "", ErrBlocked},
		{"http://017700000001/", "", ErrBlocked},
		{"http://0x7f000001/", "", ErrBlocked},
		{"http://0X7F.1/", "", ErrBlocked},
		{"http://127.1/", "", ErrBlocked},
		{"http://127.0.1/", "", ErrBlocked},
		{"http://0177.0.0.1/", "", ErrBlocked},
		{"http://0x7f.0.0.1/", "", ErrBlocked},
		{"http://127.0.0.01/", "", ErrBlocked},
		{"http://0/", "", ErrBlocked},
		{"http://0x/", "", ErrBlocked},
		{"http://127.0.0.1./", "", ErrBlocked},
		{"http://8.8.8/", "", ErrBlocked},
		{"http://134744072/", "", ErrBlocked},
		{"http://1.2.3.4.5/", "", ErrBlocked},
		{"http://256.1.1.1/", "", ErrBlocked},
		{"http://example.1/", "", ErrBlocked},
		{"http://①②⑦.⓪.⓪.①/", "", ErrBlocked},
		{"http://127。0。0。1/", "", ErrBlocked},
		{"http://ｌｏｃａｌｈｏｓｔ/", "", ErrBlocked},
		{"http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "", ErrBlocked},
	}
	for _, c := range cases {
		u, err := (&Policy{}).checkURL(c.raw)
		if !errors.Is(err, c.err) {
			t.Errorf("%.60q: error %v, want %v", c.raw, err, c.err)
			continue
		}
		if got := stringOf(u); got != c.want {
			t.Errorf("%.60q: %q, want %q", c.raw, got, c.want)
		}
	}
}

func stringOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.String()
}

func TestCheckURLKnowsThePolicy(t *testing.T) {
	opened := New(Policy{Allow: openedRange})
	for _, raw := range []string{"http://127.0.0.1:1/", "http://localhost/", "http://[::ffff:127.0.0.1]/"} {
		if _, err := opened.CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{"http://127.0.0.2/", "http://127.1/", "http://[::1]/"} {
		if _, err := opened.CheckURL(raw); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v, want ErrBlocked", raw, err)
		}
	}
	named := New(Policy{AllowPrivate: true})
	if _, err := named.CheckURL("https://idp.localhost:8443/certs"); err != nil {
		t.Error(err)
	}
	if _, err := named.CheckURL("http://169.254.169.254/"); !errors.Is(err, ErrBlocked) {
		t.Errorf("metadata under AllowPrivate: %v", err)
	}
}

func TestErrorsKeepCredentialsOut(t *testing.T) {
	for _, raw := range []string{
		"http://hunter2:hunter2@10.0.0.1/hunter2?hunter2", "http://10.0.0.1/hunter2?k=hunter2#hunter2",
		"http://hunter2%zz/", "hunter2://x", "http://x/%zzhunter2", "http://hunter2@x:99999/",
	} {
		_, err := (&Policy{}).checkURL(raw)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	_, err := (&Policy{}).checkURL("http://10.0.0.1/")
	var refused *Error
	if !errors.As(err, &refused) ||
		refused.Code != "BLOCKED_ADDRESS" ||
		refused.Host != "10.0.0.1" ||
		refused.Addr != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("got error %#v", err)
	}
	if got, want := err.Error(), "address not allowed: 10.0.0.1: private address"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRedact(t *testing.T) {
	cases := []struct{ raw, want string }{
		{"https://example.com/a/b", "https://example.com/a/b"},
		{"https://u:p@example.com:1/a?key=s3cret&b=#token", "https://example.com:1/a?key=***&b=***"},
		{"https://example.com/?s3cret", "https://example.com/?***"},
		{"https://example.com/?a=1;b=2&&c", "https://example.com/?a=***&b=***&***"},
		{"https://api.telegram.org/bot123:ABC-def/getMe", "https://api.telegram.org/bot***/getMe"},
		{"https://api.telegram.org/file/bot123%3AABC/x", "https://api.telegram.org/file/bot***/x"},
		{"//u:p@example.com/a", "//example.com/a"},
		{"/a?b=c", "/a?b=***"},
		{"", ""},
		{"http://u:p@[::1", "(unreadable URL)"},
		{"mailto:u@example.com", "(unreadable URL)"},
	}
	for _, c := range cases {
		if got := Redact(c.raw); got != c.want {
			t.Errorf("%s: %q, want %q", c.raw, got, c.want)
		}
	}
}

// aton parses a host like C's inet_aton: one to four parts, each decimal, octal or
// hexadecimal. It is the reference for hosts that system resolvers parse as numbers.
func aton(host string) bool {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return false
	}
	for _, part := range parts {
		if part == "" || strings.Contains(part, "_") {
			return false
		}
		base := 10
		switch {
		case strings.HasPrefix(part, "0x"), strings.HasPrefix(part, "0X"):
			part, base = part[2:], 16
		case len(part) > 1 && part[0] == '0':
			base = 8
		}
		if _, err := strconv.ParseUint(part, base, 32); err != nil {
			return false
		}
	}
	return true
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"http://example.com/a?b#c", "https://user:pw@example.com", "http://127.1", "http://0x7f.0.0.1:80/",
		"http://[::ffff:7f00:1]:1", "http://[fe80::1%25a]/", "http://①②⑦.⓪.⓪.①/", "http:\\\\x", "http://bücher.example",
		"file:///", "http://a:b:c@d", "http://xn--a/", "http://8.8.8.8",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := (&Policy{}).checkURL(raw)
		if err != nil {
			if !errors.Is(err, ErrBlocked) && !errors.Is(err, ErrScheme) && !errors.Is(err, ErrURL) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		host := u.Hostname()
		if (u.Scheme != "http" && u.Scheme != "https") ||
			u.User != nil ||
			host == "" ||
			!isASCII(u.Host) ||
			host != strings.ToLower(host) {
			t.Fatalf("%q passed as %q", raw, u)
		}
		addr, err := netip.ParseAddr(host)
		if err == nil {
			if class, reason := classify(addr.Unmap()); class != public {
				t.Fatalf("%q passed: %s", raw, reason)
			}
		} else if aton(host) {
			t.Fatalf("%q passed as a name, but C parses it as a number", raw)
		}
		again, err := (&Policy{}).checkURL(u.String())
		if err == nil && again.Host != u.Host {
			t.Fatalf("%q: host %q, then %q", raw, u.Host, again.Host)
		}
		if err != nil && len(u.String()) <= maxURL {
			t.Fatalf("%q passed as %q, which is rejected: %v", raw, u, err)
		}
	})
}

func FuzzRedact(f *testing.F) {
	for _, seed := range []string{
		"https://u:p@h/?a=b#c", "?x", "http://h/bot1:2/", "a:b", "//@", "A://// ", "//@// ", "/bot1:/%2f%zz",
		"/bot1:%2f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		shown := Redact(raw)
		u, err := url.Parse(shown)
		if shown == "(unreadable URL)" {
			return
		}
		if err != nil {
			t.Fatalf("%q became %q: %v", raw, shown, err)
		}
		if u.User != nil || u.Fragment != "" {
			t.Fatalf("%q became %q", raw, shown)
		}
		for part := range strings.SplitSeq(u.RawQuery, "&") {
			if u.RawQuery != "" && part != masked && !strings.HasSuffix(part, "="+masked) {
				t.Fatalf("%q became %q", raw, shown)
			}
		}
	})
}
