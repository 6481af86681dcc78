package egress

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// OAuthAnswer has the fields of the response of an endpoint of OAuth 2, which not all
// providers write as RFC 6749 has it.
type OAuthAnswer map[string]any

// maxLifetime is the longest lifetime of a token that is believed.
const maxLifetime = 10 * 365 * 24 * time.Hour

// ReadOAuth decodes a response that is JSON or a form; of anything else there are no
// fields.
func ReadOAuth(raw []byte, contentType string) OAuthAnswer {
	fields := OAuthAnswer{}
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	decoder.UseNumber()
	if decoder.Decode(&fields) == nil {
		return fields
	}
	fields = OAuthAnswer{}
	media, _, _ := mime.ParseMediaType(contentType)
	if media == "application/x-www-form-urlencoded" || media == "text/plain" {
		form, _ := url.ParseQuery(string(raw))
		for name := range form {
			fields[name] = form.Get(name)
		}
	}
	return fields
}

// Text returns a field that is a text or a number, or "".
func (a OAuthAnswer) Text(name string) string {
	switch v := a[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// Seconds returns the time that a field names in seconds, as a number or a text; 0 if there
// is none.
func (a OAuthAnswer) Seconds(name string) time.Duration {
	seconds, err := strconv.ParseFloat(a.Text(name), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, maxLifetime.Seconds()) * float64(time.Second))
}

// BearerToken returns the access token, if it can be sent as a bearer token: providers
// leave out its type, or name that of its account.
func (a OAuthAnswer) BearerToken() (string, bool) {
	token, kind := a.Text("access_token"), a.Text("token_type")
	isBearer := kind == "" ||
		strings.EqualFold(kind, "bearer") ||
		kind == "bot" ||
		kind == "user"
	isOther := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	return token, isBearer && token != "" && !strings.ContainsFunc(token, isOther)
}
