// Package cli reads the settings with which an operator starts Satchel. Each
// may come from a flag, an environment variable or satchel.toml; a flag takes
// precedence over a variable, a variable over the file, and the file over the
// default. One table (Settings) describes them all.
package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/agent"
)

// DefaultFile is read from the working directory unless --config or
// SATCHEL_CONFIG names another file. It may be missing.
const DefaultFile = "satchel.toml"

// mask replaces a secret in Print.
const mask = "********"

// Config holds the effective settings. Load has checked every value.
type Config struct {
	File string // the settings file that was read, "" if there was none

	Addr         string // host:port to listen on; the host may be empty, the port 0
	Data         string // data folder
	Linked       string // the file of "satchel open", "" otherwise; not a setting
	PublicURL    string // URL under which the server is reached from outside, without a trailing slash
	PublicURLSet bool   // the operator set PublicURL; otherwise it is derived from Addr

	AccessAUD        string // audience that tokens of the identity proxy must have; "" if none is configured
	AccessJWKSURL    string // URL of the proxy's keys; set whenever AccessAUD is
	AccessTeamDomain string // the full host name of the proxy's team
	AccessIssuer     string // the issuer that tokens must have; "" means any

	MasterKeys     []Key                // the first encrypts, all decrypt; none: the data folder's key file
	RateLimits     map[string]int       // calls per minute by class (RateClasses); nil means no limits
	TrustedProxies []netip.Prefix       // peers whose X-Forwarded-For is trusted
	OutboundAllow  []agent.AddressRange // private addresses that outbound requests may reach
	StdioMCP       string               // file with commands of MCP servers, "" for none
	MCPRegistry    string               // URL of the registry of MCP servers, "" for none
	MaxUploadMB    int                  // largest upload in MiB
	CORSOrigins    []string             // lower-case origins, or only "*" for all; empty means none
	CORSOriginsSet bool                 // the operator set CORSOrigins
	NoAuth         bool                 // open mode, set by the operator
	// role of an unauthenticated caller on the default agent: admin, viewer or none; see Role
	DefaultRole    string
	DefaultRoleSet bool   // the operator set DefaultRole
	Chromium       string // path of the browser, "" to search for it
	BrowserDriver  string // folder of the browser driver, "" to search for it
	WarmBrowser    bool   // start Chromium with the server
	BrowserCDP     string // URL of a Chromium on another machine, with its credentials; "" for none
	// host:port where that Chromium reaches this server; set whenever BrowserCDP is
	BrowserProxyAddr string
	// sessions for clients of the DevTools protocol, open at the same time; 0: none
	AllowCDP      int
	OpenFiles     int    // how many agents' files are kept open
	Replicate     string // where replicas are kept; "" if there are none
	ReplicateDays int    // how far back they go
	Cluster       string // URL of the cluster's database, with its password; "": the server is alone
	ClusterURL    string // where the others of the cluster reach this server; "": see NodeURL
	LogFormat     string // text or json
	LogLevel      slog.Level

	sources map[string]string // the source of each setting, by name
}

// Lookup returns a flag by its name without dashes. given is false if the user
// did not set it.
type Lookup func(flag string) (value string, given bool)

// Load collects the settings from flags, getenv and a TOML file. file is read
// unless --config or SATCHEL_CONFIG names another. file may be missing, one
// named by the user may not; "" reads none. An empty variable counts as not
// set.
//
// The error contains every problem, wrapping one *Error each, in the order of
// the table.
func Load(flags Lookup, getenv func(string) string, file string) (*Config, error) {
	config := &Config{sources: map[string]string{}}
	from := &origin{flags: flags, getenv: getenv}
	problems := from.readFile(file)
	config.File = from.path
	failed := map[string]bool{}
	if len(problems) > 0 {
		// What the file meant to set about access is unknown.
		failed[nameAUD] = true
	}
	for _, setting := range table {
		text, source := setting.Default, "default"
		if given, where, ok, err := from.find(setting); err != nil {
			problems = append(problems, err)
			failed[setting.Name] = true
			continue
		} else if ok {
			text, source = given, where
		}
		config.sources[setting.Name] = source
		if text == "" {
			continue
		}
		if err := setting.set(config, text); err != nil {
			problems = append(problems, &Error{
				Name:   setting.Name,
				Source: source,
				Issue:  err.Error(),
			})
			failed[setting.Name] = true
		}
	}
	problems = append(problems, config.derive(failed)...)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return config, nil
}

// find returns the value from the source with the highest precedence.
func (o *origin) find(setting Setting) (text, source string, ok bool, err error) {
	if text, ok = o.flags(setting.Flag); ok {
		source = "flag --" + setting.Flag
	} else if text = o.getenv(setting.Env); text != "" {
		source = "variable " + setting.Env
	} else if value, inFile := o.values[setting.Name]; inFile {
		source = o.path + ":" + value.key
		if text, err = value.text(setting); err != nil {
			return "", "", false, &Error{
				Name:   setting.Name,
				Source: source,
				Issue:  err.Error(),
			}
		}
	} else {
		return "", "", false, nil
	}
	text = strings.TrimSpace(text)
	if issue := lineIssue(text); issue != "" {
		return "", "", false, &Error{
			Name:   setting.Name,
			Source: source,
			Issue:  issue,
		}
	}
	return text, source, true, nil
}

// lineIssue returns what is wrong with a value that is not a line of text.
func lineIssue(text string) string {
	switch {
	case text == "":
		return "is empty; leave it out to use the default"
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return "holds characters that are not text"
	default:
		return ""
	}
}

// derive sets values that follow from other settings and checks combinations.
// Settings that failed are not checked again.
func (c *Config) derive(failed map[string]bool) []error {
	c.PublicURLSet = c.sources[namePublicURL] != "default"
	c.DefaultRoleSet = c.sources[nameDefaultRole] != "default"
	c.CORSOriginsSet = c.sources[nameCORS] != "default"
	if !c.PublicURLSet {
		c.PublicURL = "http://" + connectAddr(c.Addr)
	}
	if c.AccessTeamDomain != "" {
		derived := "from " + nameTeamDomain
		if c.sources[nameJWKS] == "default" {
			c.AccessJWKSURL = "https://" + c.AccessTeamDomain + "/cdn-cgi/access/certs"
			c.sources[nameJWKS] = derived
		}
		if c.sources[nameIssuer] == "default" {
			c.AccessIssuer = "https://" + c.AccessTeamDomain
			c.sources[nameIssuer] = derived
		}
	}
	problems := c.remoteBrowser(failed)
	if failed[nameAUD] || failed[nameJWKS] || failed[nameTeamDomain] {
		return problems
	}
	if c.AccessAUD != "" && c.AccessJWKSURL == "" {
		return append(problems, &Error{
			Name:   nameAUD,
			Source: c.sources[nameAUD],
			Issue:  "needs " + nameJWKS + " or " + nameTeamDomain + ", or tokens cannot be verified",
		})
	}
	if c.AccessAUD == "" {
		return append(problems, c.withoutAudience(failed)...)
	}
	return problems
}

// withoutAudience rejects an incomplete access configuration: without the
// audience, the server would be open to everyone while the operator believes it
// is protected.
func (c *Config) withoutAudience(failed map[string]bool) []error {
	for _, name := range []string{nameTeamDomain, nameJWKS, nameIssuer} {
		source := c.sources[name]
		if source != "default" && !failed[name] {
			return []error{&Error{
				Name:   name,
				Source: source,
				Issue:  "needs " + nameAUD + ", or no token is required",
			}}
		}
	}
	return nil
}

// connectAddr converts an address to listen on into one to connect to: all
// interfaces become localhost.
func connectAddr(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || (err == nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// PublicAddress returns the server's URL for people, without a trailing slash:
// PublicURL if it is set, otherwise where it listens.
func (c *Config) PublicAddress(listens net.Addr) string {
	if c.PublicURLSet {
		return c.PublicURL
	}
	return "http://" + listens.String()
}

// Loopback reports whether Addr can only be reached from this machine.
func (c *Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Addr)
	return err == nil && isLoopback(host)
}

// LocalAddr returns an address at which this machine reaches the server: Addr,
// with loopback in the place of "all addresses".
func (c *Config) LocalAddr() string {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return c.Addr
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip.Unmap() == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && ip == netip.IPv6Unspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// Role returns the role of an unauthenticated caller on the default agent.
func (c *Config) Role() agent.Role {
	if c.DefaultRole == "none" {
		return agent.RoleNone
	}
	return agent.Role(c.DefaultRole)
}

// Access describes the access control in a sentence that begins with "Access is".
// open reports whether nothing controls access yet, and strangers is the role on the
// default agent of callers without an identity.
func (c *Config) Access(open bool, strangers agent.DefaultRole) string {
	if c.NoAuth {
		return "open (--no-auth): everyone who reaches it acts as owner"
	}
	role := "the role " + strangers.Name()
	if strangers.Role == agent.RoleNone {
		role = "no role"
	}
	text := "callers without an identity or an API key have " + role + " on the default agent and none elsewhere (by " +
		decidedBy[strangers.By] + ")"
	if open {
		return "open: everyone who reaches it acts as owner, until the first API key is made; from then on " + text
	}
	if !strangers.Decided() && strangers.Role != agent.RoleNone {
		text += ". " + UndecidedWarning
	}
	return "controlled: " + text
}

var decidedBy = map[string]string{
	agent.DecidedBySetting: "--default-role or SATCHEL_DEFAULT_ROLE",
	agent.DecidedByChoice:  "the choice of an owner",
	agent.DecidedByRule:    "default; an owner, --default-role or SATCHEL_DEFAULT_ROLE can change it",
}

// UndecidedWarning says what no one has decided, and how to.
const UndecidedWarning = "Warning: " + agent.UndecidedAccess +
	". Decide with PUT /api/access, \"satchel key create NAME --strangers-read yes|no\" or SATCHEL_DEFAULT_ROLE"

// Logger returns a logger that writes as the settings say.
func (c *Config) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// Print writes the effective settings, one per line: "name = value  # source".
// Secrets are masked. The output is not meant as a settings file: there, a default
// would count as set by the operator, which matters to PublicURLSet and
// CORSOriginsSet.
func (c *Config) Print(w io.Writer) error {
	var out strings.Builder
	for _, s := range table {
		value := s.show(c)
		switch {
		case value == "":
			value = "(not set)"
		case s.Secret:
			value = mask
		}
		fmt.Fprintf(&out, "%s = %s  # %s\n", s.Name, value, c.sources[s.Name])
	}
	_, err := io.WriteString(w, out.String())
	return err
}
