package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Fields of _secrets that a gateway has.
const (
	configField        = "config"
	webhookSecretField = "webhook_secret"
)

const gatewayColumns = `id, type, name, status, is_default, verified, configured_fields, event_count,
	iif(events_day = strftime('%Y-%m-%d','now'), events_today, 0), last_event_at, last_error, last_error_at, created_at, updated_at`

var gatewayListing = listing[agent.Gateway]{listed{
	table:   "gateways",
	columns: gatewayColumns,
	order:   Order{"created_at", true},
	sort: map[string]string{
		"created_at": "created_at",
		"updated_at": "updated_at",
		"name":       "name",
		"type":       "type",
	},
	search: []string{"name", "type"},
}, scanGateway}

func scanGateway(rows *sqlite.Rows) (g agent.Gateway, err error) {
	var fields rawJSON
	err = rows.Scan(
		&g.ID, &g.Type, &g.Name, &g.Status, &g.IsDefault, &g.Verified, &fields, &g.EventCount, &g.EventsToday,
		&g.LastEventAt, &g.LastError, &g.LastErrorAt, &g.CreatedAt, &g.UpdatedAt,
	)
	g.ConfiguredFields = stringsIn(fields)
	return g, err
}

// within fills in the fields that depend on the agent that a gateway belongs to.
func (tx *Tx) within(g agent.Gateway) agent.Gateway {
	g.WebhookURL = agent.WebhookPath(tx.db.id, g.ID)
	return g
}

// GatewayFilter selects gateways; empty fields select all.
type GatewayFilter struct{ Types, States []string }

// Gateways lists gateways, newest first.
func (db *DB) Gateways(ctx context.Context, gf GatewayFilter, p Page) ([]agent.Gateway, int, error) {
	var total int
	page, err := Read(ctx, db, func(tx *Tx) (page []agent.Gateway, err error) {
		var f filter
		f.in("type", gf.Types...)
		f.in("status", gf.States...)
		page, total, err = gatewayListing.list(tx, f, p)
		for i := range page {
			page[i] = tx.within(page[i])
		}
		return page, err
	})
	return page, total, err
}

// Gateway reads one gateway.
func (db *DB) Gateway(ctx context.Context, id string) (agent.Gateway, error) {
	return ReadOne(ctx, db, func(tx *Tx) (agent.Gateway, error) {
		return tx.gateway(id)
	})
}

func (tx *Tx) gateway(id string) (agent.Gateway, error) {
	found, err := all(tx, scanGateway, "SELECT "+gatewayColumns+" FROM gateways WHERE id = ?", id)
	if err != nil {
		return agent.Gateway{}, err
	}
	if len(found) == 0 {
		return agent.Gateway{}, agent.NotFound("gateway", id)
	}
	return tx.within(found[0]), nil
}

// OpenGateway is a gateway with its secrets decrypted.
type OpenGateway struct {
	agent.Gateway
	Config        agent.GatewayConfig
	WebhookSecret string
	WebhookBase   string // the base address that the platform posts to, if not the server's usual one
	Locked        bool   // encrypted with another master key: config and secret are empty
}

// OpenGateway reads a gateway and decrypts its config, completed for use: if the
// config has no secret to sign or verify with, the webhook's is used, and if it has
// no bot token, that of the agent's settings.
func (db *DB) OpenGateway(ctx context.Context, id string) (OpenGateway, error) {
	return Read(ctx, db, func(tx *Tx) (OpenGateway, error) {
		return tx.openGateway(id)
	})
}

// openGateway is OpenGateway within a transaction.
func (tx *Tx) openGateway(id string) (OpenGateway, error) {
	gateway, err := tx.storedGateway(id)
	if err != nil || gateway.Locked {
		return gateway, err
	}
	switch gateway.Type {
	case agent.GatewayWebhook, agent.GatewayWeb:
		gateway.Config.Secret = cmp.Or(gateway.Config.Secret, gateway.WebhookSecret)
	case agent.GatewayTelegram, agent.GatewayEmail:
		gateway.Config.WebhookSecret = cmp.Or(gateway.Config.WebhookSecret, gateway.WebhookSecret)
	}
	if gateway.Type == agent.GatewayTelegram && gateway.Config.BotToken == "" {
		if gateway.Config.BotToken, err = tx.secretFor(
			settingsOwner,
			telegramToken,
			gateway.Config.APIAddress(gateway.Type),
		); errors.Is(err, errLocked) || errors.Is(err, errOtherHost) {
			return gateway, nil // treated as missing
		}
	}
	return gateway, err
}

// storedGateway decrypts a gateway with its config as it was given.
func (tx *Tx) storedGateway(id string) (gateway OpenGateway, err error) {
	if gateway.Gateway, err = tx.gateway(id); err != nil {
		return gateway, err
	}
	if err := tx.value(&gateway.WebhookBase, "SELECT webhook_base FROM gateways WHERE id = ?", id); err != nil {
		return gateway, err
	}
	raw, err := tx.secret(id, configField)
	if err == nil {
		gateway.WebhookSecret, err = tx.secret(id, webhookSecretField)
	}
	if errors.Is(err, errLocked) {
		return OpenGateway{Gateway: gateway.Gateway, WebhookBase: gateway.WebhookBase, Locked: true}, nil
	}
	if err == nil && raw != "" {
		err = json.Unmarshal([]byte(raw), &gateway.Config)
	}
	if err != nil {
		return gateway, fmt.Errorf("stored config: %w", err)
	}
	return gateway, nil
}

// SendingGateway opens, as OpenGateway does, the gateway to send a message through:
// the given one, else the default of the type, else its only active one or its
// oldest.
func (db *DB) SendingGateway(ctx context.Context, gatewayType agent.GatewayType, id string) (OpenGateway, error) {
	return Read(ctx, db, func(tx *Tx) (OpenGateway, error) {
		if id == "" {
			err := tx.value(
				&id,
				"SELECT id FROM gateways WHERE type = ? ORDER BY is_default DESC, status = 'active' "+
					"DESC, created_at, id LIMIT 1",
				gatewayType,
			)
			if errors.Is(err, sqlite.ErrNoRows) {
				return OpenGateway{}, agent.Invalid(
					"gateway_id",
					"is required: the agent has no "+gatewayType.PlatformName()+" channel",
				)
			} else if err != nil {
				return OpenGateway{}, err
			}
		}
		gateway, err := tx.openGateway(id)
		switch {
		case agent.ErrorCode(err) == agent.CodeNotFound:
			return gateway, agent.Invalid("gateway_id", "names a gateway that does not exist")
		case err != nil:
			return gateway, err
		case gateway.Type != gatewayType:
			return gateway, agent.Invalid(
				"gateway_id",
				fmt.Sprintf(
					"names a %s channel; this needs %s",
					gateway.Type.PlatformName(),
					gatewayType.PlatformName(),
				),
			)
		case gateway.Status != agent.GatewayActive:
			return gateway, agent.Invalid("gateway_id", "names a gateway that is not active; verify it first")
		case gateway.Locked:
			return gateway, agent.Errorf(
				agent.CodeConflict,
				"the gateway's config is locked: it was encrypted with another master key; set it again",
			)
		}
		return gateway, nil
	})
}

// CreateGateway adds an inactive gateway with its config and the secret of its
// webhook, both encrypted.
func (db *DB) CreateGateway(
	ctx context.Context,
	g agent.Gateway,
	config agent.GatewayConfig,
	secret string,
) (agent.Gateway, error) {
	g.ID = agent.NewID(agent.KindGateway)
	return Write(ctx, db, func(tx *Tx) (agent.Gateway, error) {
		return tx.insertGateway(g, config, secret)
	})
}

func (tx *Tx) insertGateway(gateway agent.Gateway, config agent.GatewayConfig, secret string) (agent.Gateway, error) {
	var count int
	if err := tx.value(&count, "SELECT n FROM _counts WHERE name = 'gateways'"); err != nil {
		return gateway, err
	}
	if count >= agent.MaxGateways {
		return gateway, agent.Errorf(
			agent.CodeConflict,
			"an agent has at most %d gateways",
			agent.MaxGateways,
		).With("limit", agent.MaxGateways)
	}
	if _, err := tx.exec(
		"INSERT INTO gateways(id, type, name, created_at, updated_at) VALUES (?,?,?,?,?)",
		gateway.ID, gateway.Type, gateway.Name, tx.Now, tx.Now,
	); err != nil {
		return gateway, err
	}
	if err := errors.Join(
		tx.makeDefault(gateway),
		tx.putConfig(gateway.ID, gateway.Type, config),
		tx.putSecret(gateway.ID, webhookSecretField, secret),
		tx.audit("gateway created", map[string]any{"gateway_id": gateway.ID, "type": gateway.Type}),
	); err != nil {
		return gateway, err
	}
	return tx.gateway(gateway.ID)
}

// makeDefault sets whether a gateway is the default of its type, of which there
// is at most one.
func (tx *Tx) makeDefault(g agent.Gateway) error {
	if g.IsDefault {
		if _, err := tx.exec(
			"UPDATE gateways SET is_default = 0 WHERE type = ? AND is_default = 1 AND id <> ?",
			g.Type, g.ID,
		); err != nil {
			return err
		}
	}
	_, err := tx.exec("UPDATE gateways SET is_default = ? WHERE id = ?", g.IsDefault, g.ID)
	return err
}

// putConfig encrypts and stores the config of a gateway. If it relies on the token
// in the settings, it must not send that token to another host.
func (tx *Tx) putConfig(id string, gatewayType agent.GatewayType, config agent.GatewayConfig) error {
	if gatewayType == agent.GatewayTelegram && config.BotToken == "" {
		if err := tx.checkSameHost(
			settingsOwner,
			telegramToken,
			config.APIAddress(gatewayType),
			"config.botToken",
		); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return err
	}
	fields, err := json.Marshal(config.Fields())
	if err != nil {
		return err
	}
	if _, err := tx.exec("UPDATE gateways SET configured_fields = ? WHERE id = ?", string(fields), id); err != nil {
		return err
	}
	return tx.putSecret(id, configField, string(raw))
}

// UpdateGateway changes the given fields. A new config makes the gateway inactive
// until it is verified again; check gets it before it is stored.
func (db *DB) UpdateGateway(
	ctx context.Context,
	id string,
	change agent.GatewayChange,
	check func(agent.GatewayType, *agent.GatewayConfig) error,
) (agent.Gateway, error) {
	return Write(ctx, db, func(tx *Tx) (agent.Gateway, error) {
		gateway, err := tx.storedGateway(id)
		if err != nil {
			return gateway.Gateway, err
		}
		change.Name.Into(&gateway.Name)
		change.IsDefault.Into(&gateway.IsDefault)
		if err := gateway.Gateway.Validate(); err != nil {
			return gateway.Gateway, err
		}
		if _, err := tx.exec(
			"UPDATE gateways SET name = ?, updated_at = ? WHERE id = ?",
			gateway.Name, tx.Now, id,
		); err != nil {
			return gateway.Gateway, err
		}
		if err := tx.makeDefault(gateway.Gateway); err != nil {
			return gateway.Gateway, err
		}
		if change.Config.Given {
			config := gateway.Config
			if change.Config.Null {
				config = agent.GatewayConfig{}
			}
			change.Config.Value.Apply(&config)
			if err := check(gateway.Type, &config); err != nil {
				return gateway.Gateway, err
			}
			if err := config.CheckHosts(gateway.Type, gateway.Config, change.Config.Value); err != nil {
				return gateway.Gateway, err
			}
			if err := tx.putConfig(id, gateway.Type, config); err != nil {
				return gateway.Gateway, err
			}
			if _, err := tx.exec("DELETE FROM _polls WHERE gateway_id = ?", id); err != nil { // it may be another bot
				return gateway.Gateway, err
			}
			if _, err := tx.exec(
				"UPDATE gateways SET status = 'inactive', verified = 0, last_error = '', "+
					"last_error_at = NULL WHERE id = ?",
				id,
			); err != nil {
				return gateway.Gateway, err
			}
		}
		if err := tx.audit("gateway updated", map[string]any{
			"gateway_id": id,
			"config":     change.Config.Given,
		}); err != nil {
			return gateway.Gateway, err
		}
		return tx.gateway(id)
	})
}

// DeleteGateway removes a gateway; its conversations are kept.
func (db *DB) DeleteGateway(ctx context.Context, id string) error {
	return db.Do(ctx, func(tx *Tx) error {
		if err := tx.deleteRow("gateways", "gateway", id); err != nil {
			return err
		}
		return tx.audit("gateway deleted", map[string]any{"gateway_id": id})
	})
}

// EndVerify stores the result of verifying a gateway: active, or error with a
// problem. If the gateway has changed in the meantime, it is left unchanged.
func (db *DB) EndVerify(ctx context.Context, g agent.Gateway, problem string) error {
	return db.Do(ctx, func(tx *Tx) error {
		status, at := agent.GatewayActive, agent.Time{}
		if problem != "" {
			status, at = agent.GatewayFailed, tx.Now
		}
		_, err := tx.exec(`UPDATE gateways SET status = ?, verified = ?, last_error = ?, last_error_at = ?, updated_at = ?
			WHERE id = ? AND updated_at = ?`, status, problem == "", problem, at, tx.Now, g.ID, g.UpdatedAt)
		return errors.Join(
			err,
			tx.audit("gateway verified", map[string]any{"gateway_id": g.ID, "success": problem == ""}),
		)
	})
}
