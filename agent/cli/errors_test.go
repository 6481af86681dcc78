package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadValues(t *testing.T) {
	longList := strings.TrimSuffix(strings.Repeat("10.0.0.1,", maxList+1), ",")
	cases := []struct{ name, value, issue string }{
		{"addr", "8787", `"8787" is not host:port`},
		{"addr", "127.0.0.1:http", `port "http" is not a number from 0 to 65535`},
		{"addr", "127.0.0.1:65536", `port "65536" is not a number from 0 to 65535`},
		{"addr", "127.0.0.1:-1", `port "-1" is not a number from 0 to 65535`},
		{"addr", "a b:80", `"a b" is neither an IP address nor a host name`},
		{"addr", "http://x:80", `"http://x:80" is not host:port`},
		{"public_url", "example.com", "is not a URL of the form https://host"},
		{"public_url", "ftp://example.com", "is not a URL of the form https://host"},
		{"public_url", "https://", "is not a URL of the form https://host"},
		{"public_url", "https://a b/", "is not a URL"},
		{"public_url", "https://user:pw@example.com", "must not contain a user name or password"},
		{"public_url", "https://example.com/?a=b", "must not contain a query or a fragment"},
		{"public_url", "https://example.com/?", "must not contain a query or a fragment"},
		{"public_url", "https://example.com:0", "has a port outside 1 to 65535"},
		{"public_url", "https://example.com:", "has a port outside 1 to 65535"},
		{"edge_access_jwks_url", "https://user:pw@example.com", "must not contain a user name or password"},
		{"edge_access_jwks_url", "https://example.com/#a", "must not contain a fragment"},
		{"edge_access_jwks_url", "file:///etc/keys", "is not a URL of the form https://host"},
		{"edge_access_team_domain", "exa mple", "is not a domain like example.cloudflareaccess.com"},
		{"edge_access_team_domain", "http://example.com", "is not a domain like example.cloudflareaccess.com"},
		{"edge_access_team_domain", "https://example.com/certs", "is not a domain like example.cloudflareaccess.com"},
		{"edge_access_team_domain", "user@example.com", "is not a domain like example.cloudflareaccess.com"},
		{"edge_access_team_domain", "example.com:", "is not a domain like example.cloudflareaccess.com"},
		{"edge_access_team_domain", "::1", "is not a domain like example.cloudflareaccess.com"},
		{"edge_access_team_domain", "10.0.0.1", "is not a domain like example.cloudflareaccess.com"},
		{"master_key", "hunter2", "key 1 is not base64"},
		{"master_key", "hunter 2", "key 1 is not base64"},
		{"master_key", encoded(1) + ",,", "key 2 is empty"},
		{"master_key", encoded(1) + "," + encoded(2) + "," + encoded(1), "key 3 repeats key 1"},
		{"master_key", encoded(1)[:40], "key 1 has 30 bytes, want 32"},
		{"master_key", manyKeys(maxKeys + 1), "has more than 16 keys"},
		{"rate_limits", "100", `"100" is not class=number, like general=100,chat=20,browser=50,bulk=10,widget=30`},
		{"rate_limits", "chat=5,", `"" is not class=number, like general=100,chat=20,browser=50,bulk=10,widget=30`},
		{"rate_limits", "chats=5", `class "chats" is unknown, the classes are general, chat, browser, bulk, widget`},
		{"rate_limits", "chat=5,chat=6", "class chat is set twice"},
		{"rate_limits", "chat=0", `class chat: "0" is not a whole number from 1 to 1000000`},
		{"rate_limits", "chat=-5", `class chat: "-5" is not a whole number from 1 to 1000000`},
		{"rate_limits", "chat=1e3", `class chat: "1e3" is not a whole number from 1 to 1000000`},
		{"rate_limits", "chat=off", `class chat: "off" is not a whole number from 1 to 1000000`},
		{"trusted_proxies", "10.0.0.0/33", `"10.0.0.0/33" is not a CIDR like 10.0.0.0/8`},
		{"trusted_proxies", "10.0.0.0/8,,::1", `"" is not a CIDR like 10.0.0.0/8`},
		{"trusted_proxies", "example.com", `"example.com" is not a CIDR like 10.0.0.0/8`},
		{"trusted_proxies", "fe80::1%eth0", `"fe80::1%eth0" is not a CIDR like 10.0.0.0/8`},
		{"trusted_proxies", longList, "has more than 1000 entries"},
		{"outbound_allow", "10.1.2.3/8", `"10.1.2.3/8" has bits after its length, the range is 10.0.0.0/8`},
		{"outbound_allow", "::ffff:10.0.0.0/104", `"::ffff:10.0.0.0/104" is IPv4 written as IPv6, write it as IPv4`},
		{"outbound_allow", "::ffff:10.0.0.1", `"::ffff:10.0.0.1" is IPv4 written as IPv6, write it as IPv4`},
		{
			"outbound_allow",
			strings.Repeat("x", 100),
			`"` + strings.Repeat("x", 60) + `…" is not a CIDR like 10.0.0.0/8`,
		},
		{"max_upload_mb", "0", `"0" is not a whole number from 1 to 4096`},
		{"max_upload_mb", "4097", `"4097" is not a whole number from 1 to 4096`},
		{"max_upload_mb", "25MB", `"25MB" is not a whole number from 1 to 4096`},
		{
			"cors_origins",
			"example.com",
			"takes origins of the form https://host or https://host:port, separated by commas",
		},
		{
			"cors_origins",
			"https://example.com/path",
			"takes origins of the form https://host or https://host:port, separated by commas",
		},
		{
			"cors_origins",
			"https://u:p@example.com",
			"takes origins of the form https://host or https://host:port, separated by commas",
		},
		{
			"cors_origins",
			"https://*.example.com",
			"takes origins of the form https://host or https://host:port, separated by commas",
		},
		{
			"cors_origins",
			"https://example.com,",
			"takes origins of the form https://host or https://host:port, separated by commas",
		},
		{"cors_origins", "null", "takes origins of the form https://host or https://host:port, separated by commas"},
		{"cors_origins", strings.Repeat("https://a.example,", maxList+1), "has more than 1000 entries"},
		{"cors_origins", "https://a.example,*", `"*" must stand alone`},
		{"no_auth", "maybe", `"maybe" is neither true nor false`},
		{"default_role", "owner", `"owner" must be one of admin, viewer, none`},
		{"log_format", "xml", `"xml" must be one of text, json`},
		{"log_level", "trace", `"trace" must be one of debug, info, warn, error`},
		{"open_agents", "-1", `"-1" is not a whole number from 0 to 100000`},
		{"data", " ", "is empty; leave it out to use the default"},
		{"data", "a\tb", "holds characters that are not text"},
		{"chromium", "a\xff", "holds characters that are not text"},
		{"edge_access_aud", " ", "is empty; leave it out to use the default"},
	}
	for _, tc := range cases {
		flag := strings.ReplaceAll(tc.name, "_", "-")
		_, err := environment{flags: map[string]string{flag: tc.value}}.load(t)
		if want := "flag --" + flag + ": " + tc.issue; err == nil || err.Error() != want {
			t.Errorf("%s = %.80q\n got %v\nwant %s", tc.name, tc.value, err, want)
		}
		var one *Error
		if !errors.As(err, &one) || one.Name != tc.name {
			t.Errorf("%s: %#v", tc.name, err)
		}
	}
}

func manyKeys(n int) string {
	var keys []string
	for i := range n {
		keys = append(keys, encoded(byte(i)))
	}
	return strings.Join(keys, ",")
}

func TestErrorsNameTheirSource(t *testing.T) {
	cases := []struct {
		given environment
		want  string
	}{
		{
			environment{flags: map[string]string{"log-level": "loud"}},
			`flag --log-level: "loud" must be one of debug, info, warn, error`,
		},
		{
			environment{flags: map[string]string{"log-level": ""}},
			"flag --log-level: is empty; leave it out to use the default",
		},
		{
			environment{env: map[string]string{"SATCHEL_LOG_LEVEL": "loud"}},
			`variable SATCHEL_LOG_LEVEL: "loud" must be one of debug, info, warn, error`,
		},
		{
			environment{file: "log_level = 'loud'"},
			`satchel.toml:log_level: "loud" must be one of debug, info, warn, error`,
		},
		{
			environment{file: "SATCHEL_LOG_LEVEL = 'loud'"},
			`satchel.toml:SATCHEL_LOG_LEVEL: "loud" must be one of debug, info, warn, error`,
		},
		{environment{file: "log_level = ''"}, "satchel.toml:log_level: is empty; leave it out to use the default"},
		{
			environment{file: "cors_origins = []"},
			"satchel.toml:cors_origins: is empty; leave it out to use the default",
		},
		{environment{file: "log_level = ['info']"}, "satchel.toml:log_level: takes one value, not a list"},
		{environment{file: "log_level = 1.5"}, "satchel.toml:log_level: takes a string, an integer, or true or false"},
		{
			environment{file: "log_level = 2026-01-01"},
			"satchel.toml:log_level: takes a string, an integer, or true or false",
		},
		{environment{file: "[log_level]\na = 1"}, "satchel.toml:log_level: takes one value, not a table"},
		{
			environment{file: "[[log_level]]\na = 1"},
			"satchel.toml:log_level: takes a string, an integer, or true or false",
		},
		{environment{file: "trusted_proxies = [['::1']]"}, "satchel.toml:trusted_proxies: takes a list of strings"},
		{environment{file: "[rate_limits]\nchat = 1.5"}, "satchel.toml:rate_limits: takes a number for each key"},
		{
			environment{file: "[rate_limits]\nspeech = 1"},
			`satchel.toml:rate_limits: class "speech" is unknown, the classes are general, chat, browser, bulk, widget`,
		},
		{environment{file: "colour = 'red'"}, "satchel.toml:colour: is not a setting"},
		{environment{file: "config = 'other.toml'"}, "satchel.toml:config: is not a setting"},
		{environment{file: "\"a\\nb\" = 1"}, `satchel.toml:"a\nb": is not a setting`},
		{environment{file: "[server]\naddr = ':80'"}, "satchel.toml:server: is not a setting"},
		{
			environment{file: "addr = ':80'\nSATCHEL_ADDR = ':81'"},
			`satchel.toml:addr: sets the same as "SATCHEL_ADDR"; keep one of them`,
		},
		{environment{file: "a = 1\nmaster_key = hunter2"}, "satchel.toml: line 2 is not valid TOML"},
		{environment{file: "addr = ':80'\naddr = ':81'"}, "satchel.toml: line 2 is not valid TOML"},
		{environment{file: "\xff\xfea\x00"}, "satchel.toml: line 1 is not valid TOML"},
		{environment{file: "data = " + strings.Repeat("[", 2000)}, "satchel.toml: line 1 is not valid TOML"},
		{environment{file: "data = " + strings.Repeat("{a=", 1000)}, "satchel.toml: line 1 is not valid TOML"},
		{
			environment{file: "#" + strings.Repeat(" ", maxFile)},
			"satchel.toml: cannot be read: larger than 65536 bytes",
		},
		{
			environment{env: map[string]string{"EDGE_ACCESS_AUD": "a"}},
			"variable EDGE_ACCESS_AUD: needs edge_access_jwks_url or edge_access_team_domain, " +
				"or tokens cannot be verified",
		},
		{
			environment{env: map[string]string{"EDGE_ACCESS_AUD": "a", "EDGE_ACCESS_ISSUER": "i"}},
			"variable EDGE_ACCESS_AUD: needs edge_access_jwks_url or edge_access_team_domain, " +
				"or tokens cannot be verified",
		},
		{
			environment{env: map[string]string{"EDGE_ACCESS_TEAM_DOMAIN": "example"}},
			"variable EDGE_ACCESS_TEAM_DOMAIN: needs edge_access_aud, or no token is required",
		},
		{
			environment{file: "edge_access_jwks_url = 'https://idp.example'"},
			"satchel.toml:edge_access_jwks_url: needs edge_access_aud, or no token is required",
		},
		{
			environment{flags: map[string]string{"edge-access-issuer": "i"}},
			"flag --edge-access-issuer: needs edge_access_aud, or no token is required",
		},
		// A problem is reported only once.
		{
			environment{env: map[string]string{"EDGE_ACCESS_AUD": "a", "EDGE_ACCESS_TEAM_DOMAIN": "exa mple"}},
			"variable EDGE_ACCESS_TEAM_DOMAIN: is not a domain like example.cloudflareaccess.com",
		},
		{
			environment{env: map[string]string{"EDGE_ACCESS_AUD": "a"}, file: "edge_access_team = 'x'"},
			"satchel.toml:edge_access_team: is not a setting",
		},
	}
	for _, tc := range cases {
		c, err := tc.given.load(t)
		if c != nil || err == nil || err.Error() != tc.want {
			t.Errorf("%.200v\n got %v\nwant %s", tc.given, err, tc.want)
		}
	}
}

func TestAllErrorsAreReported(t *testing.T) {
	_, err := environment{
		flags: map[string]string{"addr": "x"},
		env:   map[string]string{"SATCHEL_LOG_LEVEL": "loud", "EDGE_ACCESS_AUD": "a"},
		file:  "max_upload_mb = 0\ncolour = 1\nflavour = 2",
	}.load(t)
	want := `satchel.toml:colour: is not a setting
satchel.toml:flavour: is not a setting
flag --addr: "x" is not host:port
satchel.toml:max_upload_mb: "0" is not a whole number from 1 to 4096
variable SATCHEL_LOG_LEVEL: "loud" must be one of debug, info, warn, error`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) || len(all.Unwrap()) != 5 {
		t.Errorf("got error %#v", err)
	}
}

// No error shows a secret, wherever it was set.
func TestErrorsKeepSecretsOut(t *testing.T) {
	const secret = "hunter2"
	for _, g := range []environment{
		{flags: map[string]string{"master-key": secret}},
		{env: map[string]string{"SATCHEL_MASTER_KEY": secret + "\n"}},
		{env: map[string]string{"SATCHEL_MASTER_KEY": "a\x00" + secret}},
		{env: map[string]string{"SATCHEL_MASTER_KEY": encoded(1) + "," + secret}},
		{file: "master_key = '" + secret + "'"},
		{file: "master_key = " + secret},
		{file: "master_key = \"" + secret},
		{file: "master_key = [\"" + secret + "\", 1.5]"},
		{file: "[master_key]\na = '" + secret + "'"},
		{env: map[string]string{"SATCHEL_PUBLIC_URL": "https://u:" + secret + "@example.com"}},
		{env: map[string]string{"EDGE_ACCESS_JWKS_URL": "https://u:" + secret + "%zz@example.com"}},
		{env: map[string]string{"EDGE_ACCESS_TEAM_DOMAIN": "https://u:" + secret + "@example.com"}},
		{env: map[string]string{"SATCHEL_CORS_ORIGINS": "https://u:" + secret + "@example.com"}},
	} {
		_, err := g.load(t)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%v: %v", g, err)
		}
	}
}

func TestWhichFileIsRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	standard, byFlag, byEnv :=
		write(DefaultFile, "data = 'standard'"), write("flag.toml", "data = 'flag'"), write("env.toml", "data = 'env'")
	missing := filepath.Join(dir, "missing.toml")
	cases := []struct{ flag, env, file, data, path, err string }{
		{"", "", standard, "standard", standard, ""},
		{"", byEnv, standard, "env", byEnv, ""},
		{byFlag, byEnv, standard, "flag", byFlag, ""},
		{"", "", missing, "./data", "", ""},
		{"", "", "", "./data", "", ""},
		{missing, byEnv, standard, "", "", `flag --config: "` + missing + `" cannot be read: ` + errnoText(t, missing)},
		{
			"", missing, standard, "", "",
			`variable SATCHEL_CONFIG: "` + missing + `" cannot be read: ` + errnoText(t, missing),
		},
		{"", "", dir, "", "", dir + ": cannot be read: " + errnoText(t, dir)},
	}
	for _, tc := range cases {
		flags := func(name string) (string, bool) { return tc.flag, name == "config" && tc.flag != "" }
		getenv := func(name string) string {
			if name == "SATCHEL_CONFIG" {
				return tc.env
			}
			return ""
		}
		c, err := Load(flags, getenv, tc.file)
		if tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("%+v: %v", tc, err)
			}
			continue
		}
		if err != nil || c.Data != tc.data || c.File != tc.path {
			t.Errorf("%+v: %+v, %v", tc, c, err)
		}
	}
	_, err := environment{flags: map[string]string{"config": ""}}.load(t)
	if err == nil || err.Error() != "flag --config: is empty" {
		t.Errorf("got error %v", err)
	}
}

// errnoText returns the system's error for reading a path.
func errnoText(t *testing.T, path string) string {
	t.Helper()
	_, err := os.ReadFile(path)
	var at *fs.PathError
	if !errors.As(err, &at) {
		t.Fatalf("%s can be read: %v", path, err)
	}
	return at.Err.Error()
}
