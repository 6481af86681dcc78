package schedule

import (
	"context"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/store"
)

// Create creates a schedule with the given fields. secret is the generated
// secret for signing its webhook, which is not shown again, or "".
func (s *Scheduler) Create(
	ctx context.Context,
	db *store.DB,
	change agent.ScheduleChange,
) (made agent.Schedule, secret string, err error) {
	if change, secret, err = withSecret(change, false); err != nil {
		return made, "", err
	}
	made, err = db.CreateSchedule(ctx, change, s.Check)
	return made, secret, err
}

// Update changes the given fields of a schedule. secret is as for Create.
func (s *Scheduler) Update(
	ctx context.Context,
	db *store.DB,
	id string,
	change agent.ScheduleChange,
) (changed agent.Schedule, secret string, err error) {
	stored, err := db.ScheduleSecret(ctx, id)
	if err != nil && agent.ErrorCode(err) != agent.CodeConflict { // a locked secret can be replaced
		return changed, "", err
	}
	if change, secret, err = withSecret(change, stored != "" || err != nil); err != nil {
		return changed, "", err
	}
	changed, err = db.UpdateSchedule(ctx, id, change, s.Check)
	return changed, secret, err
}

// withSecret validates the secret of a change and generates one for a webhook
// that has none, or if the secret is null.
func withSecret(change agent.ScheduleChange, hasSecret bool) (agent.ScheduleChange, string, error) {
	given := change.Secret.Given && !change.Secret.Null
	if given {
		return change, "", signature.CheckSecret("secret", change.Secret.Value)
	}
	if change.Secret.Null || change.CallbackType.Value == agent.CallbackWebhook && !hasSecret {
		secret := signature.NewSecret()
		change.Secret = agent.Some(secret)
		return change, secret, nil
	}
	return change, "", nil
}
