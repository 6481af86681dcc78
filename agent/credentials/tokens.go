package credentials

import (
	"context"
	"regexp"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

const (
	renewBefore = time.Minute // before its end an access token is renewed
	minTokenAge = time.Minute // a token this new is not renewed because of a status 401
)

// token returns an access token. rejected is one that the server answered with
// 401, or "". The renewal itself continues when ctx ends, because the result of
// a request to a provider that rotates refresh tokens must not be lost.
func (c *Credentials) token(ctx context.Context, db *store.DB, id, rejected string) (string, error) {
	if token, done, err := c.storedToken(ctx, db, id, rejected); done || err != nil {
		return token, err
	}
	type outcome struct {
		token string
		err   error
	}
	result := make(chan outcome, 1)
	go func() {
		alone, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*requestTime)
		defer cancel()
		token, err := c.renew(alone, db, id, rejected)
		result <- outcome{token, err}
	}()
	select {
	case r := <-result:
		return r.token, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// storedToken returns the stored access token if it can be used.
func (c *Credentials) storedToken(
	ctx context.Context,
	db *store.DB,
	id, rejected string,
) (token string, done bool, err error) {
	o, err := db.OpenCredential(ctx, id)
	if err != nil {
		return "", false, agent.InvalidReference(err, "credential", "credential")
	}
	return c.usableToken(o, rejected)
}

func (c *Credentials) usableToken(o store.OpenCredential, rejected string) (token string, done bool, err error) {
	t := o.Tokens
	now := c.now()
	fresh := t.AccessToken != "" && (t.ExpiresAt.IsZero() || now.Add(renewBefore).Before(t.ExpiresAt.Time))
	if fresh && t.AccessToken != rejected {
		return t.AccessToken, true, nil
	}
	if fresh && (now.Before(t.IssuedAt.Add(minTokenAge)) || o.Config.NeedsSignIn() && t.RefreshToken == "") {
		return t.AccessToken, true, nil // a new token would be rejected too, or cannot be obtained
	}
	if o.Config.NeedsSignIn() && t.RefreshToken == "" {
		return "", true, needsLogin(o)
	}
	return "", false, nil
}

// needsLogin returns the error for a credential that a person has to connect.
func needsLogin(o store.OpenCredential) error {
	return agent.Errorf(
		agent.CodeCredentialLogin,
		"the credential %s has to be connected: a person signs in under Credentials",
		o.Name,
	).With("credential_id", o.ID)
}

// renew gets new tokens, unless another goroutine just did.
func (c *Credentials) renew(ctx context.Context, db *store.DB, id, rejected string) (string, error) {
	unlock, err := c.lock(ctx, key(db, id))
	if err != nil {
		return "", err
	}
	defer unlock()
	credential, err := db.OpenCredential(ctx, id)
	if err != nil {
		return "", agent.InvalidReference(err, "credential", "credential")
	}
	if token, done, err := c.usableToken(credential, rejected); done || err != nil {
		return token, err
	}
	tokens, err := c.grant(ctx, credential)
	if err != nil {
		return "", c.recordRefusal(ctx, db, credential, err)
	}
	if tokens.RefreshToken == "" {
		tokens.RefreshToken = credential.Tokens.RefreshToken
	}
	if err := db.PutTokens(ctx, credential, tokens.CredentialTokens, ""); err != nil {
		return "", err
	}
	return tokens.AccessToken, nil
}

// grant asks for tokens without a person.
func (c *Credentials) grant(ctx context.Context, o store.OpenCredential) (grantedTokens, error) {
	endpoint, err := c.endpoints(ctx, o)
	if err != nil {
		return grantedTokens{}, err
	}
	form, err := c.grantForm(o, endpoint)
	if err != nil {
		return grantedTokens{}, err
	}
	return c.askTokens(ctx, o, endpoint.Token, form)
}

// loginCodes are the codes of refusals that only a new login ends: of OAuth 2 and OpenID
// Connect, and of providers with codes of their own.
var loginCodes = map[string]bool{
	"invalid_grant":              true,
	"interaction_required":       true,
	"login_required":             true,
	"consent_required":           true,
	"account_selection_required": true,
	"token_revoked":              true,
	"token_expired":              true,
	"account_inactive":           true,
	"inactive_user":              true,
	"invalid_code":               true,
}

// aboutRefreshToken matches refusals that are about the refresh token, by their codes
// (GitHub's bad_refresh_token, HubSpot's BAD_REFRESH_TOKEN) or by what they say (Atlassian).
var aboutRefreshToken = regexp.MustCompile(`(?i)refresh[ _-]?token`)

// statusAfter returns the status of a credential after a refusal; "" after a temporary
// failure, which has no code.
func statusAfter(o store.OpenCredential, err error) agent.CredentialStatus {
	code := oauthCode(err)
	switch {
	case code == "":
		return ""
	case o.Config.NeedsSignIn() &&
		(loginCodes[strings.ToLower(code)] || aboutRefreshToken.MatchString(agent.Explain(err))):
		return agent.CredentialNeedsLogin
	}
	return agent.CredentialFailing
}

// recordRefusal records that a provider refuses a credential, and returns the error for the
// caller that wanted to use it. Temporary failures are not recorded.
func (c *Credentials) recordRefusal(ctx context.Context, db *store.DB, o store.OpenCredential, err error) error {
	status, answer := statusAfter(o, err), err
	switch status {
	case "":
		return err
	case agent.CredentialNeedsLogin:
		answer = needsLogin(o)
	}
	if failed := db.FailCredential(ctx, o, status, agent.Explain(err)); failed != nil &&
		agent.ErrorCode(failed) != agent.CodeNotFound {
		c.log.Warn("store status of credential", "agent", db.ID(), "credential", o.ID, "error", failed)
	}
	return answer
}
