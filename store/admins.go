package store

import (
	"context"
	"slices"

	"satchel/agent"
	"satchel/store/sqlite"
)

func scanAdmin(rows *sqlite.Rows) (a agent.Admin, err error) {
	return a, rows.Scan(&a.ID, &a.Email, &a.Name, &a.Role, &a.CreatedAt)
}

// Admins lists who has a role on the agent, oldest first.
func (db *DB) Admins(ctx context.Context) ([]agent.Admin, error) {
	return Read(ctx, db, (*Tx).admins)
}

func (tx *Tx) admins() ([]agent.Admin, error) {
	return all(tx, scanAdmin, "SELECT id, email, name, role, created_at FROM _admins ORDER BY created_at, id")
}

func (tx *Tx) insertAdmin(a *agent.Admin) error {
	_, err := tx.exec(
		"INSERT INTO _admins(id, email, name, role, created_at) VALUES (?,?,?,?,?)",
		a.ID, a.Email, a.Name, a.Role, a.CreatedAt,
	)
	return err
}

// CreateAdmin gives a person a role. If the email already has one, the error is
// CONFLICT.
func (db *DB) CreateAdmin(ctx context.Context, admin agent.Admin) (agent.Admin, error) {
	admin.Email = agent.NormalEmail(admin.Email)
	if err := admin.Validate(); err != nil {
		return admin, err
	}
	admin.ID = agent.NewID(agent.KindAdmin)
	err := db.changeAdmins(ctx, func(tx *Tx) error {
		admin.CreatedAt = tx.Now
		if err := tx.insertAdmin(&admin); isUnique(err) {
			return agent.Errorf(agent.CodeConflict, "this email already has a role on the agent").
				With("field", "email").
				With("issue", "is taken")
		} else if err != nil {
			return err
		}
		return tx.audit("admin added", map[string]any{"email": admin.Email, "role": admin.Role})
	})
	return admin, err
}

// UpdateAdmin gives a person another role. One owner stays.
func (db *DB) UpdateAdmin(ctx context.Context, id string, role agent.Role) (admin agent.Admin, err error) {
	err = db.changeAdmins(ctx, func(tx *Tx) error {
		if admin, err = tx.admin(id, role != agent.RoleOwner); err != nil {
			return err
		}
		before := admin.Role
		admin.Role = role
		if err := admin.Validate(); err != nil {
			return err
		}
		if _, err := tx.exec("UPDATE _admins SET role = ? WHERE id = ?", role, id); err != nil {
			return err
		}
		return tx.audit("admin changed", map[string]any{
			"email":  admin.Email,
			"role":   role,
			"before": before,
		})
	})
	return admin, err
}

// DeleteAdmin takes a person's role away. One owner stays.
func (db *DB) DeleteAdmin(ctx context.Context, id string) error {
	return db.changeAdmins(ctx, func(tx *Tx) error {
		a, err := tx.admin(id, true)
		if err != nil {
			return err
		}
		if _, err := tx.exec("DELETE FROM _admins WHERE id = ?", id); err != nil {
			return err
		}
		return tx.audit("admin removed", map[string]any{"email": a.Email, "role": a.Role})
	})
}

// admin reads an entry. If it ceases to be an owner's, there must be another owner.
func (tx *Tx) admin(id string, ceases bool) (agent.Admin, error) {
	admins, err := tx.admins()
	if err != nil {
		return agent.Admin{}, err
	}
	n := slices.IndexFunc(admins, func(a agent.Admin) bool { return a.ID == id })
	if n < 0 {
		return agent.Admin{}, agent.NotFound("admin entry", id)
	}
	a := admins[n]
	isOwner := func(a agent.Admin) bool { return a.Role == agent.RoleOwner }
	if ceases && isOwner(a) && !slices.ContainsFunc(slices.Delete(admins, n, n+1), isOwner) {
		return a, agent.Errorf(
			agent.CodeConflict,
			"the last owner must stay an owner; give another person this role first",
		)
	}
	return a, nil
}

// changeAdmins runs a write and updates the catalog's roles from it.
func (db *DB) changeAdmins(ctx context.Context, change func(*Tx) error) error {
	db.changing.Lock()
	defer db.changing.Unlock()
	roles, err := Write(ctx, db, func(tx *Tx) (map[string]agent.Role, error) {
		if err := change(tx); err != nil {
			return nil, err
		}
		admins, err := tx.admins()
		roles := make(map[string]agent.Role, len(admins))
		for _, a := range admins {
			roles[a.Email] = a.Role
		}
		return roles, err
	})
	if err == nil {
		db.update(func(r *record) { r.admins = roles })
	}
	return err
}

// NoteName stores the name that the identity proxy has for a person.
func (db *DB) NoteName(ctx context.Context, email, name string) error {
	_, err := Write(ctx, db, func(tx *Tx) (sqlite.Result, error) {
		return tx.exec("UPDATE _admins SET name = ? WHERE email = ? AND name <> ?", name, email, name)
	})
	return err
}
