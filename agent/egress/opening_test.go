package egress

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"satchel/agent"
)

// TestRefusalsNameTheSetting checks that a refusal says exactly how the operator opens the
// address, unless that would be wrong or show what a name resolves to.
func TestRefusalsNameTheSetting(t *testing.T) {
	c := New(Policy{})
	for url, value := range map[string]string{
		"http://127.0.0.1:1234/v1":          "127.0.0.1:1234",
		"http://localhost:11434/v1":         "127.0.0.1:11434",
		"http://[::1]:8080":                 "[::1]:8080",
		"https://192.168.1.20/v1":           "192.168.1.20:443",
		"http://10.1.2.3":                   "10.1.2.3:80",
		"http://169.254.169.254/latest":     "",
		"http://[::ffff:169.254.169.254]/x": "",
		"http://0.0.0.0:1234":               "",
		"ftp://127.0.0.1":                   "",
	} {
		_, err := c.CheckField("url", url)
		var known *agent.Error
		if !errors.As(err, &known) {
			t.Errorf("%s: %v", url, err)
			continue
		}
		setting := AllowSetting + "=" + value
		issue, _ := known.Details["issue"].(string)
		if strings.Contains(url, "0.0.0.0") && !strings.Contains(Refusal("url", known.Err).Message, "write 127.0.0.1") {
			t.Errorf("%s: %v", url, Refusal("url", known.Err))
		}
		if value == "" {
			if known.Details["value"] != nil || strings.Contains(known.Message, AllowSetting) {
				t.Errorf("%s: %v", url, known)
			}
			continue
		}
		if known.Details["value"] != value ||
			known.Details["address"] != value ||
			known.Details["setting"] != AllowSetting ||
			!strings.HasSuffix(known.Message, setting) ||
			!strings.HasSuffix(issue, setting) {
			t.Errorf("%s: %v, %v", url, known, known.Details)
		}
		opened := New(Policy{Allow: agent.MustAddressRanges(value)})
		if _, err := opened.CheckURL(url); err != nil {
			t.Errorf("%s with %s: %v", url, setting, err)
		}
	}
	hidden := &Error{Code: CodeBlocked, Host: "ollama", Addr: thisMachine, Port: 11434, Reason: "loopback address"}
	if known := Explain(hidden); !strings.HasSuffix(known.Message, AllowSetting+"=ADDRESS:11434") ||
		strings.Contains(known.Message, "127") {
		t.Errorf("a name: %v", known)
	}
}

// TestOpenedPort checks that an opened port opens no other port of its address.
func TestOpenedPort(t *testing.T) {
	open := serveOn(t, openedIP, "0", http.NotFoundHandler())
	closed := serveOn(t, openedIP, "0", http.NotFoundHandler())
	address := strings.TrimPrefix(open.URL, "http://")
	c := New(Policy{Allow: agent.MustAddressRanges(address)})
	_, port, _ := strings.Cut(address, ":")
	for _, url := range []string{open.URL, "http://localhost:" + port} {
		resp, err := c.HTTP().Get(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		resp.Body.Close()
	}
	if resp, err := c.HTTP().Get(closed.URL); !errors.Is(err, ErrBlocked) {
		t.Errorf("another port: %v, %v", resp, err)
	}
}
