package crawl

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestRobotsRules reads files as RFC 9309 requires, whatever else is in them.
func TestRobotsRules(t *testing.T) {
	const all = "User-agent: *\n"
	for _, c := range []struct{ name, file, closed, open string }{
		{"nothing", "", "", "/ /a"},
		{"no rules", all, "", "/ /a"},
		{"an empty rule", all + "Disallow:\nDisallow: # nothing", "", "/ /a"},
		{"all", all + "Disallow: /", "/ /a /a?b /%C3%BC", "/robots.txt"},
		{
			"a prefix",
			all + "Disallow: /fish",
			"/fish /fish.html /fish/a /fishheads?a=b",
			"/ /Fish /catfish /desert/fish",
		},
		{"a folder", all + "Disallow: /fish/", "/fish/ /fish/?a /fish/a", "/fish /fish.html"},
		{"a query", all + "Disallow: /*?id=", "/a?id=1 /?id=", "/a?x&id=1 /id="},
		{"a star", all + "Disallow: /*.php", "/a.php /a/b.phps?c /.php", "/ /a.PHP /php"},
		{"stars", all + "Disallow: /a*b*c", "/abc /axxbyyc/z /a/b/c", "/acb /xabc"},
		{"needless stars", all + "Disallow: /fish**", "/fish /fish/a", "/"},
		{"a star first", all + "Disallow: *.gif", "/a.gif /b/c.gif?d", "/gif"},
		{"an end", all + "Disallow: /*.php$", "/a.php /a/b.php", "/a.php?b /a.php5 /a.php/"},
		{"an end after a repeated part", all + "Disallow: /a*b$", "/ab /abxb", "/abx"},
		{"an end alone", all + "Disallow: /$", "/", "/a /?"},
		{"dollars", all + "Disallow: /$a", "/$a /%24a", "/a"},
		{"an encoded star", all + "Disallow: /a%2Ab", "/a*b /a%2ab", "/axb /a%2Fb"},
		{"an encoded dollar", all + "Disallow: /a%24", "/a$ /a%24b", "/a"},
		{"letters that are encoded", all + "Disallow: /%66oo/%7Ejo%2D", "/foo/~jo- /f%6fo/~jo-x", "/foo"},
		{"lower case of codes", all + "Disallow: /%e3%83%84", "/%E3%83%84 /ツ", "/%E3%83%85"},
		{"letters of other scripts", all + "Disallow: /über", "/%C3%BCber", "/uber"},
		{
			"separators that are encoded",
			all + "Disallow: /a%2Fb\nDisallow: /c?d=https://e",
			"/a%2Fb /c?d=https%3A%2F%2Fe /c?d=https://e/f",
			"/a/b",
		},
		{"other signs", all + "Disallow: /a:b,c\nDisallow: /d%3Ae", "/a:b,c /a%3Ab%2Cc /d:e", "/a"},
		{"percent signs", all + "Disallow: /100%\nDisallow: /%zz", "/100%25 /%25zz", "/100"},
		{"the longer one", all + "Disallow: /\nAllow: /p", "/ /a", "/p /page"},
		{"the longer one first", all + "Allow: /folder/page\nDisallow: /folder", "/folder /folder/a", "/folder/page"},
		{"the longer one with a star", all + "Allow: /page\nDisallow: /*.htm", "/page.htm", "/page"},
		{"a tie", all + "Disallow: /folder\nAllow: /folder\n", "", "/folder /folder/a"},
		{"a tie the other way", all + "Allow: /folder\nDisallow: /folder\n", "", "/folder /folder/a"},
		{"a tie by encoding", all + "Disallow: /%66\nAllow: /f\n", "", "/f"},

		{"line ends", "User-agent: *\rDisallow: /a\r\nDisallow: /b\n\nDisallow: /c", "/a /b /c", "/"},
		{"a byte order mark", "\ufeffUser-agent: *\nDisallow: /a", "/a", "/"},
		{"blanks and cases", " user-AGENT\t:\t*  # all\n\tDISALLOW :/a# closed\n", "/a", "/"},
		{"a blank before the colon", "User-agent : *\nDisallow : /a", "/a", "/"},
		{"other spellings", "useragent: *\nDisallow: /a\n", "/a", "/"},
		{"a rule before the first group", "Disallow: /a\n" + all + "Disallow: /b", "/b", "/ /a"},
		{"only rules without a group", "Disallow: /\n", "", "/ /a"},
		{
			"odd lines",
			"<html>\n::\nhello\n" + all +
				"Crawl-delay: ten\nNoindex: /x\nDisallow\nDisallow: /a\n\xff\xfe: /\nHost: example.com",
			"/a",
			"/ /x",
		},
		{
			"a group with other lines",
			all + "Sitemap: https://example.com/map.xml\nDisallow: /a\nClean-param: x\nDisallow: /b",
			"/a /b",
			"/",
		},
		{
			"a group that a sitemap does not end",
			"User-agent: Other\nSitemap: x\nUser-agent: Satchel\nDisallow: /a",
			"/a",
			"/",
		},
		{
			"a group that a delay does not end",
			"User-agent: Satchel\nCrawl-delay: 1\nUser-agent: Other\nDisallow: /a",
			"/a",
			"/",
		},

		{"a group of its own", all + "Disallow: /\nUser-agent: Satchel\nDisallow: /a", "/a", "/ /b"},
		{"an empty group of its own", all + "Disallow: /\nUser-agent: Satchel\n", "", "/ /a"},
		{"a group of its own before", "User-agent: satchel\nDisallow: /a\n\n" + all + "Disallow: /", "/a", "/ /b"},
		{
			"two groups of its own",
			"User-agent: Satchel\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: SATCHEL\nDisallow: /c",
			"/a /c",
			"/ /b",
		},
		{
			"two groups for all",
			all + "Disallow: /a\nUser-agent: x\nDisallow: /b\n" + all + "Disallow: /c",
			"/a /c",
			"/ /b",
		},
		{"a shared group", "User-agent: a\nUser-agent: Satchel\nUser-agent: b\nDisallow: /a", "/a", "/"},
		{"with a version", "User-agent: Satchel/2.0 (+https://example.com)\nDisallow: /a", "/a", "/"},
		{"a longer name", "User-agent: SatchelBot\nUser-agent: Satchel-News\nDisallow: /", "", "/ /a"},
		{"a shorter name", "User-agent: Satch\nUser-agent: S\nDisallow: /", "", "/ /a"},
		{"others only", "User-agent: Googlebot\nDisallow: /", "", "/ /a"},
		{"all with a comment", "User-agent: * (all of you)\nDisallow: /a", "/a", "/"},
		{"a name that begins with a star", "User-agent: *bot\nDisallow: /a", "", "/a"},
	} {
		rules := parseRobots([]byte(c.file), product)
		for _, uri := range strings.Fields(c.closed) {
			if rules.allow(uri) {
				t.Errorf("%s: %s is allowed", c.name, uri)
			}
		}
		for _, uri := range strings.Fields(c.open) {
			if !rules.allow(uri) {
				t.Errorf("%s: %s is not allowed", c.name, uri)
			}
		}
	}
}

func TestCrawlDelays(t *testing.T) {
	for file, want := range map[string]time.Duration{
		"User-agent: *\nCrawl-delay: 2":                                                           2 * time.Second,
		"User-agent: *\nCrawl-delay: 0.5 # s":                                                     time.Second / 2,
		"User-agent: *\nCrawl-delay: ten\nCrawl-delay: -1\nCrawl-delay: NaN\nCrawl-delay:":        0,
		"User-agent: *\nCrawl-delay: 1e300":                                                       24 * time.Hour,
		"User-agent: *\nCrawl-delay: 9\nUser-agent: Satchel\nCrawl-delay: 1\nDisallow: /a":        time.Second,
		"User-agent: *\nCrawl-delay: 9\nDisallow:\nUser-agent: Satchel\nCrawl-delay: 1\nAllow: /": time.Second,
	} {
		if got := parseRobots([]byte(file), product).delay; got != want {
			t.Errorf("%q: %v, want %v", file, got, want)
		}
	}
}

// An odd line leaves the other rules of a site's file in force.
func TestOddRobotsFile(t *testing.T) {
	s := newSite(t)
	s.set(
		"/robots.txt",
		rawResponse(http.StatusOK, "", "Disallow: /open\nUser-agent : *\nCrawl-delay: ten\nDisallow: /%73ecret"),
	)
	s.page("/", "start", "/open", "/secret")
	s.page("/open", "open")
	s.page("/secret", "secret")
	if o := walkSite(t, s, nil); o.paths() != "/ /open" {
		t.Errorf("got %s", o.paths())
	}
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /*a%2f$\nAllow: /b?c", "/a%2Fb?c")
	f.Fuzz(func(t *testing.T, file, address string) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		uri := u.RequestURI()
		parseRobots([]byte(file), product).allow(uri)
		pattern := comparableURL(uri, false)
		if comparableURL(pattern, true) != pattern || comparableURL(pattern, false) != pattern {
			t.Errorf("%q is not comparable: %q", uri, pattern)
		}
		if !(robotsRule{pattern: pattern}).matches(pattern) {
			t.Errorf("%q does not match itself", pattern)
		}
	})
}
