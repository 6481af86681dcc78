package store

import (
	"context"
	"errors"

	"satchel/agent"
)

// Bundle is a workflow with everything that it needs. The ids of its gateways,
// source and workflow are given, so that they can refer to each other.
type Bundle struct {
	Gateways []BundledGateway
	Source   *agent.Source // of type url
	Workflow agent.Workflow
	Schedule *agent.ScheduleChange

	// CheckSchedule refuses a schedule whose callback cannot be called.
	CheckSchedule func(*agent.Schedule) error
	// Uses are records that the workflow refers to and that must exist.
	Uses []BundleUse
}

// BundledGateway is a gateway of a bundle with its secret config.
type BundledGateway struct {
	Gateway agent.Gateway
	Config  agent.GatewayConfig
	Secret  string
}

// BundleUse refers to a record of another kind. A gateway has a type, a source has
// none.
type BundleUse struct {
	Field, ID string
	Gateway   agent.GatewayType
}

// Bundled is what was created from a bundle.
type Bundled struct {
	Gateways []agent.Gateway
	Source   *agent.Source
	Workflow agent.Workflow
	Schedule *agent.Schedule
}

// CreateBundle creates everything in a bundle, or nothing.
func (db *DB) CreateBundle(ctx context.Context, bundle Bundle) (Bundled, error) {
	return Write(ctx, db, func(tx *Tx) (out Bundled, err error) {
		for _, use := range bundle.Uses {
			if err := tx.checkUse(use); err != nil {
				return out, err
			}
		}
		for _, g := range bundle.Gateways {
			made, err := tx.insertGateway(g.Gateway, g.Config, g.Secret)
			if err != nil {
				return out, err
			}
			out.Gateways = append(out.Gateways, made)
		}
		if bundle.Source != nil {
			made, err := tx.insertSource(*bundle.Source, nil)
			if err != nil {
				return out, err
			}
			out.Source = &made
		}
		if out.Workflow, err = tx.insertWorkflow(bundle.Workflow); err != nil || bundle.Schedule == nil {
			return out, err
		}
		made, err := tx.insertSchedule(*bundle.Schedule, bundle.CheckSchedule)
		out.Schedule = &made
		return out, err
	})
}

// checkUse refuses the id of a record that does not exist or has another type.
func (tx *Tx) checkUse(use BundleUse) error {
	var err error
	if use.Gateway == "" {
		_, err = tx.source(use.ID)
	} else {
		var g agent.Gateway
		if g, err = tx.gateway(use.ID); err == nil && g.Type != use.Gateway {
			return agent.Invalid(use.Field, "names a gateway of another type")
		}
	}
	var e *agent.Error
	if errors.As(err, &e) && e.Code == agent.CodeNotFound {
		return agent.Invalid(use.Field, "does not exist")
	}
	return err
}
