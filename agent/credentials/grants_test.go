package credentials

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// TestAssertionAudience signs for the token endpoint, or for the audience of the
// config: some servers accept only their issuer.
func TestAssertionAudience(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	account, err := json.Marshal(map[string]string{"client_email": "robot", "private_key": string(private)})
	if err != nil {
		t.Fatal(err)
	}
	c := &Credentials{now: time.Now}
	for audience, want := range map[string]string{"": "https://id.test/token", "https://id.test/": "https://id.test/"} {
		var o store.OpenCredential
		o.Config = agent.CredentialConfig{Grant: agent.GrantJWT, Audience: audience}
		o.Values = map[string]string{"service_account": string(account)}
		form, err := c.grantForm(o, endpoints{Token: "https://id.test/token"})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(strings.Split(form.Get("assertion"), ".")[1])
		if err != nil {
			t.Fatal(err)
		}
		var claims struct {
			Aud string `json:"aud"`
		}
		if err := json.Unmarshal(raw, &claims); err != nil || claims.Aud != want {
			t.Errorf("audience %q: %s %v", audience, raw, err)
		}
	}
}
