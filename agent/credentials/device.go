package credentials

import (
	"cmp"
	"context"
	"net/url"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// connectDevice begins a login on another device (RFC 8628).
func (c *Credentials) connectDevice(
	ctx context.Context,
	db *store.DB,
	credential store.OpenCredential,
) (Connection, error) {
	endpoints, err := c.endpoints(ctx, credential)
	if err != nil {
		return Connection{}, err
	}
	if endpoints.Device == "" {
		return Connection{}, agent.Invalid("config.device_url", "is required: the issuer's metadata has none")
	}
	form := url.Values{}
	optional(form, "scope", credential.Config.Scope)
	optional(form, "audience", credential.Config.Audience)
	optional(form, "client_id", credential.Config.ClientID)
	status, raw, contentType, err := c.postClient(ctx, credential, endpoints.Device, form)
	if err != nil {
		return Connection{}, err
	}
	fields := egress.ReadOAuth(raw, contentType)
	page := cmp.Or(fields.Text("verification_uri"), fields.Text("verification_url"))
	if status/100 != 2 ||
		fields.Text("device_code") == "" ||
		fields.Text("user_code") == "" ||
		page == "" {
		return Connection{}, refusalError(status, fields, secretsOf(credential, form))
	}
	if u, err := url.Parse(page); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return Connection{}, agent.Errorf(
			agent.CodeUpstream,
			"the provider's answer has no usable verification address",
		)
	}
	life := min(max(fields.Seconds("expires_in"), time.Minute), maxDeviceLife)
	interval := int(min(max(fields.Seconds("interval"), deviceInterval), time.Minute).Seconds())
	l := login{
		Device:   fields.Text("device_code"),
		Interval: interval,
		Ends:     agent.At(c.now().Add(life)),
	}
	if err := putLogin(ctx, db, credential.ID, l); err != nil {
		return Connection{}, err
	}
	return Connection{
		UserCode:        agent.Clip(fields.Text("user_code"), 100),
		VerificationURL: page,
		Interval:        interval,
		ExpiresAt:       l.Ends,
	}, nil
}

// pollDevice asks the provider once whether the person has agreed. A call that comes
// too soon makes no request.
func (c *Credentials) pollDevice(ctx context.Context, db *store.DB, credential store.OpenCredential) (bool, error) {
	var l login
	err := c.replaceLogin(ctx, db, credential.ID, func(now login) (*login, error) {
		if now.Device == "" {
			return nil, invalidLoginError()
		}
		l = now
		return &now, nil
	})
	if err != nil || !c.mayPoll(key(db, credential.ID), time.Duration(l.Interval)*time.Second) {
		return false, err
	}
	err = c.exchange(ctx, db, credential.ID, l, url.Values{"grant_type": {grantDevice}, "device_code": {l.Device}})
	switch {
	case err == nil:
		return true, c.replaceLogin(
			ctx,
			db,
			credential.ID,
			func(login) (*login, error) { return nil, nil },
		)
	case oauthCode(err) == "authorization_pending":
		return false, nil
	case agent.ErrorCode(err) == agent.CodeUpstream && oauthCode(err) == "": // also slow_down
		c.delayPoll(key(db, credential.ID))
		return false, nil
	}
	return false, err
}

// mayPoll reports whether a device may be polled now, and if so records the earliest
// time of the next poll.
func (c *Credentials) mayPoll(key string, interval time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for k, at := range c.polls {
		if now.After(at.Add(time.Hour)) {
			delete(c.polls, k)
		}
	}
	if now.Before(c.polls[key]) {
		return false
	}
	c.polls[key] = now.Add(interval - time.Second) // clients wait the whole interval themselves
	return true
}

// delayPoll increases the time until a device may be polled again.
func (c *Credentials) delayPoll(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polls[key] = c.now().Add(2 * deviceInterval)
}
