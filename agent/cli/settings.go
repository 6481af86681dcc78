package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"satchel/agent"
)

// Setting describes one setting, from which main defines a flag and help prints
// its text.
type Setting struct {
	Name    string // the key in the settings file
	Flag    string // without dashes: Name with hyphens
	Env     string // the environment variable
	Default string // as text; "" means not set
	Usage   string // one line
	Secret  bool   // its value is never shown
	Bool    bool   // a flag that may be given without a value

	list  bool // comma-separated; the file may hold an array
	pairs bool // k=v, comma-separated; the file may hold a table
	set   func(*Config, string) error
	show  func(*Config) string // the effective value as text, "" if not set
}

// Names that Load needs in addition to the table.
const (
	nameAddr        = "addr"
	namePublicURL   = "public_url"
	nameCORS        = "cors_origins"
	nameDefaultRole = "default_role"
	nameAUD         = "edge_access_aud"
	nameJWKS        = "edge_access_jwks_url"
	nameTeamDomain  = "edge_access_team_domain"
	nameIssuer      = "edge_access_issuer"
	nameCDP         = "browser_cdp"
	nameProxyAddr   = "browser_proxy_addr"
)

// configFile names the settings file itself, so it cannot be set in one.
var configFile = name(Setting{
	Name:  "config",
	Usage: "settings file (default " + DefaultFile + " in the working directory)",
})

// table connects each setting to its field, its parser and the text that Print
// shows.
var table = []Setting{
	bind(
		Setting{Name: nameAddr, Default: "127.0.0.1:8787", Usage: "address to listen on"},
		func(c *Config) *string { return &c.Addr },
		parseAddr,
		showText,
	),
	bind(
		Setting{Name: "data", Default: "./data", Usage: "data folder"},
		func(c *Config) *string { return &c.Data },
		parseText,
		showText,
	),
	bind(
		Setting{
			Name:  namePublicURL,
			Usage: "address under which the server is reached from outside (default http:// and the address)",
		},
		func(c *Config) *string { return &c.PublicURL },
		parsePublicURL,
		showText,
	),
	bind(
		Setting{Name: nameAUD, Usage: "audience tag of the identity proxy; unset means open mode"},
		func(c *Config) *string { return &c.AccessAUD },
		parseText,
		showText,
	),
	bind(
		Setting{Name: nameJWKS, Usage: "address of the identity proxy's keys (default from the team domain)"},
		func(c *Config) *string { return &c.AccessJWKSURL },
		parseURL,
		showText,
	),
	bind(
		Setting{Name: nameTeamDomain, Usage: "team domain of the identity proxy, NAME or NAME.cloudflareaccess.com"},
		func(c *Config) *string { return &c.AccessTeamDomain },
		parseTeamDomain,
		showText,
	),
	bind(
		Setting{Name: nameIssuer, Usage: "issuer that tokens must name (default from the team domain)"},
		func(c *Config) *string { return &c.AccessIssuer },
		parseText,
		showText,
	),
	bind(
		Setting{
			Name:   "master_key",
			Secret: true,
			list:   true,
			Usage: "base64 keys of 32 bytes, comma-separated; the first encrypts, the others only decrypt " +
				"(default DATA/master.key)",
		},
		func(c *Config) *[]Key { return &c.MasterKeys },
		parseKeys,
		showKeys,
	),
	bind(
		Setting{
			Name:    "rate_limits",
			pairs:   true,
			Default: defaultRateLimits,
			Usage:   "calls per minute by class, or off",
		},
		func(c *Config) *map[string]int { return &c.RateLimits },
		parseRateLimits,
		showRateLimits,
	),
	bind(
		Setting{Name: "trusted_proxies", list: true, Usage: "proxies whose X-Forwarded-For is trusted, as CIDRs"},
		func(c *Config) *[]netip.Prefix { return &c.TrustedProxies },
		parsePrefixes,
		showList,
	),
	bind(
		Setting{
			Name:  "outbound_allow",
			list:  true,
			Usage: "private addresses that outbound requests may reach, as CIDRs, addresses or ADDRESS:PORT",
		},
		func(c *Config) *[]agent.AddressRange { return &c.OutboundAllow },
		parseRanges,
		showList,
	),
	bind(
		Setting{Name: "allow_stdio_mcp", Usage: "file with commands of MCP servers that agents may run as programs"},
		func(c *Config) *string { return &c.StdioMCP },
		parseText,
		showText,
	),
	bind(
		Setting{
			Name:    "mcp_registry",
			Default: "https://registry.modelcontextprotocol.io",
			Usage:   "registry of MCP servers that the catalogue searches, or off",
		},
		func(c *Config) *string { return &c.MCPRegistry },
		parseRegistry,
		showRegistry,
	),
	bind(
		Setting{Name: "max_upload_mb", Default: "25", Usage: "largest upload in MiB"},
		func(c *Config) *int { return &c.MaxUploadMB },
		numberIn(1, 4096),
		strconv.Itoa,
	),
	bind(
		Setting{
			Name:    nameCORS,
			list:    true,
			Default: "*",
			Usage:   "origins whose pages may read responses: a list, * or none",
		},
		func(c *Config) *[]string { return &c.CORSOrigins },
		parseOrigins,
		showOrigins,
	),
	bind(
		Setting{
			Name:    "no_auth",
			Bool:    true,
			Default: "false",
			Usage:   "allow everyone to do everything, on any address",
		},
		func(c *Config) *bool { return &c.NoAuth },
		parseBool,
		strconv.FormatBool,
	),
	bind(
		Setting{
			Name:    nameDefaultRole,
			Default: "viewer",
			Usage: "role on the default agent without an identity, under access control: viewer, admin or none; " +
				"until it is set, an owner may choose",
		},
		func(c *Config) *string { return &c.DefaultRole },
		oneOf("admin", "viewer", "none"),
		showText,
	),
	bind(
		Setting{Name: "chromium", Usage: "path of Chromium (default: search for it)"},
		func(c *Config) *string { return &c.Chromium },
		parseText,
		showText,
	),
	bind(
		Setting{Name: "browser_driver", Usage: "folder of the browser driver (default: search for it)"},
		func(c *Config) *string { return &c.BrowserDriver },
		parseText,
		showText,
	),
	bind(
		Setting{
			Name:    "warm_browser",
			Bool:    true,
			Default: "false",
			Usage:   "start Chromium with the server instead of with the first session, and keep it running",
		},
		func(c *Config) *bool { return &c.WarmBrowser },
		parseBool,
		strconv.FormatBool,
	),
	bind(
		Setting{
			Name:   nameCDP,
			Secret: true,
			Usage:  "Chromium on another machine for sessions, as ws://, wss:// or http://HOST:PORT",
		},
		func(c *Config) *string { return &c.BrowserCDP },
		parseCDP,
		showText,
	),
	bind(
		Setting{
			Name: nameProxyAddr,
			Usage: "host:port where that Chromium reaches this server, which listens there " +
				"(default: a port of 127.0.0.1)",
		},
		func(c *Config) *string { return &c.BrowserProxyAddr },
		parseProxyAddr,
		showText,
	),
	bind(
		Setting{
			Name:    "allow_cdp",
			Default: "0",
			Usage:   "how many browser sessions for Playwright and Puppeteer may be open, each with its own Chromium",
		},
		func(c *Config) *int { return &c.AllowCDP },
		numberIn(0, 100),
		strconv.Itoa,
	),
	bind(
		Setting{
			Name:    "open_agents",
			Default: "0",
			Usage:   "how many agents' files are kept open; 0: as many as the memory allows",
		},
		func(c *Config) *int { return &c.OpenFiles },
		numberIn(0, 100_000),
		strconv.Itoa,
	),
	bind(
		Setting{
			Name:  "replicate",
			Usage: "folder or s3://BUCKET/PREFIX where replicas of all agents are kept, a second or two behind",
		},
		func(c *Config) *string { return &c.Replicate },
		parseText,
		showText,
	),
	bind(
		Setting{
			Name:    "replicate_days",
			Default: "30",
			Usage:   "how many days back an agent can be restored from its replica",
		},
		func(c *Config) *int { return &c.ReplicateDays },
		numberIn(1, 3650),
		strconv.Itoa,
	),
	bind(
		Setting{
			Name:   "cluster",
			Secret: true,
			Usage:  "postgres:// URL of the database through which this server shares its agents with others",
		},
		func(c *Config) *string { return &c.Cluster },
		parseDatabase,
		showText,
	),
	bind(
		Setting{
			Name: "cluster_url",
			Usage: "URL at which the other servers of the cluster reach this one (default: http:// and the " +
				"address that it listens on)",
		},
		func(c *Config) *string { return &c.ClusterURL },
		parseText,
		showText,
	),
	bind(
		Setting{Name: "log_format", Default: "text", Usage: "text or json"},
		func(c *Config) *string { return &c.LogFormat },
		oneOf("text", "json"),
		showText,
	),
	bind(
		Setting{Name: "log_level", Default: "info", Usage: "debug, info, warn or error"},
		func(c *Config) *slog.Level { return &c.LogLevel },
		parseLevel,
		showLevel,
	),
}

// bind connects a setting to a field of Config. Every value is parsed,
// including the default.
func bind[T any](s Setting, field func(*Config) *T, parse func(string) (T, error), show func(T) string) Setting {
	s = name(s)
	s.set = func(c *Config, text string) error {
		value, err := parse(text)
		if err != nil {
			return err
		}
		*field(c) = value
		return nil
	}
	s.show = func(c *Config) string {
		return show(*field(c))
	}
	return s
}

// name derives flag and variable. Those of the identity proxy have their own
// names, the others the prefix SATCHEL_.
func name(s Setting) Setting {
	s.Flag = strings.ReplaceAll(s.Name, "_", "-")
	s.Env = strings.ToUpper(s.Name)
	if !strings.HasPrefix(s.Name, "edge_access_") {
		s.Env = "SATCHEL_" + s.Env
	}
	return s
}

func showRegistry(address string) string { return cmp.Or(address, "off") }

func showText(text string) string { return text }

// parseDatabase accepts URLs of PostgreSQL. The error does not have the value, which
// may have a password in it.
func parseDatabase(text string) (string, error) {
	if u, err := url.Parse(text); text != "" &&
		(err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "") {
		return "", errors.New("must be a URL like postgres://user:password@host/database")
	}
	return text, nil
}

func showKeys(keys []Key) string {
	if len(keys) == 0 {
		return ""
	}
	return mask
}

func showRateLimits(limits map[string]int) string {
	if limits == nil {
		return "off"
	}
	parts := make([]string, len(RateClasses))
	for i, class := range RateClasses {
		parts[i] = class + "=" + strconv.Itoa(limits[class])
	}
	return strings.Join(parts, ",")
}

func showList[T fmt.Stringer](list []T) string {
	parts := make([]string, len(list))
	for i, entry := range list {
		parts[i] = entry.String()
	}
	return strings.Join(parts, ",")
}

func showOrigins(origins []string) string {
	if len(origins) == 0 {
		return "none"
	}
	return strings.Join(origins, ",")
}

func showLevel(level slog.Level) string {
	return strings.ToLower(level.String())
}
