package crawl

import (
	"net/netip"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/idna"
)

// maxURL is the longest URL that is followed, in bytes.
const maxURL = 2000

// normalize returns the canonical form of an absolute URL: scheme and host in
// lower case, no default port, no user, no fragment, dot segments resolved,
// percent-encoding only where needed (RFC 3986, section 6.2.2). The query is
// unchanged except for its encoding. ok is false if it is not an http or https
// URL.
func normalize(target *url.URL) (address string, ok bool) {
	scheme := strings.ToLower(target.Scheme)
	if scheme != "http" && scheme != "https" || target.Opaque != "" || target.Host == "" {
		return "", false
	}
	host, ok := normalHost(target.Hostname())
	if !ok {
		return "", false
	}
	if port := target.Port(); port != "" && port != defaultPorts[scheme] {
		host += ":" + port
	}
	address = scheme + "://" + host + withoutDots(escape(target.EscapedPath(), pathCharacters))
	if target.RawQuery != "" {
		address += "?" + escape(target.RawQuery, pathCharacters+"?")
	}
	return address, len(address) <= maxURL
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

func normalHost(host string) (string, bool) {
	if strings.Contains(host, ":") { // IPv6, which url.Parse had in brackets
		addr, err := netip.ParseAddr(host)
		return "[" + addr.String() + "]", err == nil && addr.Zone() == ""
	}
	host = strings.ToLower(host)
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", false
		}
		host = ascii
	}
	if host == "" {
		return "", false
	}
	for i := range len(host) {
		if c := host[i]; (c < 'a' || c > 'z') &&
			(c < '0' || c > '9') &&
			c != '-' &&
			c != '.' &&
			c != '_' {
			return "", false
		}
	}
	return host, true
}

// pathCharacters are the characters other than letters and digits that are not
// encoded in a path: unreserved, sub-delims, ":", "@" and "/".
const pathCharacters = "-._~!$&'()*+,;=:@/"

const unreservedCharacters = "-._~"

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// escape encodes every byte that is neither a letter, a digit nor one of signs,
// decodes unreserved characters, and writes remaining escapes in upper case.
func escape(text, signs string) string {
	const digits = "0123456789ABCDEF"
	var builder strings.Builder
	for index := 0; index < len(text); index++ {
		char := text[index]
		if char == '%' &&
			index+2 < len(text) &&
			hexValue(text[index+1]) >= 0 &&
			hexValue(text[index+2]) >= 0 {
			char = byte(hexValue(text[index+1])<<4 | hexValue(text[index+2]))
			index += 2
			if alphanumeric(char) || strings.IndexByte(unreservedCharacters, char) >= 0 {
				builder.WriteByte(char)
				continue
			}
		} else if alphanumeric(char) || strings.IndexByte(signs, char) >= 0 {
			builder.WriteByte(char)
			continue
		}
		builder.WriteByte('%')
		builder.WriteByte(digits[char>>4])
		builder.WriteByte(digits[char&15])
	}
	return builder.String()
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// withoutDots resolves "." and ".." segments (RFC 3986, section 5.2.4) and
// keeps empty segments and a trailing slash.
func withoutDots(part string) string {
	var kept []string
	segments := strings.Split(strings.TrimPrefix(part, "/"), "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".", "..":
			if s == ".." && len(kept) > 0 {
				kept = kept[:len(kept)-1]
			}
			if last {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, s)
		}
	}
	return "/" + strings.Join(kept, "/")
}

// lineBreaks removes the characters of a link that browsers ignore.
var lineBreaks = strings.NewReplacer("\t", "", "\r", "", "\n", "")

// resolve returns the normalized URL of a link on a page.
func resolve(base *url.URL, link string) (string, bool) {
	link = strings.Trim(link, " \t\r\n\f")
	if link == "" || strings.HasPrefix(link, "#") || len(link) > maxURL {
		return "", false
	}
	if strings.ContainsAny(link, "\t\r\n") {
		link = lineBreaks.Replace(link)
	}
	u, err := base.Parse(link)
	if err != nil || u.User != nil {
		return "", false
	}
	return normalize(u)
}

// site is what a crawl stays on: host and port, with and without www.
type site struct{ host, port string }

func siteOf(u *url.URL) site {
	port := u.Port()
	if port == defaultPorts[u.Scheme] {
		port = ""
	}
	return site{strings.TrimPrefix(strings.ToLower(u.Hostname()), "www."), port}
}

func (s site) contains(u *url.URL) bool {
	return siteOf(u) == s
}

// pageKey returns the part of a URL that is shared by URLs under which servers often
// show the same page: it is without scheme, www, query, index file and trailing slash.
func pageKey(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	p := u.EscapedPath()
	switch path.Base(p) {
	case "index.html", "index.htm", "index.php", "index.xhtml":
		p = path.Dir(p)
	}
	return strings.TrimPrefix(u.Host, "www.") + strings.TrimSuffix(p, "/")
}

// binaryExtensions are extensions of files without text.
var binaryExtensions = map[string]bool{}

func init() {
	for _, ending := range strings.Fields(`.jpg .jpeg .png .gif .webp .avif .svg .ico .bmp .tif .tiff .mp3 .ogg .wav .flac .m4a
		.mp4 .webm .mov .avi .mkv .zip .gz .tgz .bz2 .xz .7z .rar .tar .iso .dmg .exe .msi .deb .rpm .apk .jar
		.css .js .mjs .map .woff .woff2 .ttf .otf .eot .wasm`) {
		binaryExtensions[ending] = true
	}
}

// mayBeText reports whether a URL may lead to text, judging by its extension.
func mayBeText(u *url.URL) bool {
	return !binaryExtensions[strings.ToLower(path.Ext(u.Path))]
}
