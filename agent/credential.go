package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Credential is a secret that the agent's requests may carry to its hosts. The
// secret itself is stored sealed and never returned.
type Credential struct {
	ID               string           `json:"id" example:"credential-06f1q2s3t4v5a6b7c8d9"`
	Name             string           `json:"name" doc:"Unique in the agent." example:"google"`
	Preset           string           `json:"preset" doc:"The preset that it was made from; empty for none." example:"google-sheets"`
	Type             CredentialType   `json:"type" enum:"header,query,basic,oauth2,aws,env" example:"oauth2"`
	Hosts            []string         `json:"hosts" doc:"Where it may be sent: host, host:port, *.host, or with http:// in front." example:"[\"sheets.googleapis.com\"]"`
	Config           CredentialConfig `json:"config"`
	ConfiguredFields []string         `json:"configured_fields" doc:"Names in the secret; their values never come back." example:"[\"client_secret\"]"`
	Status           CredentialStatus `json:"status" enum:"ready,needs_login,needs_confirm,failing,locked" doc:"needs_login: a person has to connect it; needs_confirm: it was copied with its agent; failing: the provider refused it the last time; locked: encrypted with another master key." example:"ready"`
	Account          string           `json:"account" doc:"Whose account it is, where that is known." example:"ada@example.com"`
	ExpiresAt        Time             `json:"expires_at" format:"date-time" nullable:"true" doc:"When the access token expires; it is renewed before that."`
	LastError        string           `json:"last_error"`
	UsedBy           []CredentialUse  `json:"used_by" doc:"What refers to it: workflows, tools, sources, MCP servers and APIs."`
	CreatedAt        Time             `json:"created_at" format:"date-time"`
	UpdatedAt        Time             `json:"updated_at" format:"date-time"`
}

// CredentialUse is a record that names a credential.
type CredentialUse struct {
	Kind string `json:"kind" enum:"workflow,tool,source,mcp,api" example:"tool"`
	ID   string `json:"id" example:"tool-06f1q2s3t4v5a6b7c8d9"`
	Name string `json:"name" example:"weather"`
}

// CredentialType is the way in which a credential authorizes a request.
type CredentialType string

// The types of credentials.
const (
	CredentialHeader CredentialType = "header" // headers of any name
	CredentialQuery  CredentialType = "query"  // parameters of the URL
	CredentialBasic  CredentialType = "basic"
	CredentialOAuth2 CredentialType = "oauth2"
	CredentialAWS    CredentialType = "aws" // Signature Version 4
	CredentialEnv    CredentialType = "env" // the environment of a program
)

// credentialTypes lists the types of credentials.
var credentialTypes = []CredentialType{
	CredentialHeader, CredentialQuery, CredentialBasic, CredentialOAuth2, CredentialAWS, CredentialEnv,
}

// CredentialStatus says whether a credential can be used.
type CredentialStatus string

// The states of a credential.
const (
	CredentialReady        CredentialStatus = "ready"
	CredentialNeedsLogin   CredentialStatus = "needs_login"
	CredentialNeedsConfirm CredentialStatus = "needs_confirm"
	CredentialFailing      CredentialStatus = "failing"
	CredentialLocked       CredentialStatus = "locked"
)

// The grants of OAuth 2 that a credential can use.
const (
	GrantCode   = "authorization_code"
	GrantClient = "client_credentials"
	GrantDevice = "device_code"
	GrantJWT    = "jwt_bearer"
)

// CredentialConfig is the part of a credential that is no secret.
type CredentialConfig struct {
	Grant         string            `json:"grant,omitempty" enum:"authorization_code,client_credentials,device_code,jwt_bearer" doc:"For oauth2."`
	AuthURL       string            `json:"auth_url,omitempty" doc:"For authorization_code: where a person signs in." example:"https://accounts.google.com/o/oauth2/v2/auth"`
	TokenURL      string            `json:"token_url,omitempty" doc:"For oauth2: the token endpoint." example:"https://oauth2.googleapis.com/token"`
	DeviceURL     string            `json:"device_url,omitempty" doc:"For device_code: the device authorization endpoint."`
	RevokeURL     string            `json:"revoke_url,omitempty" doc:"Where tokens are revoked when the connection is deleted."`
	Issuer        string            `json:"issuer,omitempty" doc:"The authorization server's issuer identifier. Endpoints that are not set come from its metadata."`
	ClientID      string            `json:"client_id,omitempty"`
	Scope         string            `json:"scope,omitempty" doc:"Scopes, as the provider separates them."`
	Resource      string            `json:"resource,omitempty" doc:"What tokens are for (RFC 8707)."`
	Audience      string            `json:"audience,omitempty" doc:"An audience that the token endpoint asks for."`
	Subject       string            `json:"subject,omitempty" doc:"For jwt_bearer: the person to act for."`
	AuthParams    map[string]string `json:"auth_params,omitempty" doc:"Further parameters of the address where a person signs in." example:"{\"access_type\":\"offline\"}"`
	TokenAuth     string            `json:"token_auth,omitempty" enum:"header,body" doc:"How the client authenticates at the token endpoint. Default: header."`
	Region        string            `json:"region,omitempty" doc:"For aws. Default: from the host." example:"eu-central-1"`
	Service       string            `json:"service,omitempty" doc:"For aws. Default: from the host." example:"s3"`
	TestRequest   *CredentialTest   `json:"test,omitempty" doc:"A request that shows whether the credential works."`
	AccountFields []string          `json:"account_fields,omitempty" doc:"Paths in the answer of the test that name the account; the first that is there counts." example:"[\"user.email\"]"`
}

// CredentialTest is a request that shows whether a credential works.
type CredentialTest struct {
	Method string `json:"method,omitempty" enum:"GET,POST" doc:"Default: GET." example:"GET"`
	URL    string `json:"url" example:"https://www.googleapis.com/oauth2/v3/userinfo"`
	Body   string `json:"body,omitempty" doc:"JSON, of a POST."`
}

// NeedsSignIn reports whether a person signs in to get tokens.
func (c *CredentialConfig) NeedsSignIn() bool {
	return c.Grant == GrantCode || c.Grant == GrantDevice
}

// SealedCredential is the part of a credential that is stored sealed: the secret
// and where it may be sent.
type SealedCredential struct {
	Type      CredentialType    `json:"type"`
	Hosts     []string          `json:"hosts"`
	Endpoints [5]string         `json:"endpoints"`
	Values    map[string]string `json:"values"`
}

// endpoints returns the addresses to which the secret or tokens may be sent.
func (c *CredentialConfig) endpoints() [5]string {
	return [5]string{c.AuthURL, c.TokenURL, c.DeviceURL, c.RevokeURL, c.Issuer}
}

// Seal returns the parts of a credential that are encrypted, with its secret.
func (c *Credential) Seal(values map[string]string) SealedCredential {
	return SealedCredential{
		Type:      c.Type,
		Hosts:     c.Hosts,
		Endpoints: c.Config.endpoints(),
		Values:    values,
	}
}

// Is reports whether s was sealed for c with its current type, hosts and
// endpoints.
func (s *SealedCredential) Is(c *Credential) bool {
	return s.Type == c.Type &&
		slices.Equal(s.Hosts, c.Hosts) &&
		s.Endpoints == c.Config.endpoints()
}

// CredentialTokens are the tokens of an oauth2 credential.
type CredentialTokens struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token,omitempty"`
	ExpiresAt    Time   `json:"expires_at,omitzero"` // zero: not known
	IssuedAt     Time   `json:"issued_at"`
}

// CredentialChange is a partial update of a credential. A secret is given as
// a whole.
type CredentialChange struct {
	Name   Optional[string]            `json:"name,omitempty" example:"google"`
	Type   Optional[CredentialType]    `json:"type,omitempty" enum:"header,query,basic,oauth2,aws,env" example:"header"`
	Hosts  Optional[[]string]          `json:"hosts,omitempty" doc:"Other hosts, endpoints or another type: the secret is given again, and the connection ends." example:"[\"api.example.com\"]"`
	Config Optional[CredentialConfig]  `json:"config,omitempty"`
	Secret Optional[map[string]string] `json:"secret,omitempty" doc:"By type: names and values of headers, parameters or variables; {username,password}; {client_secret} or {service_account}; {access_key_id,secret_access_key,session_token}. As a whole." example:"{\"Authorization\":\"Bearer YOUR_TOKEN\"}"`
}

// Apply writes the given fields into c.
func (ch CredentialChange) Apply(c *Credential) {
	ch.Name.Into(&c.Name)
	ch.Type.Into(&c.Type)
	ch.Hosts.Into(&c.Hosts)
	ch.Config.Into(&c.Config)
	for i, host := range c.Hosts {
		c.Hosts[i] = strings.ToLower(strings.TrimSpace(host))
	}
	if c.Hosts == nil {
		c.Hosts = []string{}
	}
}

// Limits of credentials.
const (
	MaxCredentials     = 200 // per agent
	maxCredentialNames = 8
	maxCredentialText  = 16 << 10 // bytes of a value
	maxEnvName         = 100
)

// isDisplayName reports whether a credential or an API may have this name.
func isDisplayName(name string) bool {
	return utf8.RuneCountInString(name) <= 64 && hasOnlyNameCharacters(name, " ._@()+-")
}

// hasOnlyNameCharacters reports whether a name begins with a letter or digit of any
// language and contains only these and the characters in others.
func hasOnlyNameCharacters(name, others string) bool {
	for i, r := range name {
		if !unicode.IsLetter(r) &&
			!unicode.IsNumber(r) &&
			(i == 0 || !strings.ContainsRune(others, r)) {
			return false
		}
	}
	return name != ""
}

// Validate checks a credential. values is its secret; nil keeps the stored one.
// Whether the hosts can be reached is checked elsewhere.
func (c *Credential) Validate(values map[string]string) error {
	var is Issues
	is.Check(
		isDisplayName(c.Name),
		"name",
		"must be 1 to 64 letters, digits, spaces and . _ - @ ( ) +, and begin with a letter or digit",
	)
	is.Check(!strings.HasPrefix(c.Name, KindCredential+"-"), "name", "must not look like an id")
	is.Check(slices.Contains(credentialTypes, c.Type), "type", "must be header, query, basic, oauth2, aws or env")
	is.Check(len(c.Hosts) > 0 || c.Type == CredentialEnv, "hosts", "must name the hosts that it may be sent to")
	is.Check(c.Type != CredentialEnv || len(c.Hosts) == 0, "hosts", "cannot be set for type env, which is never sent")
	c.Config.check(c.Type, &is)
	if values != nil {
		c.checkSecret(values, &is)
	}
	return is.Err()
}

func (c *CredentialConfig) check(credentialType CredentialType, is *Issues) {
	for name, address := range map[string]string{
		"auth_url":   c.AuthURL,
		"token_url":  c.TokenURL,
		"device_url": c.DeviceURL,
		"revoke_url": c.RevokeURL,
		"issuer":     c.Issuer,
	} {
		is.checkURL("config."+name, address)
	}
	for name, text := range map[string]string{
		"client_id": c.ClientID,
		"scope":     c.Scope,
		"resource":  c.Resource,
		"audience":  c.Audience,
		"subject":   c.Subject,
		"region":    c.Region,
		"service":   c.Service,
	} {
		is.checkText("config."+name, text, 4000)
	}
	is.Check(len(c.AuthParams) <= 20, "config.auth_params", "must have at most 20 items")
	for name := range c.AuthParams {
		is.Check(!slices.Contains(reservedAuthParams, name), "config.auth_params."+Clip(name, 60), "is set by Satchel")
	}
	is.Check(
		slices.Contains([]string{"", "header", "body"}, c.TokenAuth),
		"config.token_auth",
		"must be header or body",
	)
	if test := c.TestRequest; test != nil {
		is.Check(test.URL != "", "config.test.url", "is required")
		is.checkURL("config.test.url", test.URL)
		is.Check(slices.Contains([]string{"", "GET", "POST"}, test.Method), "config.test.method", "must be GET or POST")
		is.checkText("config.test.body", test.Body, 4000)
	}
	is.Check(len(c.AccountFields) <= 5, "config.account_fields", "must have at most 5 items")
	if credentialType == CredentialOAuth2 {
		c.checkGrant(is)
	}
}

// reservedAuthParams are the parameters of an authorization request that are never
// taken from a config.
var reservedAuthParams = []string{
	"client_id", "redirect_uri", "response_type", "state", "code_challenge", "code_challenge_method", "scope",
	"request", "request_uri",
}

func (c *CredentialConfig) checkGrant(is *Issues) {
	is.Check(
		slices.Contains([]string{GrantCode, GrantClient, GrantDevice, GrantJWT}, c.Grant),
		"config.grant",
		"must be authorization_code, client_credentials, device_code or jwt_bearer",
	)
	is.Check(c.TokenURL != "" || c.Issuer != "", "config.token_url", "is required without issuer")
	is.Check(c.Grant != GrantCode || c.AuthURL != "" || c.Issuer != "", "config.auth_url", "is required without issuer")
	is.Check(
		c.Grant != GrantDevice || c.DeviceURL != "" || c.Issuer != "",
		"config.device_url",
		"is required without issuer",
	)
	is.Check(c.Grant == GrantJWT || c.ClientID != "", "config.client_id", "is required")
}

// checkSecret checks the names and values of a secret.
func (c *Credential) checkSecret(values map[string]string, is *Issues) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field := "secret." + Clip(name, 60)
		is.Check(
			len(values[name]) <= maxCredentialText,
			field,
			fmt.Sprintf("must have at most %d bytes", maxCredentialText),
		)
		is.Check(values[name] != Mask, field, "must be the secret itself and not its mask")
		is.Check(
			name == "service_account" ||
				!strings.ContainsFunc(values[name], func(r rune) bool {
					return r < ' ' && r != '\t' || r == 0x7f
				}),
			field,
			"must not contain line breaks or other control characters",
		)
	}
	only := func(required []string, more ...string) {
		for _, name := range required {
			is.Check(values[name] != "", "secret."+name, "is required")
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			is.Check(
				slices.Contains(required, name) || slices.Contains(more, name),
				"secret."+Clip(name, 60),
				"is not part of this type",
			)
		}
	}
	switch c.Type {
	case CredentialBasic:
		only(nil, "username", "password")
		is.Check(values["username"]+values["password"] != "", "secret.password", "is required")
		is.Check(!strings.Contains(values["username"], ":"), "secret.username", "must not contain a colon")
	case CredentialAWS:
		only([]string{"access_key_id", "secret_access_key"}, "session_token")
	case CredentialOAuth2:
		if c.Config.Grant == GrantJWT {
			only([]string{"service_account"})
			_, err := ReadServiceAccount(values["service_account"])
			is.Check(
				err == nil || values["service_account"] == "",
				"secret.service_account",
				"must be the JSON of a service account, with client_email and private_key (RSA, PEM)",
			)
		} else {
			only(nil, "client_secret")
			is.Check(
				c.Config.Grant != GrantClient || values["client_secret"] != "",
				"secret.client_secret",
				"is required",
			)
		}
	default:
		c.checkNames(values, is)
	}
}

// checkNames checks a secret whose names the client chooses.
func (c *Credential) checkNames(values map[string]string, is *Issues) {
	is.Check(
		len(values) > 0 && len(values) <= maxCredentialNames,
		"secret",
		fmt.Sprintf("must have 1 to %d names with their values", maxCredentialNames),
	)
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field := "secret." + Clip(name, 60)
		is.Check(values[name] != "", field, "must not be empty")
		switch c.Type {
		case CredentialHeader:
			canonical := textproto.CanonicalMIMEHeaderKey(name)
			is.Check(
				isHeaderName(name) && !slices.Contains(reservedHeaders, canonical),
				field,
				"must be a header name that may be set",
			)
			is.Check(!seen[canonical], field, "is a duplicate")
			seen[canonical] = true
		case CredentialQuery:
			is.Check(name != "" && len(name) <= 200 && isHeaderValue(name), field, "must be the name of a parameter")
		case CredentialEnv:
			is.Check(
				matches(variableName, name, maxEnvName) && !reservedEnv(name),
				field,
				"must be the name of an environment variable that may be set",
			)
		}
	}
}

// IsEnvName reports whether the operator may set an environment variable of this
// name for a program. Variables that configure this program, proxies, Node.js or
// the dynamic loader are not allowed.
func IsEnvName(name string) bool {
	return matches(variableName, name, maxEnvName) &&
		(!reservedEnv(name) || slices.Contains(folderVariables, strings.ToUpper(name)))
}

// folderVariables are variables that name a program's folders.
var folderVariables = []string{"PATH", "HOME", "TMPDIR"}

// reservedEnv reports whether a variable would change how a program is run.
func reservedEnv(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(folderVariables, name) ||
		slices.Contains([]string{"NODE_OPTIONS", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}, name) ||
		strings.HasPrefix(name, "SATCHEL_") ||
		strings.HasPrefix(name, "LD_") ||
		strings.HasPrefix(name, "DYLD_")
}

// CredentialRef returns the credential that data names in its field
// "credential", or "". A template is an error: untrusted input must not choose
// the credential.
func CredentialRef(data map[string]any) (ref, issue string) {
	v, given := data["credential"]
	if !given || v == nil {
		return "", ""
	}
	ref, ok := v.(string)
	if !ok || strings.Contains(ref, "{{") {
		return "", "must be the name or id of a credential, without a template"
	}
	if auth, _ := data["auth"].(map[string]any); ref != "" &&
		auth["type"] != nil &&
		auth["type"] != "none" &&
		auth["type"] != "" {
		return "", "cannot be combined with auth"
	}
	return ref, ""
}

// checkCredential checks the field credential of a config that may also have
// auth.
func (i *Issues) checkCredential(field, ref string, auth *APIAuth) {
	i.Check(!strings.Contains(ref, "{{"), field, "must be the name or id of a credential, without a template")
	i.Check(ref == "" || auth == nil || auth.Type == "none" || auth.Type == "", field, "cannot be combined with auth")
	i.checkText(field, ref, 100)
}

// ConfiguredFields returns the names in a secret, sorted.
func ConfiguredFields(values map[string]string) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" {
			names = append(names, name)
		}
	}
	return names
}

// ServiceAccount is the key of a service account, as Google hands it out.
type ServiceAccount struct {
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`
}

// ReadServiceAccount reads the JSON of a service account.
func ReadServiceAccount(text string) (ServiceAccount, error) {
	var a ServiceAccount
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return a, err
	}
	if a.ClientEmail == "" {
		return a, fmt.Errorf("no client_email")
	}
	_, err := a.Signer()
	return a, err
}
