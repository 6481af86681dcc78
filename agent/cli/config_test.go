package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

// environment are the sources of one test: flags, variables and the text of a file.
type environment struct {
	flags, env map[string]string
	file       string
}

// load writes the file, if any, and loads the settings. The path of the file is
// removed from the error's text.
func (g environment) load(t *testing.T) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), DefaultFile)
	if g.file != "" {
		if err := os.WriteFile(path, []byte(g.file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(g.lookup, func(name string) string { return g.env[name] }, path)
	if err != nil {
		return c, shortened{err, strings.ReplaceAll(err.Error(), filepath.Dir(path)+string(filepath.Separator), "")}
	}
	return c, nil
}

func (g environment) lookup(flag string) (string, bool) {
	value, ok := g.flags[flag]
	return value, ok
}

type shortened struct {
	error
	text string
}

func (s shortened) Error() string { return s.text }
func (s shortened) Unwrap() error { return s.error }

func key(fill byte) Key { return Key(bytes.Repeat([]byte{fill}, 32)) }

func encoded(fill byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32))
}

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestDefaults(t *testing.T) {
	got, err := environment{}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	got.sources = nil
	want := &Config{
		Addr:          "127.0.0.1:8787",
		Data:          "./data",
		PublicURL:     "http://127.0.0.1:8787",
		RateLimits:    map[string]int{"general": 100, "chat": 20, "browser": 50, "bulk": 10, "widget": 30},
		MCPRegistry:   "https://registry.modelcontextprotocol.io",
		MaxUploadMB:   25,
		CORSOrigins:   []string{"*"},
		DefaultRole:   "viewer",
		ReplicateDays: 30,
		LogFormat:     "text",
		LogLevel:      slog.LevelInfo,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// valid lists every setting with accepted values, and the field that must then
// have the value want.
var valid = []struct {
	name, env, value string
	field            func(*Config) any
	want             any
}{
	{"addr", "SATCHEL_ADDR", "0.0.0.0:80", func(c *Config) any { return c.Addr }, "0.0.0.0:80"},
	{"addr", "SATCHEL_ADDR", ":0", func(c *Config) any { return c.Addr }, ":0"},
	{"addr", "SATCHEL_ADDR", "[::1]:8787", func(c *Config) any { return c.Addr }, "[::1]:8787"},
	{"addr", "SATCHEL_ADDR", "My-host.lan:1", func(c *Config) any { return c.Addr }, "My-host.lan:1"},
	{"data", "SATCHEL_DATA", "/srv/a b", func(c *Config) any { return c.Data }, "/srv/a b"},
	{
		"public_url",
		"SATCHEL_PUBLIC_URL",
		"https://a.example/base/",
		func(c *Config) any { return c.PublicURL },
		"https://a.example/base",
	},
	{
		"public_url",
		"SATCHEL_PUBLIC_URL",
		" http://10.0.0.1:8787 ",
		func(c *Config) any { return c.PublicURL },
		"http://10.0.0.1:8787",
	},
	{"master_key", "SATCHEL_MASTER_KEY", encoded(1), func(c *Config) any { return c.MasterKeys }, []Key{key(1)}},
	{
		"master_key",
		"SATCHEL_MASTER_KEY",
		encoded(255) + " , " + strings.TrimRight(encoded(2), "="),
		func(c *Config) any { return c.MasterKeys },
		[]Key{key(255), key(2)},
	},
	{
		"master_key",
		"SATCHEL_MASTER_KEY",
		base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{255}, 32)),
		func(c *Config) any { return c.MasterKeys },
		[]Key{key(255)},
	},
	{
		"rate_limits",
		"SATCHEL_RATE_LIMITS",
		"chat=7, bulk=1",
		func(c *Config) any { return c.RateLimits },
		map[string]int{"general": 100, "chat": 7, "browser": 50, "bulk": 1, "widget": 30},
	},
	{"rate_limits", "SATCHEL_RATE_LIMITS", "OFF", func(c *Config) any { return c.RateLimits }, map[string]int(nil)},
	{
		"trusted_proxies",
		"SATCHEL_TRUSTED_PROXIES",
		"10.0.0.0/8, 192.0.2.7,fd00::/8,::1",
		func(c *Config) any { return c.TrustedProxies },
		prefixes("10.0.0.0/8", "192.0.2.7/32", "fd00::/8", "::1/128"),
	},
	{
		"outbound_allow",
		"SATCHEL_OUTBOUND_ALLOW",
		"127.0.0.1, [::1]:1234",
		func(c *Config) any { return c.OutboundAllow },
		agent.MustAddressRanges("127.0.0.1/32", "[::1]:1234"),
	},
	{
		"allow_stdio_mcp",
		"SATCHEL_ALLOW_STDIO_MCP",
		"/etc/satchel/mcp.json",
		func(c *Config) any { return c.StdioMCP },
		"/etc/satchel/mcp.json",
	},
	{"mcp_registry", "SATCHEL_MCP_REGISTRY", "off", func(c *Config) any { return c.MCPRegistry }, ""},
	{
		"mcp_registry",
		"SATCHEL_MCP_REGISTRY",
		"http://registry.lan:8080",
		func(c *Config) any { return c.MCPRegistry },
		"http://registry.lan:8080",
	},
	{"max_upload_mb", "SATCHEL_MAX_UPLOAD_MB", "100", func(c *Config) any { return c.MaxUploadMB }, 100},
	{
		"cors_origins",
		"SATCHEL_CORS_ORIGINS",
		"https://A.example:443/, http://b.example:3000,http://[::1]:80",
		func(c *Config) any { return c.CORSOrigins },
		[]string{"https://a.example", "http://b.example:3000", "http://[::1]"},
	},
	{
		"cors_origins",
		"SATCHEL_CORS_ORIGINS",
		"chrome-extension://abcdef",
		func(c *Config) any { return c.CORSOrigins },
		[]string{"chrome-extension://abcdef"},
	},
	{"cors_origins", "SATCHEL_CORS_ORIGINS", "none", func(c *Config) any { return c.CORSOrigins }, []string{}},
	{"no_auth", "SATCHEL_NO_AUTH", "true", func(c *Config) any { return c.NoAuth }, true},
	{"no_auth", "SATCHEL_NO_AUTH", "Yes", func(c *Config) any { return c.NoAuth }, true},
	{"no_auth", "SATCHEL_NO_AUTH", "0", func(c *Config) any { return c.NoAuth }, false},
	{"default_role", "SATCHEL_DEFAULT_ROLE", "Viewer", func(c *Config) any { return c.DefaultRole }, "viewer"},
	{"default_role", "SATCHEL_DEFAULT_ROLE", "admin", func(c *Config) any { return c.DefaultRole }, "admin"},
	{"default_role", "SATCHEL_DEFAULT_ROLE", "none", func(c *Config) any { return c.DefaultRole }, "none"},
	{
		"chromium",
		"SATCHEL_CHROMIUM",
		"/usr/bin/chromium",
		func(c *Config) any { return c.Chromium },
		"/usr/bin/chromium",
	},
	{"warm_browser", "SATCHEL_WARM_BROWSER", "true", func(c *Config) any { return c.WarmBrowser }, true},
	{
		"browser_cdp",
		"SATCHEL_BROWSER_CDP",
		"ws://u:p@127.0.0.1:3000/?token=x",
		func(c *Config) any { return c.BrowserCDP + " " + c.BrowserProxyAddr },
		"ws://u:p@127.0.0.1:3000/?token=x 127.0.0.1:0",
	},
	{
		"browser_driver",
		"SATCHEL_BROWSER_DRIVER",
		"/opt/driver",
		func(c *Config) any { return c.BrowserDriver },
		"/opt/driver",
	},
	{"allow_cdp", "SATCHEL_ALLOW_CDP", "2", func(c *Config) any { return c.AllowCDP }, 2},
	{"open_agents", "SATCHEL_OPEN_AGENTS", "16", func(c *Config) any { return c.OpenFiles }, 16},
	{
		"replicate",
		"SATCHEL_REPLICATE",
		"s3://backups/satchel?region=eu-central-1",
		func(c *Config) any { return c.Replicate },
		"s3://backups/satchel?region=eu-central-1",
	},
	{
		"cluster",
		"SATCHEL_CLUSTER",
		"postgres://satchel:pw@db1,db2/satchel",
		func(c *Config) any { return c.Cluster },
		"postgres://satchel:pw@db1,db2/satchel",
	},
	{
		"cluster_url",
		"SATCHEL_CLUSTER_URL",
		"http://10.0.0.1:8787",
		func(c *Config) any { return c.ClusterURL },
		"http://10.0.0.1:8787",
	},
	{"replicate_days", "SATCHEL_REPLICATE_DAYS", "7", func(c *Config) any { return c.ReplicateDays }, 7},
	{"log_format", "SATCHEL_LOG_FORMAT", "json", func(c *Config) any { return c.LogFormat }, "json"},
	{"log_level", "SATCHEL_LOG_LEVEL", "DEBUG", func(c *Config) any { return c.LogLevel }, slog.LevelDebug},
}

// Each setting is read from a flag, a variable and the file, under three
// spellings of its name.
func TestEachSettingFromEachSource(t *testing.T) {
	for _, tc := range valid {
		flag := strings.ReplaceAll(tc.name, "_", "-")
		quoted := `"` + tc.value + `"`
		sources := map[string]environment{
			"flag":              {flags: map[string]string{flag: tc.value}},
			"variable":          {env: map[string]string{tc.env: tc.value}},
			"key":               {file: tc.name + " = " + quoted},
			"key as a flag":     {file: flag + " = " + quoted},
			"key as a variable": {file: tc.env + " = " + quoted},
		}
		for source, g := range sources {
			c, err := g.load(t)
			if err != nil {
				t.Errorf("%s by %s: %v", tc.name, source, err)
				continue
			}
			if got := tc.field(c); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s = %q by %s: %v, want %v", tc.name, tc.value, source, got, tc.want)
			}
		}
	}
}

func TestSettingsTableIsComplete(t *testing.T) {
	tested := map[string]bool{
		"config":                  true,
		"browser_proxy_addr":      true,
		"edge_access_aud":         true,
		"edge_access_jwks_url":    true,
		"edge_access_team_domain": true,
		"edge_access_issuer":      true,
	}
	for _, tc := range valid {
		tested[tc.name] = true
	}
	var secrets, bools []string
	for _, s := range append([]Setting{configFile}, table...) {
		if !tested[s.Name] {
			t.Errorf("%s has no case in this file", s.Name)
		}
		if s.Usage == "" || strings.ContainsAny(s.Usage, "\n`") || s.Flag != strings.ReplaceAll(s.Name, "_", "-") {
			t.Errorf("got %+v", s)
		}
		if s.Secret {
			secrets = append(secrets, s.Name)
		}
		if s.Bool {
			bools = append(bools, s.Name)
		}
	}
	if !slices.Equal(secrets, []string{"master_key", "browser_cdp", "cluster"}) ||
		!slices.Equal(bools, []string{"no_auth", "warm_browser"}) {
		t.Errorf("secrets %v, bools %v", secrets, bools)
	}
	if first := configFile; first.Flag != "config" || first.Env != "SATCHEL_CONFIG" {
		t.Errorf("got %+v", first)
	}
}

func TestPrecedence(t *testing.T) {
	g := environment{
		flags: map[string]string{"addr": "127.0.0.1:1"},
		env:   map[string]string{"SATCHEL_ADDR": "127.0.0.1:2", "SATCHEL_DATA": "env", "SATCHEL_LOG_LEVEL": ""},
		file:  "addr = '127.0.0.1:3'\ndata = 'file'\nlog_level = 'warn'\n",
	}
	c, err := g.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if c.Addr != "127.0.0.1:1" || c.Data != "env" || c.LogLevel != slog.LevelWarn || c.LogFormat != "text" {
		t.Errorf("got %+v", c)
	}
	if c.PublicURL != "http://127.0.0.1:1" || c.PublicURLSet || c.CORSOriginsSet {
		t.Errorf("got %+v", c)
	}
	// An invalid value that is overridden does not matter.
	g = environment{flags: map[string]string{"log-level": "info"}, env: map[string]string{"SATCHEL_LOG_LEVEL": "loud"}}
	if _, err := g.load(t); err != nil {
		t.Error(err)
	}
}

func TestNativeTypesInTheFile(t *testing.T) {
	c, err := environment{file: `
max_upload_mb = 50
no_auth = true
trusted_proxies = ["10.0.0.0/8", "::1"]
cors_origins = ["https://a.example"]
master_key = ["` + encoded(1) + `", "` + encoded(2) + `"]
[rate_limits]
chat = 5
bulk = "2"
`}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxUploadMB != 50 ||
		!c.NoAuth ||
		!slices.Equal(c.TrustedProxies, prefixes("10.0.0.0/8", "::1/128")) ||
		!slices.Equal(c.CORSOrigins, []string{"https://a.example"}) ||
		!c.CORSOriginsSet ||
		!slices.Equal(c.MasterKeys, []Key{key(1), key(2)}) ||
		c.RateLimits["chat"] != 5 ||
		c.RateLimits["bulk"] != 2 ||
		c.RateLimits["general"] != 100 {
		t.Errorf("got %+v", c)
	}
}

func TestPublicURL(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8787": "http://127.0.0.1:8787",
		"[::1]:80":       "http://[::1]:80",
		"agents.lan:80":  "http://agents.lan:80",
		":8787":          "http://localhost:8787",
		"0.0.0.0:8787":   "http://localhost:8787",
		"[::]:8787":      "http://localhost:8787",
	} {
		c, err := environment{flags: map[string]string{"addr": addr}}.load(t)
		if err != nil || c.PublicURL != want || c.PublicURLSet {
			t.Errorf("%s: %+v, %v", addr, c, err)
		}
	}
	c, err := environment{file: "public_url = 'http://127.0.0.1:8787'"}.load(t)
	if err != nil || !c.PublicURLSet {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestLocalAddr(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8787": "127.0.0.1:8787",
		":8787":          "127.0.0.1:8787",
		"0.0.0.0:80":     "127.0.0.1:80",
		"[::]:80":        "[::1]:80",
		"10.1.2.3:80":    "10.1.2.3:80",
		"localhost:80":   "localhost:80",
	} {
		t.Run(addr, func(t *testing.T) {
			if got := (&Config{Addr: addr}).LocalAddr(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "LocalHost.:1": true,
		"a.localhost:1": true, "[::ffff:127.0.0.1]:1": true, ":1": false, "0.0.0.0:1": false, "[::]:1": false,
		"10.0.0.1:1": false, "example.com:1": false, "notlocalhost:1": false,
		"localhost.example:1": false, "nonsense": false,
	} {
		if got := (&Config{Addr: addr}).Loopback(); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestAccess(t *testing.T) {
	const aud, jwks, team, issuer = "EDGE_ACCESS_AUD", "EDGE_ACCESS_JWKS_URL",
		"EDGE_ACCESS_TEAM_DOMAIN", "EDGE_ACCESS_ISSUER"
	cases := []struct {
		env                      map[string]string
		wantJWKS, wantIssuer, as string
	}{
		{
			map[string]string{aud: "a", team: "example"},
			"https://example.cloudflareaccess.com/cdn-cgi/access/certs",
			"https://example.cloudflareaccess.com",
			"example.cloudflareaccess.com",
		},
		{
			map[string]string{aud: "a", team: "Example.CloudflareAccess.com"},
			"https://example.cloudflareaccess.com/cdn-cgi/access/certs",
			"https://example.cloudflareaccess.com",
			"example.cloudflareaccess.com",
		},
		{
			map[string]string{aud: "a", team: "https://example.cloudflareaccess.com/"},
			"https://example.cloudflareaccess.com/cdn-cgi/access/certs",
			"https://example.cloudflareaccess.com",
			"example.cloudflareaccess.com",
		},
		{
			map[string]string{aud: "a", team: "login.example.org:8443"},
			"https://login.example.org:8443/cdn-cgi/access/certs",
			"https://login.example.org:8443",
			"login.example.org:8443",
		},
		{
			map[string]string{aud: "a", team: "example", jwks: "http://127.0.0.1:9/certs"},
			"http://127.0.0.1:9/certs",
			"https://example.cloudflareaccess.com",
			"example.cloudflareaccess.com",
		},
		{
			map[string]string{aud: "a", team: "example", issuer: "me"},
			"https://example.cloudflareaccess.com/cdn-cgi/access/certs",
			"me",
			"example.cloudflareaccess.com",
		},
		{map[string]string{aud: "a", jwks: "https://idp.example/keys?v=1"}, "https://idp.example/keys?v=1", "", ""},
		{
			map[string]string{aud: "a", jwks: "https://idp.example/keys", issuer: "https://idp.example"},
			"https://idp.example/keys",
			"https://idp.example",
			"",
		},
		{map[string]string{}, "", "", ""},
	}
	for _, tc := range cases {
		c, err := environment{env: tc.env}.load(t)
		if err != nil {
			t.Errorf("%v: %v", tc.env, err)
			continue
		}
		if c.AccessAUD != tc.env[aud] ||
			c.AccessJWKSURL != tc.wantJWKS ||
			c.AccessIssuer != tc.wantIssuer ||
			c.AccessTeamDomain != tc.as {
			t.Errorf("%v: %+v", tc.env, c)
		}
	}
	// The same with flag and key.
	c, err := environment{
		flags: map[string]string{"edge-access-aud": "a"},
		file:  "edge_access_team_domain = 'example'",
	}.load(t)
	if err != nil || c.AccessAUD != "a" || c.AccessTeamDomain != "example.cloudflareaccess.com" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestPrint(t *testing.T) {
	c, err := environment{
		flags: map[string]string{"addr": ":80", "no-auth": "true"},
		env: map[string]string{
			"SATCHEL_MASTER_KEY":  encoded(1) + "," + encoded(2),
			"EDGE_ACCESS_AUD":     "aud",
			"SATCHEL_RATE_LIMITS": "off",
		},
		file: "edge-access-team-domain = 'example'\ntrusted_proxies = ['10.0.0.0/8', '::1']\ncors_origins = 'none'",
	}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `addr = :80  # flag --addr
data = ./data  # default
public_url = http://localhost:80  # default
edge_access_aud = aud  # variable EDGE_ACCESS_AUD
edge_access_jwks_url = https://example.cloudflareaccess.com/cdn-cgi/access/certs  # from edge_access_team_domain
edge_access_team_domain = example.cloudflareaccess.com  # satchel.toml:edge-access-team-domain
edge_access_issuer = https://example.cloudflareaccess.com  # from edge_access_team_domain
master_key = ********  # variable SATCHEL_MASTER_KEY
rate_limits = off  # variable SATCHEL_RATE_LIMITS
trusted_proxies = 10.0.0.0/8,::1/128  # satchel.toml:trusted_proxies
outbound_allow = (not set)  # default
allow_stdio_mcp = (not set)  # default
mcp_registry = https://registry.modelcontextprotocol.io  # default
max_upload_mb = 25  # default
cors_origins = none  # satchel.toml:cors_origins
no_auth = true  # flag --no-auth
default_role = viewer  # default
chromium = (not set)  # default
browser_driver = (not set)  # default
warm_browser = false  # default
browser_cdp = (not set)  # default
browser_proxy_addr = (not set)  # default
allow_cdp = 0  # default
open_agents = 0  # default
replicate = (not set)  # default
replicate_days = 30  # default
cluster = (not set)  # default
cluster_url = (not set)  # default
log_format = text  # default
log_level = info  # default
`
	if got := strings.ReplaceAll(out.String(), filepath.Dir(c.File)+string(filepath.Separator), ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := c.Print(broken{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a failing writer: %v", err)
	}
}

func TestPrintOfDefaults(t *testing.T) {
	c, err := environment{}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"addr = 127.0.0.1:8787  # default\n",
		"edge_access_aud = (not set)  # default\n",
		"master_key = (not set)  # default\n",
		"rate_limits = general=100,chat=20,browser=50,bulk=10,widget=30  # default\n",
		"cors_origins = *  # default\n",
		"no_auth = false  # default\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in\n%s", line, &out)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

// A Config in a log never shows its keys.
func TestKeysAreNotPrinted(t *testing.T) {
	secret := Key([]byte("this-is-the-secret-of-32-bytes-!"))
	c := &Config{MasterKeys: []Key{secret}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c", "%U", "%T %v"} {
		fmt.Fprintf(&out, verb+" ", c.MasterKeys)
		fmt.Fprintf(&out, verb+" ", *c)
		fmt.Fprintf(&out, verb+"\n", secret)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "config", c, "key", secret)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "config", c, "key", secret)
	if err := json.NewEncoder(&out).Encode(c); err != nil {
		t.Fatal(err)
	}
	shown := strings.ToLower(out.String())
	for _, form := range []string{
		"this-is", base64.StdEncoding.EncodeToString(secret[:])[:10], "746869732d", "116 104 105", "116, 104", "0x74",
		"u+0074", "t h i s", "['t' 'h'", "164 150",
	} {
		if strings.Contains(shown, strings.ToLower(form)) {
			t.Errorf("%q appears in\n%s", form, shown)
		}
	}
	if strings.Count(shown, mask) < 30 {
		t.Errorf("the mask is missing in\n%s", shown)
	}
}

// TestSettingsAreDocumented checks that docs/operate.md has a row for each setting,
// with its flag and its variable.
func TestSettingsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range table {
		row := slices.IndexFunc(strings.Split(string(page), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "| `--") &&
				strings.Contains(line, "`--"+s.Flag+"`") &&
				strings.Contains(line, "`"+s.Env+"`")
		})
		if row < 0 {
			t.Errorf("docs/operate.md has no row for --%s and %s", s.Flag, s.Env)
		}
	}
}
