package crawl

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// robotsRules are the rules of a robots.txt for one crawler (RFC 9309). nil allows
// everything.
type robotsRules struct {
	rules []robotsRule
	delay time.Duration // Crawl-delay, which many sites use though no standard has it
	none  bool          // nothing is allowed
}

// robotsRule is an Allow or a Disallow with its pattern, as comparableURL returns it.
type robotsRule struct {
	pattern string
	allowed bool
}

// parseRobots reads the rules for a crawler from a robots.txt: of all groups for its
// product token, or else of those for "*". Lines that are not understood are ignored.
func parseRobots(file []byte, product string) *robotsRules {
	var own, general robotsRules
	var isOwn, isGeneral, isNamed bool // the current group's crawlers
	inRules := false                   // after the first rule of a group, User-agent begins another
	text := strings.TrimPrefix(string(file), "\ufeff")
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r == '\n' || r == '\r'
	}) {
		line, _, _ = strings.Cut(line, "#")
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		key = strings.ToLower(strings.TrimSpace(key))
		switch key {
		case "user-agent", "useragent", "user agent":
			if inRules {
				isOwn, isGeneral, inRules = false, false, false
			}
			own, all := strings.EqualFold(productToken(value), product), isAllCrawlers(value)
			isOwn, isGeneral, isNamed = isOwn || own, isGeneral || all, isNamed || own
		case "allow", "disallow", "crawl-delay":
			inRules = inRules || key != "crawl-delay"
			if isOwn {
				own.add(key, value)
			}
			if isGeneral {
				general.add(key, value)
			}
		}
	}
	if isNamed {
		return &own
	}
	return &general
}

// productToken returns the product token of a User-agent line, which may have a
// version: "Satchel/1.0".
func productToken(value string) string {
	end := strings.IndexFunc(value, func(r rune) bool {
		return (r < 'a' || r > 'z') &&
			(r < 'A' || r > 'Z') &&
			r != '-' &&
			r != '_'
	})
	if end < 0 {
		return value
	}
	return value[:end]
}

func isAllCrawlers(value string) bool {
	first, _, _ := strings.Cut(value, " ")
	return first == "*"
}

// maxStatedDelay limits a Crawl-delay, in seconds; Politeness has a lower limit.
const maxStatedDelay = 24 * 60 * 60

func (r *robotsRules) add(key, value string) {
	switch {
	case value == "": // an empty pattern matches nothing
	case key == "crawl-delay":
		if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 {
			seconds = math.Min(seconds, maxStatedDelay)
			r.delay = max(r.delay, time.Duration(seconds*float64(time.Second)))
		}
	default:
		r.rules = append(r.rules, robotsRule{comparableURL(value, true), key == "allow"})
	}
}

// allow reports whether a URL's path and query may be fetched: the longest pattern that
// matches decides, Allow before Disallow.
func (r *robotsRules) allow(uri string) bool {
	switch {
	case r == nil || uri == "/robots.txt":
		return true
	case r.none:
		return false
	}
	allowed, longest := true, 0
	uri = comparableURL(uri, false)
	for _, rule := range r.rules {
		length := len(rule.pattern)
		if length < longest || length == longest && !rule.allowed || !rule.matches(uri) {
			continue
		}
		allowed, longest = rule.allowed, length
	}
	return allowed
}

// matches reports whether a URL begins with the pattern, in which * stands for any
// characters and a final $ for the URL's end.
func (r robotsRule) matches(uri string) bool {
	pattern, toEnd := strings.CutSuffix(r.pattern, "$")
	pieces := strings.Split(pattern, "*")
	rest, found := strings.CutPrefix(uri, pieces[0])
	if !found {
		return false
	}
	if len(pieces) == 1 {
		return !toEnd || rest == ""
	}
	last := len(pieces) - 1
	for _, piece := range pieces[1:last] {
		if _, rest, found = strings.Cut(rest, piece); !found {
			return false
		}
	}
	if toEnd {
		return strings.HasSuffix(rest, pieces[last])
	}
	return strings.Contains(rest, pieces[last])
}

// Characters that mean the same whether they are percent-encoded or not, as far as
// paths and queries are compared, and those that separate their parts.
const (
	sameInPath     = "-._~!&'()+,;=:@"
	sameInQuery    = "-._~!'(),;:@/?"
	partSeparators = "/?&=+"
)

// comparableURL returns a path and query, or a pattern, such that equal ones have the
// same characters (RFC 9309, section 2.2.2). Only in a pattern * and a final $ are not
// encoded.
func comparableURL(text string, isPattern bool) string {
	const digits = "0123456789ABCDEF"
	same := sameInPath
	var builder strings.Builder
	for index := 0; index < len(text); index++ {
		char, encoded := text[index], false
		if char == '%' &&
			index+2 < len(text) &&
			hexValue(text[index+1]) >= 0 &&
			hexValue(text[index+2]) >= 0 {
			char, encoded = byte(hexValue(text[index+1])<<4|hexValue(text[index+2])), true
			index += 2
		}
		isWildcard := isPattern && !encoded && (char == '*' || char == '$' && index == len(text)-1)
		isSeparator := !encoded && strings.IndexByte(partSeparators, char) >= 0
		if isWildcard || isSeparator || alphanumeric(char) || strings.IndexByte(same, char) >= 0 {
			builder.WriteByte(char)
		} else {
			builder.WriteByte('%')
			builder.WriteByte(digits[char>>4])
			builder.WriteByte(digits[char&15])
		}
		if char == '?' && !encoded {
			same = sameInQuery
		}
	}
	return builder.String()
}
