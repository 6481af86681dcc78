package crawl

import (
	"net/url"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"satchel/agent"
)

// CheckPatterns validates the globs of a plan. Its errors name the field.
func CheckPatterns(p *agent.CrawlPlan) error {
	for field, patterns := range map[string][]string{
		"includePatterns": p.IncludePatterns,
		"excludePatterns": p.ExcludePatterns,
	} {
		for _, pattern := range patterns {
			if err := agent.CheckPattern(field, pattern); err != nil {
				return err
			}
			if !doublestar.ValidatePattern(crossSegments(pattern)) {
				return agent.Invalid(field, "contains an invalid glob")
			}
		}
	}
	return nil
}

// globs decides which URLs are visited.
type globs struct{ include, exclude []string }

func globsOf(p agent.CrawlPlan) globs {
	var g globs
	for _, pattern := range p.IncludePatterns {
		g.include = append(g.include, crossSegments(pattern))
	}
	for _, pattern := range p.ExcludePatterns {
		g.exclude = append(g.exclude, crossSegments(pattern))
	}
	return g
}

// allow reports whether a plan allows a URL. Exclude takes precedence.
func (g globs) allow(u *url.URL) bool {
	forms := variants(u)
	return !matches(g.exclude, forms) && (len(g.include) == 0 || matches(g.include, forms))
}

// variants returns the forms of a URL that a glob may match: the whole URL and
// the path, each with and without the query, and without a trailing slash.
func variants(u *url.URL) []string {
	whole, _, _ := strings.Cut(u.String(), "?")
	forms := []string{whole, u.EscapedPath()}
	if u.RawQuery != "" {
		forms = append(forms, u.String(), u.RequestURI())
	}
	for _, f := range forms[:2] {
		if cut := strings.TrimSuffix(f, "/"); cut != f && cut != "" {
			forms = append(forms, cut)
		}
	}
	return forms
}

func matches(patterns, forms []string) bool {
	for _, p := range patterns {
		for _, f := range forms {
			if ok, err := doublestar.Match(p, f); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// crossSegments rewrites "**" inside a segment, as in "/docs**", which doublestar
// treats as "*", so that it also matches slashes.
func crossSegments(pattern string) string {
	var builder strings.Builder
	for rest := pattern; ; {
		index := strings.Index(rest, "**")
		if index < 0 {
			builder.WriteString(rest)
			return builder.String()
		}
		before, after := rest[:index], strings.TrimLeft(rest[index:], "*")
		builder.WriteString(before)
		joinsLeft := builder.Len() > 0 && !strings.HasSuffix(builder.String(), "/")
		joinsRight := after != "" && !strings.HasPrefix(after, "/")
		escaped := strings.HasSuffix(before, `\`)
		switch {
		case escaped || strings.ContainsAny(pattern, "{}[]"): // inside groups it keeps doublestar's meaning
			builder.WriteString("**")
		case joinsLeft && joinsRight:
			builder.WriteString("{*,*/**/*}")
		case joinsLeft:
			builder.WriteString("{*,*/**}")
		case joinsRight:
			builder.WriteString("{*,**/*}")
		default:
			builder.WriteString("**")
		}
		rest = after
	}
}
