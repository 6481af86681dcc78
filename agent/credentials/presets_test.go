package credentials

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/egress"
)

// TestPresets creates a credential of every preset.
func TestPresets(t *testing.T) {
	all := Presets("")
	if len(all) < 80 {
		t.Errorf("%d presets", len(all))
	}
	for _, p := range all {
		values, secret := map[string]string{}, false
		for _, f := range p.Fields {
			secret = secret || f.Secret
			if values[f.Name] = f.Default; f.Default == "" {
				values[f.Name] = "acme"
			}
			if f.Name == "domain" || f.Name == "host" && f.Default == "" {
				values[f.Name] = "acme.example.com"
			}
		}
		if !secret || p.Title == "" || p.Category == "" || !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(p.ID) {
			t.Errorf("%s is incomplete: %+v", p.ID, p)
		}
		c, values, err := FillPreset(p.ID, values)
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}
		c.Name = "test"
		if p.Config.Grant == agent.GrantJWT {
			values = nil // the value must be a private key
		}
		if err := c.Validate(values); err != nil {
			t.Errorf("%s: %v", p.ID, err)
		}
		hosts, err := egress.ParseHosts("hosts", c.Hosts)
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
		}
		if test := c.Config.TestRequest; test != nil {
			if u, err := url.Parse(test.URL); err != nil || !hosts.Fit(u) {
				t.Errorf("%s: the test %s is not on its hosts %v", p.ID, test.URL, c.Hosts)
			}
		}
		for name, value := range values {
			if strings.ContainsAny(name+value, "{}") {
				t.Errorf("%s: %s is still %q", p.ID, name, value)
			}
		}
		for _, address := range []string{
			c.Config.AuthURL, c.Config.TokenURL, c.Config.DeviceURL, c.Config.RevokeURL, p.KeysURL, p.DocsURL,
		} {
			if address != "" && !strings.HasPrefix(address, "https://") {
				t.Errorf("%s: %s", p.ID, address)
			}
		}
	}
	if found := Presets("google SHEETS"); len(found) != 1 || found[0].ID != "google-sheets" {
		t.Errorf("the search returns %v", found)
	}
	for _, host := range []string{
		"evil.example.com/", "evil.example.com#", "a@evil.example.com", "evil.example.com?", "", "x\\y",
	} {
		if _, _, err := FillPreset("zendesk", map[string]string{
			"subdomain": host,
			"email":     "a@example.com",
			"token":     "t",
		}); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%q is accepted as part of a host: %v", host, err)
		}
	}
}
