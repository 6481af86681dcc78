package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
)

// RateClasses are the classes of calls that have a limit of their own.
var RateClasses = []string{"general", "chat", "browser", "bulk", "widget"}

const defaultRateLimits = "general=100,chat=20,browser=50,bulk=10,widget=30"

var rateDefaults = map[string]int{
	"general": 100,
	"chat":    20,
	"browser": 50,
	"bulk":    10,
	"widget":  30,
}

// Limits: entries of a list, and calls per minute.
const (
	maxList = 1000
	maxRate = 1_000_000
)

var errTooLong = fmt.Errorf("has more than %d entries", maxList)

func parseText(text string) (string, error) { return text, nil }

func parseAddr(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%s is not host:port", quote(text))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("port %s is not a number from 0 to 65535", quote(port))
	}
	if host != "" && !isHost(host) {
		return "", fmt.Errorf("%s is neither an IP address nor a host name", quote(host))
	}
	return text, nil
}

// hostname matches a DNS name in lower case: letters, digits, inner hyphens,
// and the underscores of private networks.
var hostname = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

func isHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || (len(host) <= 253 && hostname.MatchString(strings.ToLower(host)))
}

// parseURL parses an http or https URL. Its errors do not contain it, because
// URLs may contain passwords.
func parseURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("is not a URL")
	case (u.Scheme != "http" && u.Scheme != "https") || !isHost(u.Hostname()):
		return "", errors.New("is not a URL of the form https://host")
	case u.User != nil:
		return "", errors.New("must not contain a user name or password")
	case u.Fragment != "":
		return "", errors.New("must not contain a fragment")
	case !validPort(u.Host, u.Port()):
		return "", errors.New("has a port outside 1 to 65535")
	}
	return text, nil
}

// parseRegistry parses a URL, or off, which is "".
func parseRegistry(text string) (string, error) {
	if strings.EqualFold(text, "off") {
		return "", nil
	}
	return parseURL(text)
}

func validPort(host, port string) bool {
	if port == "" {
		return !strings.HasSuffix(host, ":")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// parsePublicURL parses a base URL to which paths are appended.
func parsePublicURL(text string) (string, error) {
	if _, err := parseURL(text); err != nil {
		return "", err
	}
	if strings.ContainsAny(text, "?#") {
		return "", errors.New("must not contain a query or a fragment")
	}
	return strings.TrimRight(text, "/"), nil
}

// parseTeamDomain parses a team's name, its host name, or a URL of it, and
// returns the host name.
func parseTeamDomain(text string) (string, error) {
	domain := strings.ToLower(strings.TrimSuffix(text, "/"))
	domain = strings.TrimPrefix(domain, "https://")
	host, port := domain, ""
	if before, after, found := strings.Cut(domain, ":"); found {
		host, port = before, after
		if !validPort("", port) || port == "" {
			return "", errors.New("is not a domain like example.cloudflareaccess.com")
		}
		port = ":" + port
	}
	if _, err := netip.ParseAddr(host); err == nil || !isHost(host) {
		return "", errors.New("is not a domain like example.cloudflareaccess.com")
	}
	if !strings.Contains(host, ".") {
		host += ".cloudflareaccess.com"
	}
	return host + port, nil
}

// parseRateLimits parses class=number pairs. Classes that are not named keep
// their defaults. off yields nil.
func parseRateLimits(text string) (map[string]int, error) {
	if strings.EqualFold(text, "off") {
		return nil, nil
	}
	limits := maps.Clone(rateDefaults)
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		class, number, found := strings.Cut(part, "=")
		class, number = strings.TrimSpace(class), strings.TrimSpace(number)
		if !found {
			return nil, fmt.Errorf("%s is not class=number, like %s", quote(strings.TrimSpace(part)), defaultRateLimits)
		}
		if !slices.Contains(RateClasses, class) {
			return nil, fmt.Errorf(
				"class %s is unknown, the classes are %s",
				quote(class),
				strings.Join(RateClasses, ", "),
			)
		}
		if seen[class] {
			return nil, fmt.Errorf("class %s is set twice", class)
		}
		limit, err := numberIn(1, maxRate)(number)
		if err != nil {
			return nil, fmt.Errorf("class %s: %w", class, err)
		}
		seen[class] = true
		limits[class] = limit
	}
	return limits, nil
}

// parsePrefixes parses comma-separated CIDRs and single addresses.
func parsePrefixes(text string) ([]netip.Prefix, error) {
	ranges, err := parseRanges(text)
	var prefixes []netip.Prefix
	for _, r := range ranges {
		if r.Port != 0 {
			return nil, fmt.Errorf("%q must not have a port", r)
		}
		prefixes = append(prefixes, r.Prefix)
	}
	return prefixes, err
}

// parseRanges parses comma-separated CIDRs, addresses, and addresses with a port.
func parseRanges(text string) ([]agent.AddressRange, error) {
	var ranges []agent.AddressRange
	for part := range strings.SplitSeq(text, ",") {
		if len(ranges) == maxList {
			return nil, errTooLong
		}
		r, err := agent.ParseAddressRange(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// parseOrigins parses comma-separated origins as browsers send them. Only "*"
// means all, an empty list none.
func parseOrigins(text string) ([]string, error) {
	switch strings.ToLower(text) {
	case "*":
		return []string{"*"}, nil
	case "none":
		return []string{}, nil
	}
	var origins []string
	for part := range strings.SplitSeq(text, ",") {
		if len(origins) == maxList {
			return nil, errTooLong
		}
		origin, err := parseOrigin(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		origins = append(origins, origin)
	}
	return origins, nil
}

// parseOrigin returns the serialization of RFC 6454, section 6.2: lower case,
// without the scheme's default port.
func parseOrigin(text string) (string, error) {
	if text == "*" {
		return "", errors.New(`"*" must stand alone`)
	}
	u, err := url.Parse(strings.ToLower(text))
	if err != nil || u.Scheme == "" || !isHost(u.Hostname()) || u.User != nil || strings.ContainsAny(text, "?#") ||
		(u.Path != "" && u.Path != "/") || !validPort(u.Host, u.Port()) {
		return "", errors.New("takes origins of the form https://host or https://host:port, separated by commas")
	}
	host := u.Host
	if (u.Scheme == "http" && u.Port() == "80") || (u.Scheme == "https" && u.Port() == "443") {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host, nil
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes", "on":
		return true, nil
	case "false", "0", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%s is neither true nor false", quote(text))
}

func numberIn(low, high int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("%s is not a whole number from %d to %d", quote(text), low, high)
		}
		return n, nil
	}
}

func oneOf(choices ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		choice := strings.ToLower(text)
		if !slices.Contains(choices, choice) {
			return "", fmt.Errorf("%s must be one of %s", quote(text), strings.Join(choices, ", "))
		}
		return choice, nil
	}
}

func parseLevel(text string) (slog.Level, error) {
	name, err := oneOf("debug", "info", "warn", "error")(text)
	if err != nil {
		return 0, err
	}
	var level slog.Level
	err = level.UnmarshalText([]byte(name))
	return level, err
}
