package credentials

import (
	"context"
	"encoding/json"
	"net/url"

	"satchel/agent"
	"satchel/store"
)

// Draft is a credential to be created: a preset with values for its fields, or
// type, hosts, config and secret. The latter take precedence over the preset; for
// config, field by field.
type Draft struct {
	Preset string
	Values map[string]string
	agent.CredentialChange
}

// Create stores a new credential.
func (c *Credentials) Create(ctx context.Context, db *store.DB, draft Draft) (agent.Credential, error) {
	made, secret := agent.Credential{}, map[string]string{}
	if draft.Preset != "" {
		var err error
		if made, secret, err = FillPreset(draft.Preset, draft.Values); err != nil {
			return made, err
		}
		if draft.Config.Given {
			if draft.Config.Value, err = overlay(made.Config, draft.Config.Value); err != nil {
				return made, err
			}
		}
	}
	draft.Apply(&made)
	if draft.Secret.Given && draft.Secret.Value != nil {
		secret = draft.Secret.Value
	}
	if err := c.check(&made, secret); err != nil {
		return made, err
	}
	return db.CreateCredential(ctx, made, secret)
}

// overlay returns config overwritten with the fields that are set in over.
func overlay(config, changes agent.CredentialConfig) (agent.CredentialConfig, error) {
	raw, err := json.Marshal(changes)
	if err != nil {
		return config, err
	}
	err = json.Unmarshal(raw, &config)
	return config, err
}

// Put creates a credential, or changes the one that ref names.
func (c *Credentials) Put(
	ctx context.Context,
	db *store.DB,
	ref string,
	change agent.CredentialChange,
) (agent.Credential, error) {
	if ref == "" {
		return c.Create(ctx, db, Draft{CredentialChange: change})
	}
	return c.Update(ctx, db, ref, change)
}

// Update changes a credential.
func (c *Credentials) Update(
	ctx context.Context,
	db *store.DB,
	ref string,
	change agent.CredentialChange,
) (agent.Credential, error) {
	known, err := db.Credential(ctx, ref)
	if err != nil {
		return known, err
	}
	unlock, err := c.lock(ctx, key(db, known.ID)) // tokens that are renewed now are for the one before
	if err != nil {
		return known, err
	}
	defer unlock()
	return db.UpdateCredential(ctx, known.ID, change, c.check)
}

// check checks a credential, its secret, and the addresses to which it would be
// sent.
func (c *Credentials) check(made *agent.Credential, secret map[string]string) error {
	if secret == nil {
		secret = map[string]string{}
	}
	if err := made.Validate(secret); err != nil {
		return err
	}
	if made.Type == agent.CredentialEnv {
		return nil
	}
	hosts, err := c.client.CheckHosts("hosts", made.Hosts)
	if err != nil {
		return err
	}
	config := &made.Config
	for _, e := range [][2]string{
		{"auth_url", config.AuthURL},
		{"token_url", config.TokenURL},
		{"device_url", config.DeviceURL},
		{"revoke_url", config.RevokeURL},
		{"issuer", config.Issuer},
	} {
		if err := c.checkEndpoint("config."+e[0], e[1]); err != nil {
			return err
		}
	}
	if test := config.TestRequest; test != nil {
		if u, err := url.Parse(test.URL); err != nil || !hosts.Fit(u) {
			return agent.Invalid("config.test.url", "must be on one of the hosts")
		}
	}
	return nil
}

// checkEndpoint rejects an endpoint that cannot be reached or to which secrets must
// not be sent.
func (c *Credentials) checkEndpoint(field, address string) error {
	if address == "" {
		return nil
	}
	u, err := c.client.CheckField(field, address)
	if err != nil {
		return err
	}
	if u.Scheme == "http" {
		_, err = c.client.CheckHosts(field, []string{"http://" + u.Host})
	}
	return err
}
