package agent

import "testing"

func TestResponseHeaderIssue(t *testing.T) {
	for name, value := range map[string]string{
		"Content-Type":           "text/html",
		"content-disposition":    `attachment; filename="a.csv"`,
		"X-Kind":                 "order",
		"x-custom":               "",
		"Webhook-Id":             "1",
		"WebHook-Allowed-Origin": "*",
		"Ce-Type":                "t",
		"Retry-After":            "60",
		"ETag":                   `"a"`,
		"Cache-Control":          "no-store",
		"Location":               "https://example.com/a?b#c",
	} {
		if issue := ResponseHeaderIssue(name, value); issue != "" {
			t.Errorf("%s: %s", name, issue)
		}
	}
	for _, location := range []string{"", "/a", "a/b", "?a=1", "//example.com/a", "HTTP://example.com"} {
		if issue := ResponseHeaderIssue("location", location); issue != "" {
			t.Errorf("a redirect to %q: %s", location, issue)
		}
	}
	for _, location := range []string{
		"javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)",
		"data:text/html,x", "vbscript:x", "blob:https://a/b", "file:///etc/passwd", "https:/x", "intent://x",
		"javascript://example.com/%0aalert({{1}})", "/a\r\nX: y",
	} {
		if ResponseHeaderIssue("Location", location) == "" {
			t.Errorf("a redirect to %q is allowed", location)
		}
	}
	for _, name := range []string{
		"Set-Cookie", "Set-Cookie2", "Content-Encoding", "Content-Length", "Content-Security-Policy",
		"Content-Security-Policy-Report-Only", "Content-Location", "Content-Range", "Transfer-Encoding", "Connection",
		"Keep-Alive", "Upgrade", "Trailer", "TE", "Refresh", "X-Frame-Options", "X-Content-Type-Options",
		"X-XSS-Protection", "X-DNS-Prefetch-Control", "X-Permitted-Cross-Domain-Policies", "X-Accel-Redirect",
		"X-Accel-Buffering", "X-Sendfile", "X-SendFile-Type", "X-LIGHTTPD-Send-File", "X-Reproxy-URL",
		"X-SourceMap", "SourceMap", "Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy",
		"Cross-Origin-Resource-Policy", "Cross-Origin-Opener-Policy-Report-Only", "Origin-Agent-Cluster",
		"Strict-Transport-Security", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
		"Timing-Allow-Origin", "Service-Worker-Allowed", "Clear-Site-Data", "Link", "Alt-Svc", "Alt-Used",
		"NEL", "Report-To", "Reporting-Endpoints", "Server-Timing", "Permissions-Policy", "Feature-Policy",
		"Document-Policy", "Referrer-Policy", "Expect-CT", "Public-Key-Pins", "WWW-Authenticate", "Proxy-Authenticate",
		"Authentication-Info", "Origin-Trial", "Speculation-Rules", "Supports-Loading-Mode", "Accept-CH", "Critical-CH",
		"Sec-Session-Registration", "Set-Login", "Vary", "Age", "Date", "Server", "Via", "Host", "Status",
		"Window-Target", "P3P", "Surrogate-Control", "CDN-Cache-Control", "X-Request-Id", "X-RateLimit-Limit",
		"X-API-Version", "X-HTTP-Method-Override", "X-Forwarded-For", "X-Original-URL", "X-Rewrite-URL",
		"X-UA-Compatible", "X-WebKit-CSP", "X-Content-Security-Policy", "", "X Kind", "X-Kind:", "X-\r\nSet-Cookie",
		"Set-Cookie ", "ſet-Cookie",
	} {
		if ResponseHeaderIssue(name, "1") == "" {
			t.Errorf("%q is allowed", name)
		}
	}
	if ResponseHeaderIssue("X-Kind", "a\r\nSet-Cookie: b=c") == "" {
		t.Error("a value of two lines is allowed")
	}
}
