package credentials

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

const (
	grantDevice   = "urn:ietf:params:oauth:grant-type:device_code"
	grantJWT      = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	assertionLife = time.Hour
)

// grantForm returns the form that requests tokens without a person.
func (c *Credentials) grantForm(credential store.OpenCredential, endpoints endpoints) (url.Values, error) {
	form := url.Values{}
	optional(form, "resource", credential.Config.Resource)
	switch credential.Config.Grant {
	case agent.GrantClient:
		form.Set("grant_type", "client_credentials")
		optional(form, "scope", credential.Config.Scope)
		optional(form, "audience", credential.Config.Audience)
	case agent.GrantJWT:
		assertion, err := c.assertion(credential, endpoints.Token)
		if err != nil {
			return nil, agent.Errorf(agent.CodeConflict, "the key of the service account cannot sign").Because(err)
		}
		form.Set("grant_type", grantJWT)
		form.Set("assertion", assertion)
	default:
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", credential.Tokens.RefreshToken)
	}
	return form, nil
}

func optional(form url.Values, name, value string) {
	if value != "" {
		form.Set(name, value)
	}
}

// assertion returns the signed assertion of a service account (RFC 7523). audience
// is the token endpoint's URL, unless the config names another.
func (c *Credentials) assertion(credential store.OpenCredential, audience string) (string, error) {
	account, err := agent.ReadServiceAccount(credential.Values["service_account"])
	if err != nil {
		return "", err
	}
	signer, err := account.Signer()
	if err != nil {
		return "", err
	}
	now := c.now()
	claims := map[string]any{
		"iss": account.ClientEmail,
		"aud": cmp.Or(credential.Config.Audience, audience),
		"iat": now.Unix(),
		"exp": now.Add(assertionLife).Unix(),
	}
	if credential.Config.Scope != "" {
		claims["scope"] = credential.Config.Scope
	}
	if credential.Config.Subject != "" {
		claims["sub"] = credential.Config.Subject
	}
	header := map[string]any{"typ": "JWT", "alg": "RS256"}
	if account.PrivateKeyID != "" {
		header["kid"] = account.PrivateKeyID
	}
	var parts []string
	for _, part := range []any{header, claims} {
		raw, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(raw))
	}
	signed := strings.Join(parts, ".")
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, signer, crypto.SHA256, digest[:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), err
}
